"""What useful and telling mean on the command line: options of `solve` and `frontier`, and sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInputError
from .options import Option, columns

if TYPE_CHECKING:
    from ..joint import Joint
    from ..measures import Distance
    from ..solution import Solution

MEASURES = {
    "utility": Option(
        "What useful means: information (bits about the public columns), distance (how close to the public "
        "values a reader gets; numbers count in standard deviations, other values as equal or not) or task "
        "(bits about the columns of --task).",
        "information; task with --task",
        str,
        choices=("information", "distance", "task"),
    ),
    "task": columns("A column that the release is meant to tell about. Repeat for several.", "none"),
    "leakage": Option(
        "What telling means: information (bits about the private columns), success (how often the best guess "
        "of them is right) or parity (by how much any rule on z can treat two private values differently).",
        kind=str,
        choices=("information", "success", "parity"),
        value="information",
    ),
    "max_lift": Option(
        "Besides: no symbol may make a private value more or less probable by a factor above 2 to this.",
        "no limit",
        metavar="BITS",
    ),
}
# A number as it is written; 007 is none.
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d{1,3})?|[+-]?\.\d+([eE][+-]?\d{1,3})?")


def check_measures(more: Mapping[str, Any]) -> None:
    """Refuse, before anything is read, a task that is not used and one that is missing."""
    if more["utility"] == "task" and not more["task"]:
        raise InvalidInputError(
            "--utility task needs the columns that the release is meant to tell about; name them with --task."
        )
    if more["task"] and more["utility"] not in (None, "task"):
        raise InvalidInputError(
            f"--task goes with --utility task, not with {more['utility']}; leave one of them out."
        )


def asked_measures(joint: Joint, more: Mapping[str, Any]) -> dict[str, Any]:
    """What `solve` and `frontier` take for these options."""
    from ..measures import Task

    utility: Any = "information"
    if more["task"]:
        utility = Task(joint.task_channel(joint.t_names))
    elif more["utility"] == "distance":
        utility = distance_of(joint)
    return {"utility": utility, "leakage": more["leakage"], "max_lift": more["max_lift"]}


def distance_of(joint: Joint) -> Distance:
    """Points of the letters: numbers in standard deviations; of other values two that differ are 1 apart."""
    import numpy as np

    from ..measures import Distance

    several = len(joint.x_names) > 1
    rows = [label if several and isinstance(label, tuple) else (label,) for label in joint.x_labels]
    parts = []
    for column in zip(*rows, strict=True):
        found = _as_numbers(column)
        if found is not None:
            numbers = np.array(found)
            spread = float(np.sqrt(joint.p_x @ (numbers - joint.p_x @ numbers) ** 2))
            parts.append((numbers / spread if spread > 0.0 else 0.0 * numbers)[:, None])
        else:
            values = list(dict.fromkeys(column))
            parts.append(np.eye(len(values))[[values.index(one) for one in column]] / np.sqrt(2.0))
    return Distance(np.hstack(parts), kind="points")


def _as_numbers(values: Sequence[Any]) -> list[float] | None:
    """The numbers that these values are, if all of them are."""
    found = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            return None
        if isinstance(value, str) and not _NUMBER.fullmatch(value):
            return None
        found.append(float(value))
    return found if all(abs(one) < 1e150 for one in found) else None


def kept_sentence(solution: Solution) -> str:
    """What the release keeps, in words."""
    from .output import percent

    measures, joint = solution.measures, solution.joint
    share = percent(solution.utility, _whole(solution))
    if measures.scale.utility == "task":
        return f"The release keeps {share} of what the public columns tell about {' × '.join(joint.t_names)}."
    if measures.scale.utility == "distance":
        return f"The release keeps {share} of the differences between the public values."
    return f"The release keeps {share} of the public information."


def told_sentence(solution: Solution) -> str:
    """How much success or parity is left, in words."""
    from .output import plural

    joint = solution.joint
    before, most = _before(solution), _most(solution)
    name, people = " × ".join(joint.y_names), plural(joint.n_samples or 0, "record")
    if solution.measures.leakage == "success":
        return (
            f"From it the best guess of {name} is right for {100 * solution.leakage:.2f} % of these {people};"
            f" {100 * before:.2f} % without it, {100 * most:.2f} % from the public columns themselves."
        )
    return (
        f"No rule that sees it alone selects shares of two values of {name} that differ by more than "
        f"{100 * solution.leakage:.2f} percentage points on these {people}; from the public columns "
        f"themselves {100 * most:.2f}."
    )


def lift_sentence(solution: Solution) -> str:
    """What the most telling symbol says."""
    return (
        f"No symbol makes a value of {' × '.join(solution.joint.y_names)} more or less probable by a factor "
        f"above {2.0**solution.lift:.3f}."
    )


def utility_fact(solution: Solution) -> tuple[str, str]:
    """The utility with its unit, and what it is a share of."""
    from .output import bits, percent

    whole, utility = _whole(solution), solution.utility
    share = f"exact on these records; {percent(utility, whole)} of"
    name = solution.measures.scale.utility
    if name == "task":
        return f"I(Z;T) = {bits(utility)} bit", f"{share} I(X;T) = {bits(whole)}"
    if name == "distance":
        return f"{utility:.5g}, squared distance taken away", f"{share} {whole:.5g}"
    return f"I(Z;X) = {bits(utility)} bit", f"{share} H(X) = {bits(whole)}"


def leakage_fact(solution: Solution) -> tuple[str, str]:
    """The leakage with its unit, and what it is beside."""
    from .output import bits, percent

    most = _most(solution)
    if solution.measures.leakage == "information":
        return (
            f"I(Z;Y) = {bits(solution.leakage)} bit",
            f"exact on these records; {percent(solution.leakage, most)} of I(X;Y) = {bits(most)}",
        )
    return (
        f"{solution.measures.leakage} {solution.leakage:.5f}",
        f"exact on these records; {_before(solution):.5f} without the release, {most:.5f} from X itself",
    )


def asked_fact(solution: Solution) -> str:
    """The target, in the units of the measures."""
    from .output import bits

    scale, value, unit = solution.measures.scale, solution.target.value, solution.measures.scale.utility_unit
    lift = "" if scale.max_lift is None else f", and no symbol telling more than {scale.max_lift:g} bit"
    if solution.target.kind == "beta":
        told = f"{_formula(solution)}, which is {bits(solution.objective)}{scale.leakage_unit} here"
        return f"the least {told}{lift}"
    if solution.target.kind == "min_utility":
        return f"the least {scale.leakage_word} with utility ≥ {value:g}{unit}{lift}"
    return f"the most utility with {scale.leakage_word} ≤ {value:g}{scale.leakage_unit}{lift}"


def proved_fact(solution: Solution) -> tuple[str, str]:
    """What holds for every release on these records, or for those of the scope, and how close that is."""
    from .output import bits

    scale, bound, kind = solution.measures.scale, solution.lower_bound or 0.0, solution.target.kind
    unit = scale.objective_unit(kind)
    if kind == "beta":
        told = f"no release has {_formula(solution)} below {bits(bound)}{unit}"
    elif kind == "min_utility":
        leaks = "leaks" if scale.leakage == "information" else f"has a {scale.leakage} of"
        told = f"every release of that utility {leaks} at least {bits(bound)}{unit}"
    else:
        told = f"no release of that {scale.leakage_word} has a utility above {bits(-bound)}{unit}"
    among = f", {solution.scope}" if solution.scope else ""
    return told + among, f"a bound; {solution.gap:.1g}{unit} from what was found"


def _formula(solution: Solution) -> str:
    scale, value = solution.measures.scale, solution.target.value
    leakage = "I(Z;Y)" if scale.leakage == "information" else scale.leakage
    utility = {"information": "I(Z;X)", "task": "I(Z;T)"}.get(scale.utility, "distance taken away")
    return f"{leakage} − {value:g} · {utility}"


def _whole(solution: Solution) -> float:
    """The utility of X itself."""
    import numpy as np

    joint = solution.joint
    if solution.measures.utility == "information":
        return float(joint.entropy_x)
    return solution.measures.utility_of(joint.p_x, np.eye(joint.n_x))


def _before(solution: Solution) -> float:
    """The leakage of saying nothing."""
    return solution.measures.without_release(solution.joint.p_y)


def _most(solution: Solution) -> float:
    """The leakage of X itself."""
    import numpy as np

    joint = solution.joint
    if solution.measures.leakage == "information":
        return float(joint.mutual_information)
    return solution.measures.leakage_of(joint.p_xy, np.eye(joint.n_x))
