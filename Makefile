# Every target sets up .venv by itself when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
export PYTHONHASHSEED := 0

.PHONY: setup demo test test-full bench reproduce check format clean
.DELETE_ON_ERROR:

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "privacyfunnel needs Python 3.11 or newer; this is %d.%d. Run: make PYTHON=python3.11 setup" % sys.version_info[:2])'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing into .venv (first time: a few minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,onnx,spark,dev]'
	@echo "Compiling the solvers, once"
	@$(BIN)/pfunnel demo --output .venv/demo > /dev/null
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/pfunnel demo

test: $(STAMP)
	$(BIN)/python -m pytest -m 'not full' -n auto

test-full: $(STAMP)
	$(BIN)/python -m pytest -n auto

bench: $(STAMP)
	$(BIN)/python -m benchmarks

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
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-output
