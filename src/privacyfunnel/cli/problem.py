"""What `solve` and `frontier` are asked about: columns of a table, and how to solve for them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..discrete.arguments import check_settings
from ..errors import InvalidInputError, PrivacyFunnelWarning, shortened
from . import options
from .checks import check_delimiter
from .measures import asked_measures, check_measures
from .running import warn

if TYPE_CHECKING:
    from ..joint import Joint
    from ..mechanism import TableMechanism


class Problem:
    """A table with public and private columns, the settings of the solver, and columns kept beside z."""

    def __init__(
        self,
        data: str,
        public: Sequence[str],
        private: Sequence[str],
        methods: Sequence[str],
        more: dict[str, Any],
        keep: Sequence[str] = (),
    ) -> None:
        """Refuse, before any work, what cannot be solved; `more` has READING, SOLVING, MEASURES and
        delimiter."""
        check_settings(methods, more["alpha"], more["penalty"])
        check_measures(more)
        check_delimiter(more["delimiter"], [data])
        self.data, self.public, self.private = data, public, private
        self.keep = tuple(dict.fromkeys(keep))
        self._reading = {name: more[name] for name in (*options.READING, "delimiter")}
        self.settings = {"rng" if name == "seed" else name: more[name] for name in options.SOLVING}
        self._more = more
        if keep:
            from ..columns import kept_columns
            from ..files import open_table

            table = open_table(data, delimiter=more["delimiter"])
            kept_columns(self.keep, table.columns, public, private, data)

    def read(self, *, to_be_saved: bool) -> Joint:
        """The joint of the records, which settles the measures too; what cannot be saved later is refused
        now, before the work."""
        from ..attributes import LEAST_RECORDS
        from ..files import read_joint
        from ..persistence import encode_labels
        from ..uncertainty import rare_letters

        joint = read_joint(
            self.data,
            public=self.public,
            private=self.private,
            task=self._more["task"] or (),
            **self._reading,
        )
        if int((joint.p_y > 0).sum()) < 2:
            raise InvalidInputError(
                f"{' × '.join(map(shortened, joint.y_names))} has one value in all records of {self.data}: "
                "there is nothing to hide; name a private column that varies.",
                names=("private",),
            )
        self.settings |= asked_measures(joint, self._more)
        if to_be_saved:
            encode_labels(joint.x_labels, "x_labels")
            if rare := rare_letters(joint):
                warn(
                    f"{self.data}: {rare} fewer than {LEAST_RECORDS} records. How a letter is released "
                    "follows from what is private of its records, so that the saved file tells that of these "
                    "few people: merge rare values first, or keep the file to yourself."
                )
        return joint

    def read_kept(self) -> dict[tuple[str, ...], Joint]:
        """The joints of the letters with each kept column, and with all together: read before the solve."""
        from ..files import read_joint

        groups: list[tuple[str, ...]] = [(name,) for name in self.keep]
        if len(self.keep) > 1:
            groups.append(self.keep)
        joints = {}
        for columns in groups:
            reading = {**self._reading, "missing": "letter"}
            try:
                with warnings.catch_warnings():
                    # The order of the records was told when they were read first.
                    warnings.filterwarnings("ignore", "neighbours among the records", PrivacyFunnelWarning)
                    joints[columns] = read_joint(
                        self.data, public=[*self.public, *columns], private=self.private, **reading
                    )
            except InvalidInputError as error:
                listed = " ".join(f"--keep {shortened(name)}" for name in columns)
                message = f"what {listed} tells with z cannot be counted: {error}"
                raise InvalidInputError(message, names=error.names) from None
        return joints


def measured_kept(mechanism: TableMechanism, joints: dict[tuple[str, ...], Joint]) -> list[dict[str, Any]]:
    """Guess rate and bits of kept columns, alone and with z; exact on the records.

    Columns with too many values for the symbols that were found are told and left out: the solve is not lost.
    """
    if not joints:
        return []
    from ..auditing.measures.kept import measure_kept

    found = []
    for columns, joint in joints.items():
        try:
            found.append(asdict(measure_kept(mechanism, joint, columns)))
        except InvalidInputError as error:
            warn(f"what {' and '.join(columns)} tells with z was not measured: {error}")
    return found


def kept_facts(kept: Sequence[dict[str, Any]], private: str, chance: float) -> list[tuple[str, str, str]]:
    """The rows of a summary that say it in words and in bits."""
    if not kept:
        return []
    from ..report.wording import told_by_kept
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
