"""What a rule keeps and what can be guessed from it, in one sentence without information theory."""

from __future__ import annotations

from dataclasses import dataclass

from ..measured import rounded_up


@dataclass(frozen=True)
class Guess:
    """How often anybody can be right about an attribute of a new person.

    Attributes
    ----------
    name : str
    at_most : float
        With the release; an upper bound for every adversary.
    chance : float
        Without it: the share of the commonest value among the records that made the rule, told to ten; among
        all records it may be a little other.
    """

    name: str
    at_most: float
    chance: float


@dataclass(frozen=True)
class Verdict:
    """What is kept and what can be guessed; `str` is one sentence.

    Attributes
    ----------
    guesses : of Guess
        All of them hold together, with the confidence.
    confidence : float
    variance : float
        Share of the variance of new records that their release explains; an estimate.
    n : int
        Records that certified and measured.
    task : str, optional
        Whose `score` from a release, and from the whole record where a model was asked, is measured.
    score, score_before : float, optional
        AUC for two classes, else the share guessed right; estimates.
    is_auc : bool
    gap : float, optional
        The largest difference between two private classes that a decision from the release can make.
    silent : bool
        Whether there is one symbol alone, for everybody.
    """

    guesses: tuple[Guess, ...]
    confidence: float
    variance: float
    n: int
    task: str = ""
    score: float | None = None
    score_before: float | None = None
    is_auc: bool = True
    gap: float | None = None
    silent: bool = False

    def __str__(self) -> str:
        if self.silent:
            names = " or ".join(one.name for one in self.guesses)
            return (
                f"Every row is made in the same way and tells nothing about {names}, and nothing else about "
                f"its person either: with {self.n:,} records held back, no release that tells more could be "
                "certified. Use more records, or allow more."
            )
        told = [
            f"{one.name} right more often than {rounded_up(100 * one.at_most, 1):.1f} % of the time "
            f"(about {100 * one.chance:.1f} % without it)"
            for one in self.guesses
        ]
        said = f"From a new person's release nobody guesses {', nor '.join(told)}"
        if self.gap is not None:
            gap = rounded_up(100 * self.gap, 1)
            said += f", and no decision made from it treats groups more than {gap:.1f} % apart"
        # The guesses hold together; that they hold and the gap does is a little less sure.
        each = "" if self.gap is None else "each "
        said += f", {each}with {100 * self.confidence:g} % confidence; it keeps {self._kept()}."
        return said

    def _kept(self) -> str:
        kept = f"{100 * max(self.variance, 0):.0f} % of the variance"
        if self.score is None:
            return kept
        if self.is_auc:
            score, before = f"an AUC of {self.score:.3f}", f"{self.score_before or 0:.3f}"
        else:
            score, before = f"{100 * self.score:.0f} % right", f"{100 * (self.score_before or 0):.0f} %"
        whole = "" if self.score_before is None else f" ({before} from the whole record)"
        return f"{kept} and tells {self.task} with {score}{whole}"

    def to_dict(self) -> dict[str, object]:
        """JSON types."""
        from dataclasses import asdict

        return asdict(self)
