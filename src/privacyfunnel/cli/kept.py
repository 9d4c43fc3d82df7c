"""What columns that are to be handed out beside z tell, measured while the private columns are at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInputError, shortened

if TYPE_CHECKING:
    from ..mechanism import TableMechanism


def check_kept(
    data: str, keep: Sequence[str], public: Sequence[str], private: Sequence[str], delimiter: str | None
) -> None:
    """Refuse, before any work, a column to be kept that is not there, public or private."""
    if keep:
        from ..columns import kept_columns
        from ..files import open_table

        kept_columns(tuple(keep), open_table(data, delimiter=delimiter).columns, public, private, data)


def measured_kept(
    data: str,
    mechanism: TableMechanism,
    keep: Sequence[str],
    *,
    public: Sequence[str],
    private: Sequence[str],
    max_letters: int,
    delimiter: str | None,
) -> list[dict[str, Any]]:
    """Guess rate and bits of each column, alone and with z, and of all together; exact on the records."""
    from ..audit.kept_counts import measure_kept
    from ..files import read_joint

    names = tuple(dict.fromkeys(keep))
    groups: list[tuple[str, ...]] = [(name,) for name in names]
    if len(names) > 1:
        groups.append(names)
    found = []
    for columns in groups:
        try:
            joint = read_joint(
                data,
                public=[*public, *columns],
                private=private,
                missing="letter",
                max_letters=max_letters,
                delimiter=delimiter,
            )
        except InvalidInputError as error:
            listed = " ".join(f"--keep {shortened(name)}" for name in columns)
            raise InvalidInputError(f"what {listed} tells with z cannot be counted: {error}") from None
        found.append(asdict(measure_kept(mechanism, joint, columns)))
    return found


def kept_facts(kept: Sequence[dict[str, Any]], private: str, chance: float) -> list[tuple[str, str, str]]:
    """The rows of a summary that say it in words and in bits."""
    from ..report.beside import told_by_kept
    from .output import bits, percent

    facts = []
    for one in kept:
        sentence = told_by_kept(one["columns"], private, one["guess"], one["guess_with_z"], chance)
        told = (
            f"{bits(one['leakage'])} bit alone, {bits(one['leakage_with_z'])} with z; exact on these records"
        )
        if one["rare_share"]:
            told += f", of which {percent(one['rare_share'], 1)} have a value that fewer than 10 share"
        facts.append(("Beside z", sentence, told))
    return facts
