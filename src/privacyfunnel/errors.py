"""Exceptions and warnings.

Every exception is also the built-in that a caller would think of catching::

    PrivacyFunnelError
    ├── InvalidInputError (ValueError)        an argument or a file's content cannot be used
    │   ├── InvalidJointError                 an array or table is no joint distribution
    │   ├── UnknownLetterError                a value that the mechanism has no row for
    │   └── InfeasibleError                   no mechanism satisfies the constraint
    ├── DataFileError (OSError)               a file cannot be read or written
    ├── FileFormatError (ValueError)          a saved file is damaged, foreign or newer than this library
    ├── MissingDependencyError (ImportError)  an optional package is not installed
    └── NotConvergedError (RuntimeError)      raised by Solution.raise_for_status()

    PrivacyFunnelWarning (UserWarning)
    ├── ConvergenceWarning                    a solver stopped before its stop rule was met
    ├── FewRecordsWarning                     what holds for these records may not hold for new people
    ├── RepeatedRecordsWarning                records look like several of one person each
    ├── TargetWarning                         a pipeline's target was taken for what is private
    └── TrainingRecordsWarning                an audit of records that the mechanism was trained on

A message says what is wrong, where, and what to do instead. A value in it is `shortened`. Where it speaks of
arguments, `names` has them, so that a command can say the options that they are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import Repr
from typing import Self

_REPR = Repr()
_REPR.maxstring = _REPR.maxother = 80
_REPR.maxtuple = _REPR.maxlist = _REPR.maxdict = 8
_REPR.fillvalue = "…"


def shortened(value: object) -> str:
    """A value as it stands in a message: as Python writes it, with its middle left out where it is long.

    >>> shortened("x" * 10_000) == "'" + "x" * 37 + "…" + "x" * 38 + "'"
    True
    """
    try:
        return _REPR.repr(value)
    except ValueError:  # Python does not write whole numbers of thousands of digits
        return f"a {type(value).__name__} that is too long to print"


class _Naming:
    """A message, and the arguments that it speaks of by their Python names."""

    args: tuple[object, ...]

    def __init__(self, message: object = "", *, names: Iterable[str] = ()) -> None:
        super().__init__(message)  # type: ignore[call-arg]  # of the exception that comes next
        self.names = tuple(names)

    def at(self, where: str, *, without: str = "") -> Self:
        """The same about a place, such as a file: its message follows, `without` what it begins with."""
        return type(self)(f"{where}: {str(self).removeprefix(without)}", names=self.names)


class PrivacyFunnelError(_Naming, Exception):
    """Base of every exception raised on purpose by this library."""


class InvalidInputError(PrivacyFunnelError, ValueError):
    """An argument or a file's content cannot be used."""


class InvalidJointError(InvalidInputError):
    """An array or table is no joint distribution."""


class UnknownLetterError(InvalidInputError):
    """A value that the mechanism has no row for."""


class InfeasibleError(InvalidInputError):
    """No mechanism satisfies the constraint."""


class DataFileError(PrivacyFunnelError, OSError):
    """A file cannot be read or written."""


class FileFormatError(PrivacyFunnelError, ValueError):
    """A saved file is damaged, foreign or newer than this library."""


class MissingDependencyError(PrivacyFunnelError, ImportError):
    """An optional package is not installed."""


class NotConvergedError(PrivacyFunnelError, RuntimeError):
    """A solver stopped before its stop rule was met."""


class PrivacyFunnelWarning(_Naming, UserWarning):
    """Base of every warning issued on purpose by this library."""


class ConvergenceWarning(PrivacyFunnelWarning):
    """A solver stopped before its stop rule was met; the result says how far it got."""


class FewRecordsWarning(PrivacyFunnelWarning):
    """A joint was estimated from few records a letter: on new people a release may leak far more."""


class RepeatedRecordsWarning(PrivacyFunnelWarning):
    """Most records have an identical twin: certificates hold for one record a person, or with groups=."""


class TargetWarning(PrivacyFunnelWarning):
    """A pipeline's target was taken for the private attribute: what was meant may not be protected."""


class TrainingRecordsWarning(PrivacyFunnelWarning):
    """An audit of records that the mechanism was trained on: their leakage looks smaller than it is."""
