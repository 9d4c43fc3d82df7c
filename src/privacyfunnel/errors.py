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
    └── FewRecordsWarning                     what holds for these records may not hold for new people

A message says what is wrong, where, and what to do instead. A value in it is `shortened`.
"""

from reprlib import Repr

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


class PrivacyFunnelError(Exception):
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


class PrivacyFunnelWarning(UserWarning):
    """Base of every warning issued on purpose by this library."""


class ConvergenceWarning(PrivacyFunnelWarning):
    """A solver stopped before its stop rule was met; the result says how far it got."""


class FewRecordsWarning(PrivacyFunnelWarning):
    """A joint was estimated from few records a letter: on new people a release may leak far more."""
