"""How a command ends: exit codes, and errors and warnings as one line on stderr.

0 done, 1 a stated gate failed, 2 bad input or an output that cannot be written (also a pipe whose reader went
away), 129 its terminal was closed, 130 interrupted (Ctrl-C), 143 terminated. A traceback is a bug.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from types import FrameType
from typing import Any

import typer

from ..errors import ConvergenceWarning, PrivacyFunnelError, PrivacyFunnelWarning

BAD_INPUT, INTERRUPTED = 2, 130

_LONGEST_WORD, _LONGEST_LINE = 300, 2000  # characters of what is printed of a message

# The base of every complaint about arguments; typer does not export it.
_UsageProblem: Any = typer.BadParameter.__mro__[2]

# Arguments of the library that the commands call something else.
_OTHER_NAMES = {"random_state": "seed", "rng": "seed"}
# What is said about arguments, in words that help.
_USAGE_WORDS = {
    r"Input should be a valid number.*": "it must be a number, such as 0.5",
    r"Input should be a valid integer.*": "it must be a whole number",
    r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)": (
        r"it is not clear what '\1' is for; repeat an option to give it several values"
    ),
}
_PREFIX = re.compile(
    r"^(Joint(\.\w+)?|solve|frontier|audit|release|release_frame|save|save_figure|plot_frontier): "
)


def run(argv: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    _prepare_streams()
    name = _command_of(argv)
    with _one_line_warnings(name), _ending_on_signals():
        try:
            code = _invoke(argv)
            sys.stdout.flush()
            return code
        except (KeyboardInterrupt, typer.Abort):
            _discard(sys.stdout, sys.__stdout__)
            return _complain(
                "interrupted; no file was left unfinished, run the command again for the result.", INTERRUPTED
            )
        except _Terminated as end:
            _discard(sys.stdout, sys.__stdout__)
            return 128 + end.number
        except _UsageProblem as problem:
            return _complain(_usage(problem), BAD_INPUT)
        except PrivacyFunnelError as error:
            return _complain(in_options(str(error), error.names, name), BAD_INPUT)
        except MemoryError:
            return _complain(
                "there is not enough memory for tables of this size; group letters, or lower --n-z.",
                BAD_INPUT,
            )
        except OSError as error:
            if error.filename is not None:  # not about a stream
                reason = error.strerror or type(error).__name__
                return _complain(
                    f"{error.filename}: it cannot be read or written ({reason}); check the name, its folder "
                    "and their permissions.",
                    BAD_INPUT,
                )
            from ..files import stdout_failure

            return _complain(str(stdout_failure(error)), BAD_INPUT)
        finally:
            # What cannot be written now would be tried again when Python ends, which then complains itself.
            try:
                sys.stdout.flush()
            except (OSError, ValueError):
                _discard(sys.stdout, sys.__stdout__)


def _invoke(argv: Sequence[str]) -> int:
    from .app import command

    if os.environ.get("_PFUNNEL_COMPLETE"):  # a shell asks how the line may go on
        command().main(prog_name="pfunnel")
    try:
        with command().make_context("pfunnel", list(argv) or ["--help"]) as context:
            context.command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return 0


class _Terminated(BaseException):
    """SIGTERM or SIGHUP arrived."""

    def __init__(self, number: int) -> None:
        self.number = number


def warn(message: str) -> None:
    """One line on stderr that begins with "warning:"."""
    _line("warning", message, typer.colors.YELLOW)


def warn_of_seed() -> None:
    """What is said of a release whose draws are repeatable."""
    warn("--seed: whoever knows or guesses the seed can undo the noise; use it for tests only.")


def note(message: str) -> None:
    """One line on stderr that begins with "note:"."""
    _line("note", message, typer.colors.CYAN)


def in_options(message: str, names: Iterable[str], command: str | None = None) -> str:
    """A message of the library in the words of the command line: min_utility is --min-utility here.

    A file of runs spells arguments as Python does: for `sweep` only its own options are options. `names` are
    the arguments that the message speaks of; method='dca' becomes --method dca. One in quotes is a column's.
    A name that is also a plain word stays after an article, and where another place gives it a value:
    "missing values; pass missing='letter'".
    """
    message = _PREFIX.sub("", message)
    options = _options("sweep" if command == "sweep" else None)
    known = {name: spelt for name in names if (spelt := options.get(_OTHER_NAMES.get(name, name)))}
    for name, spelt in known.items():
        bare = rf"(?<![\w'\"-]){name}(?![\w'\"-])"
        valued = rf"{bare}=(?P<quote>['\"]?)(?:True\b|(?P<value>[\w-]*(?:\.\w+)*))(?P=quote)"
        message, n = re.subn(valued, partial(_with_value, spelt), message)
        if "_" in name or not n:
            message = re.sub(bare if "_" in name else rf"(?<!\ba ){bare}", spelt, message)
    return message


def _with_value(option: str, found: re.Match[str]) -> str:
    return f"{option} {found['value']}" if found["value"] else option


@cache
def _options(name: str | None) -> dict[str, str]:
    """How the parameters of a command, or of all of them, are spelt on the command line."""
    from .app import command

    commands = command().commands
    some = commands.values() if name is None else [commands[name]]
    return {p.name: p.opts[0] for one in some for p in one.params if p.param_type_name == "option"}


def _command_of(argv: Sequence[str]) -> str | None:
    """The command of a line: what comes first besides options of pfunnel itself, which take no values."""
    return next((word for word in argv if not word.startswith("-")), None)


def _usage(problem: Any) -> str:
    message = str(problem.format_message()).rstrip(".")
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "pfunnel"
    for found, words in _USAGE_WORDS.items():
        message = re.sub(found, words, message)
    return f"{message} See {path} --help." if message.endswith("?") else f"{message}; see {path} --help."


def _complain(message: str, code: int) -> int:
    _line("error", message, typer.colors.RED)
    return code


def _line(kind: str, message: str, colour: str) -> None:
    try:
        typer.secho(f"{kind}: ", fg=colour, bold=True, nl=False, err=True)
        typer.echo(_readable(message), err=True)
    except OSError:  # nobody reads it: the exit code still tells
        _discard(sys.stderr, sys.__stderr__)


def _readable(message: str) -> str:
    """On one line, and with the middle left out of endless paths and of endless lists."""
    words = (_without_middle(word, _LONGEST_WORD) for word in message.split())
    return _without_middle(" ".join(words), _LONGEST_LINE)


def _without_middle(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 :]}"


def _prepare_streams() -> None:
    """Let printing work where a stream is closed, or cannot hold every character (β in Latin-1)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _discard(stream: Any, own: Any) -> None:
    """Let what is still buffered go nowhere: writing it may wait for a reader, or fail, at the very end."""
    if own is not None and stream is own:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), own.fileno())


@contextmanager
def _one_line_warnings(command: str | None) -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        warn(in_options(str(message), getattr(message, "names", ()), command))

    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyFunnelWarning)
        # After Ctrl-C the command ends with a line of its own.
        warnings.filterwarnings("ignore", message=".*Interrupted by the caller", category=ConvergenceWarning)
        warnings.showwarning = show
        yield


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Turn the polite requests to end into an exception, so that temporary files are removed."""

    def end(number: int, frame: FrameType | None) -> None:
        raise _Terminated(number)

    wanted = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    # Who is told to ignore one (nohup) goes on doing so.
    before = {one: signal.getsignal(one) for one in wanted if signal.getsignal(one) is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, end)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
