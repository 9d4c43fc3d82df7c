"""Unknown distribution: code lengths, the setting of appendix F, pictures and the parameter table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from ..sweep import Run, grid_runs
from ..sweep.judging import JUDGING
from .base import Claim, Experiment, Findings, Record
from .images import (
    BOUND,
    COMMON,
    COSTS,
    CPF,
    DRAWN,
    DVPF,
    EPOCH_SECONDS,
    JUDGE_SECONDS,
    LEAST_ALPHA,
    MEASURES,
    PAPER_SETTING,
    PLAIN,
    PUBLISHED,
    RAW,
    curve_of,
    data,
    fixed_settings,
    scale_notes,
    seconds,
)
from .learned import (
    ERASURE,
    RULE,
    SHARES,
    Group,
    compare,
    compare_settings,
    erased,
    groups,
    joined,
    judges,
    means_table,
)
from .pictures import plot_embeddings, plot_images, plot_tradeoff

PAPER_CODES = {32: 1084742, 64: 1133190, 128: 1230086, 256: 1423878}
#: What the paper says of its setting.
PAPER_PSNR, PAPER_SUCCESS = 24.0, 0.57
# Weights at which the baselines have about the same PSNR at the end, found by single runs.
GAMMAS, LEAK = (12, 15, 20), 0.05
SAME_PSNR = 0.5  # dB
# The widest interval for one more model, to either side, that says that the paper's is one of ours.
WIDEST = 0.15
IMAGES = "images themselves"
ROWS = (PUBLISHED, CPF, DVPF, IMAGES)
# An adversary that records without an encoder cannot have.
NEEDS_ENCODER = "network with fresh noise"
LATER = "privacyfunnel.experiments.later:later_epochs"
# Epochs after the last, and embeddings of each.
N_MORE, N_EMBEDDINGS = 6, 2


def length_runs(scale: str) -> list[Run]:
    """The published program with codes of several lengths; the autoencoder and the bound of figure 2a."""
    codes, pairs, seeds = {
        "smoke": ([4, 8], [(0.01, 0.05)], range(1)),
        "small": ([64, 256], [(0.01, 0.05), (0.01, 0.02), (0.005, 0.01)], range(2)),
        "paper": ([32, 64, 128, 256], [(0.01, b) for b in (5e-3, 1.6e-2, 5e-2)], range(3)),
    }[scale]
    where = data("mnist", scale)
    runs = [
        run
        for alpha, beta in pairs
        for run in grid_runs(
            "published",
            where,
            settings={**COMMON[scale], "alpha": alpha, "beta": beta},
            grid={"n_components": codes, "seed": seeds},
        )
    ]
    plain = {**fixed_settings("autoencoder", scale), "alpha": LEAST_ALPHA, "n_components": codes[0]}
    return [*runs, *grid_runs("autoencoder", where, settings=plain, grid={"seed": seeds}), Run(BOUND, where)]


def _length(record: Record) -> str:
    if record["run"]["method"] == "published":
        return f"d = {record['run']['settings']['n_components']}"
    return curve_of(record) or "bound"


def find_length(records: Sequence[Record], scale: str) -> Findings:
    """Whether longer codes tell an adversary less at the same PSNR."""
    mine = [r for r in records if _length(r).startswith("d = ")]
    lengths = sorted({r["run"]["settings"]["n_components"] for r in mine})
    curves = {f"d = {d}": [r for r in mine if _length(r) == f"d = {d}"] for d in lengths}
    found = groups(curves)
    longest, shortest = ([g for g in found if g.curve == f"d = {d}"] for d in (lengths[-1], lengths[0]))
    claims = []
    for cost, kind in COSTS.items():
        step = compare(longest, shortest, "psnr_fresh", cost, through=joined) if len(lengths) > 1 else None
        claims.append(
            Claim(
                "appendix E, published" + ("" if cost == "clustering" else ", with labels"),
                "A longer code is more robust at the same reconstruction quality.",
                f"{kind[0].upper()}{kind[1:]}: success with d = {lengths[-1]} minus d = {lengths[0]} "
                f"{step or 'has no PSNR in common'}.",
                None if step is None else step.less,
                (f"d = {lengths[-1]}", f"d = {lengths[0]}"),
            )
        )
    drawn = plot_tradeoff(
        [*found, *groups({ERASURE: erased([r for r in records if _length(r) == PLAIN], SHARES)})],
        "psnr_fresh",
        DRAWN,
        "quality of a fresh decoder, PSNR  [dB]",
        "MNIST, DCA (published), codes of several lengths",
    )
    notes = [*scale_notes(scale), RULE, judges(records)]
    return Findings({"code-length": means_table(found, MEASURES)}, claims, {"code-length": drawn}, notes)


def setting_runs(scale: str) -> list[Run]:
    """The published program at α = 0.01, β = 0.05, d = 256, with CPF and DVPF at about its PSNR."""
    length = {"n_components": 8 if scale == "smoke" else 256}
    where, seeds = data("mnist", scale), range({"smoke": 1, "small": 2, "paper": 3}[scale])
    several: dict[str, list[dict[str, float]]] = {
        "published": [PAPER_SETTING],
        "conditional": [{"gamma": gamma} for gamma in (GAMMAS if scale == "paper" else GAMMAS[-1:])],
        "deep-variational": [] if scale == "small" else [{"alpha": LEAK}],  # hours
    }
    runs = [
        run
        for method, settings in several.items()
        for one in settings
        for run in grid_runs(
            method, where, settings={**fixed_settings(method, scale), **length, **one}, grid={"seed": seeds}
        )
    ]
    raw = {
        "adversaries": [a for a in COMMON[scale]["adversaries"] if a != NEEDS_ENCODER],
        "effort": "default",
    }
    return [
        *runs,
        *(_later_run(run, scale) for run in runs if run.method != "deep-variational"),
        *grid_runs(RAW, where, settings=raw, grid={"seed": seeds}),
    ]


def _later_run(run: Run, scale: str) -> Run:
    return Run(
        LATER,
        run.data,
        {
            "method": run.method,
            "settings": {name: value for name, value in run.settings.items() if name not in JUDGING},
            "n_more": 1 if scale == "smoke" else N_MORE,
            "adversary": COMMON[scale]["adversaries"][-1],
            "n_repeats": 1 if scale == "smoke" else N_EMBEDDINGS,
        },
        run.seed,
    )


def _setting_curve(record: Record) -> str | None:
    run = record["run"]
    if run["method"] == RAW:
        return IMAGES
    if run["method"] != LATER:
        return curve_of(record)
    return _later(curve_of({"run": {**run, **run["settings"]}}))


def _later(curve: str | None) -> str:
    return f"{curve}, later epochs"


def _setting_seconds(run: Run) -> float:
    if run.method == RAW:
        return JUDGE_SECONDS["small" if len(run.settings["adversaries"]) > 2 else "smoke"]
    if run.method != LATER:
        return seconds(run)
    if COMMON["smoke"]["adversaries"][-1] == run.settings["adversary"]:
        return 2.0
    epochs = run.settings["n_more"] + 1  # the training itself is another run's
    return float(epochs * (EPOCH_SECONDS[run.settings["method"]] + 5 * run.settings["n_repeats"]))


def find_setting(records: Sequence[Record], scale: str) -> Findings:
    """Whether the paper's numbers come out, and what baselines, at the same PSNR, and images tell."""
    later = [r for r in records if r["run"]["method"] == LATER]
    rows = [r for r in records if r["run"]["method"] != LATER]
    records = _over_epochs(rows, later)
    curves = {curve: [r for r in records if _setting_curve(r) == curve] for curve in ROWS}
    found = groups({curve: part for curve, part in curves.items() if part})
    parts = {curve: [g for g in found if g.curve == curve] for curve in curves}
    claims: list[Claim] = []
    if parts[PUBLISHED]:
        moved = [r["values"]["clustering"] for r in later if _setting_curve(r) == _later(PUBLISHED)]
        claims += _paper_point(parts[PUBLISHED][0], moved)
    for rival in (CPF, DVPF):
        if parts[PUBLISHED] and parts[rival]:
            claims += [_at_the_point(parts[PUBLISHED], parts[rival], rival, cost) for cost in COSTS]
    if parts[PUBLISHED] and parts[IMAGES]:
        claims += [_more_ambiguous(parts[PUBLISHED][0], parts[IMAGES][0], cost) for cost in COSTS]
    notes = [
        *scale_notes(scale),
        "`psnr` is that of the method's own decoder, which for CPF sees the class; `psnr_fresh` that of a "
        f"new decoder which learns from releases alone, {COMMON[scale]['decoder_steps']:,} steps. A row for "
        "each run; clustering is the mean over three embeddings.",
        f"{RULE} Curves that end less than {SAME_PSNR} dB from one another are compared there.",
        *([judges(records)] if records else []),
        "Clustering moves from one epoch to the next. Statements about it compare means over the last epoch "
        f"and {N_MORE} more, {N_EMBEDDINGS} embeddings each, where computed (table of epochs); "
        "a model that was kept goes on with a new optimiser there. That was decided after "
        "three models had been seen at one epoch.",
    ]
    tables = {"appendix-f": _rows(rows)}
    if later:
        tables["appendix-f-epochs"] = _later_rows(later)
    return Findings(tables, claims, {}, notes)


def _over_epochs(records: Sequence[Record], later: Sequence[Record]) -> list[Record]:
    """The records, with the mean success of clustering over the last epochs where they were measured."""
    found: dict[Any, list[float]] = {_place(r): r["values"]["clustering"] for r in later}
    return [
        {**r, "values": {**r["values"], "clustering": statistics.fmean(found[_place(r)])}}
        if _place(r) in found
        else r
        for r in records
    ]


def _later_rows(later: Sequence[Record]) -> dict[str, list[Any]]:
    """A row for each epoch of each run."""
    table: dict[str, list[Any]] = {
        name: [] for name in ("method", "weight", "seed", "epoch", "psnr", "clustering")
    }
    for record in sorted(later, key=_place):
        run, values = record["run"], record["values"]
        inside = {**run, **run["settings"]}
        for epoch, psnr, clustering in zip(
            *(values[name] for name in ("epoch", "psnr", "clustering")), strict=True
        ):
            row = (curve_of({"run": inside}), _weight(inside), run["seed"], epoch, psnr, clustering)
            for column, value in zip(table.values(), row, strict=True):
                column.append(value)
    return table


def _rows(records: Sequence[Record]) -> dict[str, list[Any]]:
    """A row for each run, by method, weight and seed."""
    ordered = sorted(records, key=_place)
    runs = [record["run"] for record in ordered]
    table: dict[str, list[Any]] = {
        "method": [_setting_curve(record) for record in ordered],
        "weight": [_weight(run) for run in runs],
        "seed": [run["seed"] for run in runs],
        "epochs": [run["settings"].get("epochs") for run in runs],
    }
    names = {
        **{name: name for name in ("psnr", "psnr_fresh", "clustering")},
        "clustering_low": "clustering, from",
        "clustering_high": "clustering, to",
        "success_with_labels": "success",
        "strongest": "strongest",
        **{
            f"success_{name.replace(' ', '_')}": f"success, {name}"
            for name in COMMON["paper"]["adversaries"][:-1]
        },
        "leakage": "bits, at least",
        "n_judged": "records judged",
        "n_parameters": "parameters",
    }
    values = [record["values"] for record in ordered]
    for key, name in names.items():
        if any(key in one for one in values):
            table[name] = [one.get(key) for one in values]
    return table


def _place(record: Record) -> tuple[Any, ...]:
    run = record["run"]
    if run["method"] == LATER:
        run = {**run, **run["settings"]}
    return ROWS.index(_setting_curve({"run": run}) or PUBLISHED), _weight(run), run["seed"]


def _weight(run: Any) -> str:
    names = {"gamma": "γ", "alpha": "α", "beta": "β"}
    settings = run["settings"]
    return ", ".join(f"{sign} = {settings[name]:g}" for name, sign in names.items() if name in settings)


def _paper_point(group: Group, moved: Sequence[Sequence[float]]) -> list[Claim]:
    """The two numbers of the paper, each beside ours; one seed decides nothing.

    The paper's success is that of one model at one epoch. `moved` has ours, epoch by epoch for each seed.
    """
    psnr = group.values("psnr")
    epochs = [success for seed in moved for success in seed]
    told = f"{min(epochs):.3f} to {max(epochs):.3f} in single epochs, " if epochs else ""
    range_of_one = _one_more(moved)
    most = group.values("leakage_most")
    whole = f" of {statistics.fmean(most):.2f}" if most else ""
    interval = ""
    if range_of_one is not None:
        interval = f" One more model at one epoch: {range_of_one[0]:.2f} to {range_of_one[1]:.2f} (95 %)."
    return [
        Claim(
            "appendix F, published",
            f"With α = 0.01, β = 0.05, d = 256 the PSNR is {PAPER_PSNR:.0f} dB.",
            f"Own decoder {_digits(psnr, 2)} dB, fresh decoder {_digits(group.values('psnr_fresh'), 2)} dB; "
            f"{len(psnr)} seeds. Within 1 dB counts as the same.",
            abs(group.mean("psnr") - PAPER_PSNR) <= 1 if len(psnr) > 1 else None,
            (PUBLISHED,),
        ),
        Claim(
            "appendix F, published",
            f"There the clustering adversary's success is {PAPER_SUCCESS}.",
            f"Clustering {told}{_digits(epochs or group.values('clustering'), 3)}; the strongest adversary "
            f"with labels has {_digits(group.values('success_with_labels'), 3)}, at least "
            f"{_digits(group.values('leakage'), 2)} bit{whole}.{interval} It holds where this has the "
            f"paper's and is no wider than {WIDEST} to either side, and does not where it has not.",
            _has(range_of_one, PAPER_SUCCESS),
            (PUBLISHED, _later(PUBLISHED)),
        ),
    ]


def _one_more(seeds: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """Where one more model at one epoch lies in 95 of 100 cases, as far as these tell, epoch by epoch.

    Few models say little of how far another may lie from them: Student's quantile.
    """
    if len(seeds) < 2:
        return None
    from scipy.stats import t

    n, n_epochs = len(seeds), sum(map(len, seeds))
    means = [statistics.fmean(seed) for seed in seeds]
    between = statistics.variance(means) * (1 + 1 / n)
    within = statistics.fmean(statistics.variance(seed) if len(seed) > 1 else 0.0 for seed in seeds)
    # Satterthwaite's: models are few, epochs more.
    spent = between**2 / (n - 1) + (within**2 / (n_epochs - n) if n_epochs > n else 0.0)
    freedom = (between + within) ** 2 / spent if spent > 0 else math.inf
    half = float(t.ppf(0.975, freedom)) * math.sqrt(between + within)
    middle = statistics.fmean(means)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _has(interval: tuple[float, float] | None, value: float) -> bool | None:
    if interval is None:
        return None
    if not interval[0] <= value <= interval[1]:
        return False
    return True if interval[1] - interval[0] <= 2 * WIDEST else None


def _digits(values: Sequence[float], digits: int) -> str:
    """Mean and standard deviation with so many decimals."""
    mean = f"{statistics.fmean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def _at_the_point(mine: Sequence[Group], theirs: Sequence[Group], rival: str, cost: str) -> Claim:
    """Against a baseline at the same PSNR, of fresh decoders for the verdict, and of their own."""
    kind = "clustering adversary" if cost == "clustering" else "strongest adversary with labels"
    fresh, own = (
        compare(mine, theirs, gain, cost, same=SAME_PSNR, through=joined) for gain in ("psnr_fresh", "psnr")
    )
    return Claim(
        "appendix F, published" + ("" if cost == "clustering" else ", with labels"),
        f"There the {kind} has less success against DCA than against {rival} at the same PSNR.",
        f"{PUBLISHED} minus {rival} at the same fresh PSNR: {fresh or 'none in common'}; at the same PSNR of "
        f"their own decoders: {own or 'none in common'}. {PUBLISHED} {_told(mine, cost)} (fresh); {rival} "
        f"{_told(theirs, cost)}.{fresh.remark if fresh else ''}",
        None if fresh is None else fresh.less,
        (PUBLISHED, rival) + ((_later(PUBLISHED), _later(rival)) if cost == "clustering" else ()),
    )


def _more_ambiguous(codes: Group, images: Group, cost: str) -> Claim:
    """Whether an adversary does worse with the codes than with the images themselves."""
    kind = "clustering adversary" if cost == "clustering" else "strongest adversary with labels"
    found = compare_settings(codes, images, cost)
    told = (_digits(group.values(cost), 3) for group in (codes, images))
    return Claim(
        "appendix F, published" + ("" if cost == "clustering" else ", with labels"),
        f"Classes are more ambiguous in the codes than in the images: the {kind} has less success.",
        f"Success with the codes {next(told)}, with the images {next(told)}: {found or 'not measured'}.",
        None if found is None else found.less,
        (PUBLISHED, IMAGES) + ((_later(PUBLISHED),) if cost == "clustering" else ()),
    )


def _told(found: Sequence[Group], cost: str) -> str:
    """The settings of a curve, by rising PSNR."""
    points = sorted((group.mean("psnr_fresh"), group.mean(cost)) for group in found)
    return ", ".join(f"{success:.3f} at {psnr:.2f} dB" for psnr, success in points)


def picture_runs(scale: str) -> list[Run]:
    """The paper's example, α = 0.01, β = 0.05, and its parameter table."""
    fixed = {key: value for key, value in COMMON[scale].items() if key not in JUDGING}
    example = Run(
        "privacyfunnel.experiments.functions:pictures",
        data("mnist", scale),
        {
            "settings": {**fixed, **PAPER_SETTING, "n_components": 8 if scale == "smoke" else 256},
            "n_points": {"smoke": 0, "small": 2000, "paper": 5000}[scale],
        },
    )
    sizes = grid_runs(
        "privacyfunnel.experiments.functions:parameters",
        settings={"n_features": 784, "n_classes": 10},
        grid={"n_components": list(PAPER_CODES)},
    )
    return [example, *sizes]


def find_pictures(records: Sequence[Record], scale: str) -> Findings:
    """Samples, reconstructions, embeddings, and the number of parameters."""
    sizes = {
        r["run"]["settings"]["n_components"]: r["values"]["n_parameters"]
        for r in records
        if r["run"]["data"] is None
    }
    figures, notes = {}, scale_notes(scale)
    for example in (r for r in records if r["run"]["data"] is not None):
        values = example["values"]
        title = f"Reconstructed, {values['psnr']:.1f} dB"
        figures["samples"] = plot_images(values["images"], "Test images")
        figures["reconstructions"] = plot_images(values["reconstructions"], title)
        if "classes" in values:
            points = {"UMAP of the images": values["embedded_x"], "UMAP of their codes": values["embedded_z"]}
            figures["embeddings"] = plot_embeddings(points, values["classes"], "Where the digits lie")
        epochs = example["run"]["settings"]["settings"]["epochs"]
        notes = [*notes, f"The example is {PUBLISHED}, trained for {epochs} epochs."]
    table: dict[str, list[Any]] = {
        "d": list(PAPER_CODES),
        "parameters, paper": list(PAPER_CODES.values()),
        "parameters, here": [sizes.get(d) for d in PAPER_CODES],
    }
    claims = [
        Claim(
            "table I",
            "The networks have 1,084,742 to 1,423,878 parameters for d = 32 to 256.",
            ", ".join(f"{sizes[d]:,}" for d in PAPER_CODES if d in sizes) + ".",
            sizes == PAPER_CODES,
        ),
    ]
    return Findings({"parameters": table}, claims, figures, notes)


EXPERIMENTS = (
    Experiment(
        "appendix-f",
        "Appendix F: the setting α = 0.01, β = 0.05, d = 256 on MNIST",
        setting_runs,
        find_setting,
        _setting_seconds,
        kept=True,
        curve_of=_setting_curve,
    ),
    Experiment(
        "code-length",
        "Code length and the trade-off on MNIST",
        length_runs,
        find_length,
        seconds,
        kept=True,
        curve_of=_length,
    ),
    Experiment(
        "pictures",
        "Samples, reconstructions, embeddings and the parameter table",
        picture_runs,
        find_pictures,
        seconds,
    ),
)
