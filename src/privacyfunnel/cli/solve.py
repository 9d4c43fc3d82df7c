"""pfunnel solve: the best release for one target."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from ..uncertainty import LEVEL
from . import options
from .kept import check_kept, kept_facts, measured_kept

if TYPE_CHECKING:
    from ..joint import Joint
    from ..solution import Solution


def solve(
    data: options.Data,
    public: options.Public,
    private: options.Private,
    beta: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            callback=options.numbers,
            help="Target: minimise leakage − β · utility.",
        ),
    ] = None,
    min_utility: Annotated[
        float | None,
        typer.Option(
            metavar="BITS",
            callback=options.numbers,
            help="Target: the least leakage with at least this utility I(Z;X).",
        ),
    ] = None,
    max_leakage: Annotated[
        float | None,
        typer.Option(
            metavar="BITS",
            callback=options.numbers,
            help="Target: the most utility with at most this leakage I(Z;Y).",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column that is to be handed out beside z: what it tells, alone and with z, is measured. "
            "Repeat for several.",
        ),
    ] = None,
    method: options.Method = "auto",
    alpha: options.Alpha = None,
    penalty: options.Penalty = None,
    n_z: options.Symbols = None,
    n_starts: options.Starts = 20,
    tol: options.Tol = 1e-6,
    max_steps: options.MaxSteps = 10_000,
    time_limit: options.TimeLimit = 300.0,
    n_jobs: options.Jobs = -1,
    seed: options.Seed = None,
    missing: options.Missing = "error",
    max_letters: options.MaxLetters = options.LETTERS,
    delimiter: options.Delimiter = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Save the mechanism here, for 'pfunnel release'."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Find what to release of the public columns: useful, and telling little about the private ones.

    Takes exactly one target: --beta, --min-utility or --max-leakage. 'pfunnel frontier' shows what is
    possible.

    The joint distribution is estimated from the records of DATA. Prints the utility and leakage of the
    release found, exact on these records, and a 95 % interval for its leakage on the population that the
    records come from.
    """
    targets = {"beta": beta, "min_utility": min_utility, "max_leakage": max_leakage}
    named = [name for name, value in targets.items() if value is not None]
    if len(named) != 1:
        raise InvalidInputError(
            f"pass exactly one of beta, min_utility and max_leakage; got {' and '.join(named) or 'none'}."
        )
    options.check_settings([method], alpha, penalty)
    options.check_outputs([output], [data])
    kept = tuple(keep or ())
    check_kept(data, kept, public, private, delimiter)

    from ..discrete.solve import solve as find
    from .output import print_json

    joint = options.read_data(data, public, private, missing, max_letters, delimiter, output is not None)
    solution = find(
        joint,
        beta=beta,
        min_utility=min_utility,
        max_leakage=max_leakage,
        method=method,
        alpha=alpha,
        penalty=penalty,
        n_z=n_z,
        n_starts=n_starts,
        tol=tol,
        max_steps=max_steps,
        time_limit=time_limit,
        n_jobs=n_jobs,
        rng=seed,
    )
    options.raise_if_interrupted([solution.status])
    values = _values(data, joint, solution, seed) | {"output": output}
    values["kept"] = measured_kept(
        data,
        solution.mechanism,
        kept,
        public=public,
        private=private,
        max_letters=max_letters,
        delimiter=delimiter,
    )
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
    targets = {name: getattr(solution, name) for name in ("beta", "min_utility", "max_leakage")}
    return {
        "command": "solve",
        **joint_values(data, joint),
        "target": {name: value for name, value in targets.items() if value is not None},
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
        ("Status", in_options(solution.status.value), ""),
        *[("Note", in_options(note), "") for note in solution.notes],
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

    if solution.beta is not None:
        return f"the least I(Z;Y) − {solution.beta:g} · I(Z;X), which is {bits(solution.objective)} bit here"
    if solution.min_utility is not None:
        return f"the least leakage with utility ≥ {solution.min_utility:g} bit"
    return f"the most utility with leakage ≤ {solution.max_leakage:g} bit"


def _bound(solution: Solution) -> str:
    """What holds for every release on these records."""
    from .output import bits

    bound = solution.lower_bound or 0.0
    if solution.beta is not None:
        return f"no release has I(Z;Y) − {solution.beta:g} · I(Z;X) below {bits(bound)} bit"
    if solution.min_utility is not None:
        return f"every release of that utility leaks at least {bits(bound)} bit"
    return f"no release of that leakage has a utility above {bits(-bound)} bit"
