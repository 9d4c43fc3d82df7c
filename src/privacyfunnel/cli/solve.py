"""pfunnel solve: the best release for one target."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from ..uncertainty import LEVEL
from . import options
from .budget import BUDGETS, Budget
from .checks import check_outputs, raise_if_interrupted
from .options import Option, columns
from .problem import Problem, kept_facts, measured_kept

if TYPE_CHECKING:
    from ..joint import Joint
    from ..solution import Solution


TARGETS = {
    "beta": Option("Target: minimise leakage − β · utility."),
    "min_utility": Option("Target: the least leakage with at least this utility I(Z;X).", metavar="BITS"),
    **BUDGETS,
}
KEEP = columns(
    "A column that is to be handed out beside z: what it tells, alone and with z, is measured. Repeat for "
    "several."
)


@options.with_options({**options.SOLVING, **options.READING}, before="delimiter")
@options.with_options({**TARGETS, "keep": KEEP}, before="method")
def solve(
    data: options.Data,
    public: options.Public,
    private: options.Private,
    method: options.Method = "auto",
    delimiter: options.Delimiter = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Save the mechanism here, for 'pfunnel release'."
        ),
    ] = None,
    as_json: options.Json = False,
    **more: Any,
) -> None:
    """Find what to release of the public columns: useful, and telling little about the private ones.

    Takes exactly one target: --beta, --min-utility, or a limit on what is told: --max-leakage in bits,
    --max-success, --max-advantage or --max-parity in shares of people, --remove as a share of what the public
    columns tell. 'pfunnel frontier' shows what is possible.

    The joint distribution is estimated from the records of DATA. Prints the utility and leakage of the
    release found, exact on these records, and a 95 % interval for its leakage on the population that the
    records come from.
    """
    targets: dict[str, Any] = {name: more[name] for name in TARGETS}
    named = [name for name, value in targets.items() if value is not None]
    if len(named) != 1:
        raise InvalidInputError(
            f"pass exactly one of {', '.join(list(targets)[:-1])} and remove; got "
            f"{' and '.join(named) or 'none'}.",
            names=targets,
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
    solution = find(joint, **asked, method=method, **problem.settings)
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
    from ..uncertainty import leakage_interval
    from .output import joint_values

    interval = leakage_interval(solution.mechanism, joint, level=LEVEL, rng=seed)
    return {
        "command": "solve",
        **joint_values(data, joint),
        "target": {solution.target.kind: solution.target.value},
        "method": solution.method,
        "status": solution.status.name,
        "converged": solution.status.ok,
        "utility": solution.utility,
        "leakage": solution.leakage,
        "leakage_measure": solution.measures.leakage,
        "leakage_interval": {
            "level": interval.level,
            "low": interval.low,
            "high": interval.high,
            "method": interval.method,
        },
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "gap": solution.gap,
        "n_z": solution.mechanism.n_z,
        "measures": measure(solution.mechanism, joint).to_dict(),
        "n_steps": solution.n_steps,
        "seconds": solution.seconds,
        "notes": list(solution.notes),
    }


def _print(values: dict[str, Any], solution: Solution, asked_method: str, budget: Budget | None) -> None:
    from .output import bits, describe_joint, percent, plural, print_facts
    from .running import in_options

    joint, measures, interval = solution.joint, values["measures"], values["leakage_interval"]
    top, leaked = joint.mutual_information, measures["leakage"]
    facts = [
        ("Asked for", _target(solution) if budget is None else budget.words(joint), ""),
        (
            "Utility",
            f"I(Z;X) = {bits(solution.utility)} bit",
            f"exact on these records; {percent(solution.utility, joint.entropy_x)} of "
            f"H(X) = {bits(joint.entropy_x)}",
        ),
        (
            "Leakage",
            f"I(Z;Y) = {bits(leaked)} bit",
            f"exact on these records; {percent(leaked, top)} of I(X;Y) = {bits(top)}",
        ),
        (
            "",
            f"{bits(interval['low'])} to {bits(interval['high'])} bit",
            f"{100 * LEVEL:g} % interval for the population of these records",
        ),
        (
            "Adversary",
            f"right about {' × '.join(joint.y_names)} {100 * measures['guess_after']:.2f} % of the time",
            f"exact on these records; {100 * measures['guess_before']:.2f} % without the release",
        ),
        *_parity(solution),
        *kept_facts(values["kept"], " × ".join(joint.y_names), measures["guess_before"]),
        ("Mechanism", f"{plural(joint.n_x, 'letter')} → {plural(solution.mechanism.n_z, 'symbol')}", ""),
        (
            "Method",
            solution.method,
            f"{'chosen by auto; ' if asked_method == 'auto' else ''}{plural(solution.n_steps, 'step')}, "
            f"{solution.seconds:.2f} s",
        ),
        ("Status", in_options(solution.status.value, solution.status.names), ""),
        *[("Note", in_options(note, values["target"]), "") for note in solution.notes],
    ]
    if solution.lower_bound is not None:
        facts.insert(4, ("Proved", _bound(solution), f"a bound; {solution.gap:.1g} bit from what was found"))
    if values["output"] is not None:
        files = map(quote, (values["data"], values["output"]))
        keep = "".join(
            f" --keep {quote(one['columns'][0])}" for one in values["kept"] if len(one["columns"]) == 1
        )
        command = "pfunnel release {} --mechanism {} --output released.csv --shuffle".format(*files) + keep
        facts.append(("Saved", values["output"], f"apply it with: {command}"))
    print_facts(f"{_headline(values)}\n{describe_joint(values['data'], joint)}", facts)


def _headline(values: dict[str, Any]) -> str:
    """The result in one sentence: what is kept, and what leaks on these records and on new people."""
    from .output import bits, percent, plural

    interval, measures, private = (
        values["leakage_interval"],
        values["measures"],
        " × ".join(values["private"]),
    )
    kept = f"The release keeps {percent(values['utility'], values['entropy_x'])} of the public information."
    if values["leakage_measure"] == "success":
        return (
            f"{kept} Somebody who sees it is right about {private} {100 * measures['guess_after']:.1f} % of "
            f"the time on these {plural(values['n_records'], 'record')}; without it "
            f"{100 * measures['guess_before']:.1f} %."
        )
    if values["leakage_measure"] == "parity":
        return (
            f"{kept} No rule on it selects two groups of {private} with shares that differ by more than "
            f"{100 * values['leakage']:.1f} % on these {plural(values['n_records'], 'record')}."
        )
    return (
        f"{kept} It leaks {bits(values['leakage'])} bit about {private} on these "
        f"{plural(values['n_records'], 'record')}, and {bits(interval['low'])} to {bits(interval['high'])} "
        f"bit on new people ({100 * LEVEL:g} % interval)."
    )


def _parity(solution: Solution) -> list[tuple[str, str, str]]:
    """How differently two private groups may be treated, where that was the limit."""
    if solution.measures.leakage != "parity":
        return []
    return [("Parity", f"at most {100 * solution.leakage:.2f} % apart", "exact on these records")]


def _target(solution: Solution) -> str:
    from .output import bits

    value = solution.target.value
    return {
        "beta": f"the least I(Z;Y) − {value:g} · I(Z;X), which is {bits(solution.objective)} bit here",
        "min_utility": f"the least leakage with utility ≥ {value:g} bit",
    }[solution.target.kind]


def _bound(solution: Solution) -> str:
    """What holds for every release on these records."""
    from .output import bits

    bound = solution.lower_bound or 0.0
    return {
        "beta": f"no release has I(Z;Y) − {solution.target.value:g} · I(Z;X) below {bits(bound)} bit",
        "min_utility": f"every release of that utility leaks at least {bits(bound)} bit",
        "max_leakage": f"no release of that leakage has a utility above {bits(-bound)} bit",
    }[solution.target.kind]
