"""pfunnel solve: the best release for one target."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from ..uncertainty import LEVEL
from . import options
from .checks import check_outputs, raise_if_interrupted
from .options import Option, columns
from .problem import Problem, kept_facts, measured_kept

if TYPE_CHECKING:
    from ..joint import Joint
    from ..solution import Solution


TARGETS = {
    "beta": Option("Target: minimise leakage − β · utility."),
    "min_utility": Option("Target: the least leakage with at least this utility I(Z;X).", metavar="BITS"),
    "max_leakage": Option("Target: the most utility with at most this leakage I(Z;Y).", metavar="BITS"),
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

    Takes exactly one target: --beta, --min-utility or --max-leakage. 'pfunnel frontier' shows what is
    possible.

    The joint distribution is estimated from the records of DATA. Prints the utility and leakage of the
    release found, exact on these records, and a 95 % interval for its leakage on the population that the
    records come from.
    """
    targets: dict[str, Any] = {name: more[name] for name in TARGETS}
    named = [name for name, value in targets.items() if value is not None]
    if len(named) != 1:
        raise InvalidInputError(
            f"pass exactly one of beta, min_utility and max_leakage; got {' and '.join(named) or 'none'}.",
            names=targets,
        )
    more["delimiter"] = delimiter
    problem = Problem(data, public, private, [method], more, more["keep"] or ())
    check_outputs([output], [data])

    from ..discrete.solve import solve as find
    from .output import print_json

    joint = problem.read(to_be_saved=output is not None)
    beside = problem.read_kept()
    solution = find(joint, **targets, method=method, **problem.settings)
    raise_if_interrupted([solution.status])
    values = _values(data, joint, solution, more["seed"]) | {"output": output}
    values["kept"] = measured_kept(solution.mechanism, beside)
    if output is not None:
        solution.mechanism.save(output)
    if as_json:
        print_json(values)
    else:
        _print(values, solution, method)


def _values(data: str, joint: Joint, solution: Solution, seed: int | None) -> dict[str, Any]:
    from ..information import measure
    from .output import joint_values

    interval = solution.leakage_interval(level=LEVEL, rng=seed)
    return {
        "command": "solve",
        **joint_values(data, joint),
        "target": {solution.target.kind: solution.target.value},
        "method": solution.method,
        "status": solution.status.name,
        "converged": solution.status.ok,
        "utility": solution.utility,
        "leakage": solution.leakage,
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


def _print(values: dict[str, Any], solution: Solution, asked_method: str) -> None:
    from .output import bits, describe_joint, percent, plural, print_facts
    from .running import in_options

    joint, measures, interval = solution.joint, values["measures"], values["leakage_interval"]
    top = joint.mutual_information
    facts = [
        ("Asked for", _target(solution), ""),
        (
            "Utility",
            f"I(Z;X) = {bits(solution.utility)} bit",
            f"exact on these records; {percent(solution.utility, joint.entropy_x)} of "
            f"H(X) = {bits(joint.entropy_x)}",
        ),
        (
            "Leakage",
            f"I(Z;Y) = {bits(solution.leakage)} bit",
            f"exact on these records; {percent(solution.leakage, top)} of I(X;Y) = {bits(top)}",
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

    interval = values["leakage_interval"]
    return (
        f"The release keeps {percent(values['utility'], values['entropy_x'])} of the public information. It "
        f"leaks {bits(values['leakage'])} bit about {' × '.join(values['private'])} on these "
        f"{plural(values['n_records'], 'record')}, and {bits(interval['low'])} to {bits(interval['high'])} "
        f"bit on new people ({100 * LEVEL:g} % interval)."
    )


def _target(solution: Solution) -> str:
    from .output import bits

    value = solution.target.value
    return {
        "beta": f"the least I(Z;Y) − {value:g} · I(Z;X), which is {bits(solution.objective)} bit here",
        "min_utility": f"the least leakage with utility ≥ {value:g} bit",
        "max_leakage": f"the most utility with leakage ≤ {value:g} bit",
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
