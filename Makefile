# Every target sets up .venv by itself when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
CORE := .venv/.core
STAMP := .venv/.installed
FULL := .venv/.full
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
export PYTHONHASHSEED := 0
# Some machines forbid Python to keep what it compiled; every start would compile the packages again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-full bench docs images wheel reproduce check format clean
.DELETE_ON_ERROR:

setup: $(STAMP)

# The package and its figures: all that the demo needs. Pip's warnings are shown when it fails only.
# Not compiled, which takes as long as all the rest: Python compiles what it imports.
$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "privacyfunnel needs Python 3.11 or newer; this is %d.%d. Run: make PYTHON=python3.11 setup" % sys.version_info[:2])'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing the package and its figures into .venv (first time: a minute)"
	@$(PIP) --no-compile -e '.[plot]' 2> .venv/pip.log || { cat .venv/pip.log >&2; exit 1; }
	@touch $(CORE)

# All of it: learned funnels, audits, engines, and what the tests need.
$(STAMP): $(CORE)
	@echo "Installing what the tests need into .venv (first time: a few minutes)"
	@$(PIP) --quiet -e '.[all,onnx,dev]' 2> .venv/pip.log || { cat .venv/pip.log >&2; exit 1; }
	@echo "Compiling, once"
	@$(BIN)/python -m compileall -qq -j 0 .venv/lib || true # packages have files for other versions of Python
	@$(BIN)/pfunnel demo --every-method --output .venv/demo > /dev/null
	@touch $(STAMP)

# With Spark, half a gigabyte, for the long tests.
$(FULL): $(STAMP)
	@echo "Installing Spark into .venv"
	@$(PIP) --quiet -e '.[all,onnx,spark,dev]' 2> .venv/pip.log || { cat .venv/pip.log >&2; exit 1; }
	@touch $(FULL)

demo: $(CORE)
	$(BIN)/pfunnel demo

test: $(STAMP)
	$(BIN)/python -m pytest -m 'not full' -n auto

test-full: $(FULL)
	$(BIN)/python -m pytest -n auto

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# The site, in docs/_build/index.html; a warning is an error.
docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build

# Every picture of the pages anew, with a Chromium for those of the app.
images: $(STAMP)
	$(BIN)/python docs/draw_images.py

# Build, check, and try the wheel in an empty environment: the demo and the blocks of the README.
wheel:
	$(PYTHON) .ci/try_wheel.py

# All of the paper at small scale; goes on where it was interrupted, and from what docs/results/runs has.
reproduce: $(STAMP)
	$(BIN)/pfunnel reproduce all --scale small --output docs/results --store runs/reproduce

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-output docs/_build docs/generated docs/gallery
