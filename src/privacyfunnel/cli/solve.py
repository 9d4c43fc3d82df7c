"""pfunnel solve: the best release for one target."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InvalidInputError
from ..uncertainty import LEVEL
from . import options
from .budget import BUDGETS, Budget, share
from .checks import check_outputs, raise_if_interrupted
from .measures import (
    MEASURES,
    asked_fact,
    kept_sentence,
    leakage_fact,
    lift_sentence,
    proved_fact,
    told_sentence,
    utility_fact,
)
from .options import Option, columns
from .problem import Problem, kept_facts, measured_kept

if TYPE_CHECKING:
    from ..joint import Joint
    from ..measured import Measured
    from ..solution import Solution


TARGETS = {
    "beta": Option("Target: minimise leakage − β · utility."),
    "min_utility": Option(
        "Target: the least leakage with at least this utility; I(Z;X) in bits unless --utility says "
        "otherwise."
    ),
    "max_leakage": Option(
        "Target: the most utility with at most this leakage; I(Z;Y) in bits, with --leakage success or "
        "parity a share, such as 0.7."
    ),
    **BUDGETS,
}
POPULATION = Option(
    "Certify the limit for new people, against every adversary, with this confidence, such as 95%: a third "
    "of the records is held back for it. Needs --max-leakage, --max-success or --max-parity.",
    "not certified",
    str,
    metavar="SHARE",
    check=share,
)
KEEP = columns(
    "A column that is to be handed out beside z: what it tells, alone and with z, is measured. Repeat for "
    "several."
)


@options.with_options({**options.SOLVING, **options.READING}, before="delimiter")
@options.with_options({**TARGETS, "population": POPULATION, **MEASURES, "keep": KEEP}, before="method")
def solve(
    data: options.Data,
    public: options.Public,
    private: options.Private,
    method: options.Method = "auto",
    delimiter: options.Delimiter = None,
    output: Annotated[str | None, options.output("Save the mechanism here, for 'pfunnel release'.")] = None,
    as_json: options.Json = False,
    **more: Any,
) -> None:
    """Find what to release of the public columns: useful, and telling little about the private ones.

    Takes exactly one target: --beta, --min-utility, or a limit on what is told: --max-leakage in the unit of
    --leakage, --max-success, --max-advantage or --max-parity in shares of people, --remove as a share of what
    the public columns tell. 'pfunnel frontier' shows what is possible.

    The joint distribution is estimated from the records of DATA. Prints the utility and leakage of the
    release found, exact on these records, and a 95 % interval for its leakage in bits on the population that
    the records come from. Other measures than information need --method auto or exact.
    """
    targets: dict[str, Any] = {name: more[name] for name in TARGETS}
    named = [name for name, value in targets.items() if value is not None]
    if len(named) != 1:
        raise InvalidInputError(
            f"pass exactly one of {', '.join(list(targets)[:-1])} and remove; got "
            f"{' and '.join(named) or 'none'}.",
            names=targets,
        )
    if more["population"] is not None and named[0] in ("max_advantage", "remove"):
        raise InvalidInputError(
            f"population is about a limit that was fixed beforehand, and {named[0]} is computed from all "
            "records, those that certify too; pass max_leakage, max_success or max_parity.",
            names=("population", *TARGETS),
        )
    more["delimiter"] = delimiter
    problem = Problem(data, public, private, [method], more, more["keep"] or ())
    check_outputs([output], [data])

    from ..discrete.solve import solve as find
    from .output import print_json

    joint = problem.read(to_be_saved=output is not None)
    beside = problem.read_kept()
    budget = Budget.of(targets)
    asked = {name: targets[name] for name in named} if budget is None else budget.arguments(joint)
    if budget is not None and more["leakage"] not in ("information", asked["leakage"]):
        raise InvalidInputError(
            f"{budget.kind} is about {asked['leakage']}, and leakage says {more['leakage']}; leave one of "
            "them out.",
            names=(budget.kind, "leakage"),
        )
    solution = find(joint, method=method, population=more["population"], **{**problem.settings, **asked})
    raise_if_interrupted([solution.status])
    values = _values(data, joint, solution, more["seed"]) | {"output": output}
    values["asked"] = {name: targets[name] for name in named}
    values["kept"] = measured_kept(solution.mechanism, beside)
    if output is not None:
        solution.mechanism.save(output)
    if as_json:
        print_json(values)
    else:
        _print(values, solution, method, budget)


def _values(data: str, joint: Joint, solution: Solution, seed: int | None) -> dict[str, Any]:
    from ..information import measure
    from .output import joint_values

    interval = None
    if solution.measures.leakage == "information" and solution.certified is None:
        found = solution.leakage_interval(level=LEVEL, rng=seed)
        interval = {"level": found.level, "low": found.low, "high": found.high, "method": found.method}
    return {
        "command": "solve",
        **joint_values(data, joint),
        "target": {solution.target.kind: solution.target.value},
        "method": solution.method,
        "status": solution.status.name,
        "converged": solution.status.ok,
        "utility": solution.utility,
        "leakage": solution.leakage,
        "leakage_interval": interval,
        "certified": None if solution.certified is None else _certified(solution.certified),
        "scale": {**solution.measures.scale.to_dict(), "task": list(joint.t_names)},
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "gap": solution.gap,
        "scope": solution.scope,
        "n_z": solution.mechanism.n_z,
        "measures": measure(solution.mechanism, joint).to_dict(),
        "n_steps": solution.n_steps,
        "seconds": solution.seconds,
        "notes": list(solution.notes),
    }


def _certified(bound: Measured) -> dict[str, Any]:
    return {"at_most": bound.value, "confidence": bound.confidence, "n_records": bound.n_samples}


def _print(values: dict[str, Any], solution: Solution, asked_method: str, budget: Budget | None) -> None:
    from .output import bits, describe_joint, plural, print_facts
    from .running import in_options

    joint, measures, interval = solution.joint, values["measures"], values["leakage_interval"]
    notes = solution.notes if budget is None else [budget.instead(note) for note in solution.notes]
    facts = [
        ("Asked for", asked_fact(solution) if budget is None else budget.words(joint), ""),
        ("Utility", *utility_fact(solution)),
        ("Leakage", *leakage_fact(solution)),
    ]
    if interval is not None:
        facts.append(
            (
                "",
                f"{bits(interval['low'])} to {bits(interval['high'])} bit",
                f"{100 * LEVEL:g} % interval for the population of these records",
            )
        )
    if solution.lower_bound is not None:
        facts.append(("Proved", *proved_fact(solution)))
    if solution.measures.leakage != "success":  # which says it already
        guess = f"right about {' × '.join(joint.y_names)} {100 * measures['guess_after']:.2f} % of the time"
        before = f"exact on these records; {100 * measures['guess_before']:.2f} % without the release"
        facts.append(("Adversary", guess, before))
    facts += [
        *kept_facts(values["kept"], " × ".join(joint.y_names), measures["guess_before"]),
        ("Mechanism", f"{plural(joint.n_x, 'letter')} → {plural(solution.mechanism.n_z, 'symbol')}", ""),
        (
            "Method",
            solution.method,
            f"{'chosen by auto; ' if asked_method == 'auto' else ''}{plural(solution.n_steps, 'step')}, "
            f"{solution.seconds:.2f} s",
        ),
        ("Status", in_options(solution.status.value, solution.status.names), ""),
        *[("Note", in_options(note, values["asked"]), "") for note in notes],
    ]
    if values["output"] is not None:
        files = map(quote, (values["data"], values["output"]))
        keep = "".join(
            f" --keep {quote(one['columns'][0])}" for one in values["kept"] if len(one["columns"]) == 1
        )
        command = "pfunnel release {} --mechanism {} --output released.csv --shuffle".format(*files) + keep
        facts.append(("Saved", values["output"], f"apply it with: {command}"))
    print_facts(f"{_headline(values, solution)}\n{describe_joint(values['data'], joint)}", facts)


def _headline(values: dict[str, Any], solution: Solution) -> str:
    """The result in a sentence or two: what is kept, and what leaks on these records and on new people."""
    from .output import bits, plural

    interval = values["leakage_interval"]
    if solution.certified is not None:
        told = _certified_sentence(solution, solution.certified)
    elif interval is None:
        told = told_sentence(solution)
    else:
        told = (
            f"It leaks {bits(values['leakage'])} bit about {' × '.join(values['private'])} on these "
            f"{plural(values['n_records'], 'record')}, and {bits(interval['low'])} to "
            f"{bits(interval['high'])} bit on new people ({100 * LEVEL:g} % interval)."
        )
    lift = "" if solution.measures.max_lift is None else f" {lift_sentence(solution)}"
    return f"{kept_sentence(solution)} {told}{lift}"


def _certified_sentence(solution: Solution, bound: Measured) -> str:
    """What holds for new people, in words."""
    private, share = " × ".join(solution.joint.y_names), f"{100 * bound.value:.4g} %"
    told = {
        "information": f"nobody learns more than {bound.value:g} bit about {private} of a new person",
        "success": f"nobody is right about {private} of a new person more often than {share} of the time",
        "parity": f"no rule on z treats two groups of {private} more than {share} differently",
    }[solution.measures.leakage]
    return f"With {100 * (bound.confidence or 0):g} % confidence {told}, whatever he knows."
