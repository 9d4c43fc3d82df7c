"""Unknown distribution: images whose class is private (figures 2a and 2b), by readings of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..auditing.adversaries.clustering import N_EPOCHS as N_ROUNDS
from ..sweep import Run, grid_runs
from .base import Claim, Experiment, Findings, Record
from .learned import (
    ALONE,
    ERASURE,
    OURS,
    RULE,
    SHARED,
    SHARES,
    Group,
    compare,
    erased,
    groups,
    joined,
    judges,
    levels_table,
    means_table,
    most_told,
    no_more,
    shared,
    worse_than_nothing,
)
from .pictures import plot_tradeoff
from .unclamped import METHOD as UNCLAMPED

BOUND = "privacyfunnel.experiments.functions:no_leakage"
RAW = "privacyfunnel.experiments.functions:raw_records"
PUBLISHED, WRITTEN, MENDED = "DCA (published)", "DCA (written)", "DCA (written, mended)"
ALIGNED = "ours, aligned"
CPF, DVPF, VAE, PLAIN = "CPF", "DVPF", "VAE", "autoencoder"
CURVES = {
    PUBLISHED: "published",
    WRITTEN: "written",
    MENDED: "written-mended",
    OURS: "funnel",
    ALIGNED: "funnel",
    CPF: "conditional",
    DVPF: "deep-variational",
    VAE: "autoencoder",
    PLAIN: "autoencoder",
    ALONE: "funnel",
}
READINGS = {"published": "published", "written": "written", "mended": "written-mended"}
#: Of appendix F.
PAPER_SETTING = {"alpha": 0.01, "beta": 0.05}
# Of a nat of code: `Funnel` finds 0.0054 by itself for MNIST and 0.0088 for Fashion-MNIST.
OUR_PRICE = 0.004
# Below 13 dB more weight of Î alone does not help, and more noise does. Found with a seed that no table has.
OUR_NOISY = {"leakage_weight": 2, "alpha": 0.02}
# Near 18 dB less noise tells less at the same PSNR; so little may hide from judges with few records. Found
# with the same seed.
OUR_PRECISE = {"leakage_weight": 0.3, "alpha": 0.002}
#: KL weight of the autoencoder that stands for no noise; larger ones are VAEs.
LEAST_ALPHA = 1e-3
# Of MNIST at small scale, with one more seed than the others have: settings near the paper's PSNR; and ours,
# whose settings were chosen after looks at runs of the first two, with random erasure, which is next to it.
MORE_SEED = 2
SEEN_AGAIN: dict[str, tuple[dict[str, float], ...]] = {
    "published": ({"alpha": 0.01, "beta": 0.02}, PAPER_SETTING),
    "conditional": ({"gamma": 4}, {"gamma": 20}),
    "funnel": (
        *({"leakage_weight": weight} for weight in (1, 0.5, 0.3, 0.15)),
        OUR_NOISY,
        OUR_PRECISE,
    ),
    "autoencoder": ({"alpha": LEAST_ALPHA},),
}
#: Curves of releases that are mixed from others.
YARDSTICKS = (ERASURE, SHARED)
#: Near the paper's 24 dB: the published program's settings further below are next to collapse.
USEFUL = 21.0
#: The fresh PSNR between which our own setting is compared.
OUR_RANGE = (12.5, 18.0)
OUR_LEVELS = [12.5 + 0.5 * k for k in range(12)]
SHARED_LEVELS = [12 + 0.25 * k for k in range(53)]
JUDGES: dict[str, dict[str, Any]] = {
    "smoke": {
        "adversaries": ["logistic regression", "network with fresh noise", "KMeans"],
        "effort": "default",
        "decoder_steps": 50,
    },
    "small": {
        "adversaries": [
            *("logistic regression", "neural network", "network with fresh noise", "nearest neighbours"),
            "UMAP and KMeans",
        ],
        "effort": "default",
        "decoder_steps": 4000,
    },
}
JUDGES["paper"] = {**JUDGES["small"], "n_repeats": 3}
# The paper's batch and rate at every scale but the tests'. At the small one, 43 epochs are 5,074 updates.
COMMON: dict[str, dict[str, Any]] = {
    "smoke": {"hidden": [24], "epochs": 2, "batch_size": 64, **JUDGES["smoke"]},
    "small": {"epochs": 43, "batch_size": 256, "learning_rate": 3e-4, **JUDGES["small"]},
    "paper": {"epochs": 100, "batch_size": 256, "learning_rate": 3e-4, **JUDGES["paper"]},
}
#: CPU seconds of an epoch over 60,000 records of 28 × 28, and of a judge with 4,000 steps of its decoder.
EPOCH_SECONDS = {
    "published": 5.0,
    "written": 5.5,
    "written-mended": 5.0,
    "funnel": 8.5,
    "conditional": 4.5,
    "deep-variational": 21.0,
    "autoencoder": 4.4,
}
# Of `Funnel()` by itself, with so many images.
DEFAULT_EPOCHS = 17
# With aligned records, whose front end is fitted, too.
ALIGNED_SECONDS = 14.0
JUDGE_SECONDS = {"smoke": 2.0, "small": 80.0, "paper": 80.0}
# Names of numbers are those of `audit`'s summary.
COSTS = {
    "clustering": "the paper's adversary: clusters",
    "success_with_labels": "strongest adversary with labels",
}
#: Of a figure: title, label and scale of each panel.
DRAWN = {
    "clustering": ("The paper's adversary: clusters", "share guessed right", "linear"),
    "success_with_labels": ("Strongest adversary with labels", "share guessed right", "logit"),
    "leakage": ("The same in bits", "bits found about the class, at least", "linear"),
}
TITLES = {"mnist": "MNIST", "fashion": "Fashion-MNIST"}
MEASURES = ("psnr_fresh", "psnr", "clustering", "success_with_labels", "leakage", "n_judged", "n_parameters")


def data(name: str, scale: str) -> dict[str, Any]:
    """The image set at a scale; the small one judges on the test images and 20,000 that it left out."""
    if scale == "smoke":
        return {"name": "digits", "n_train": 300, "n_test": 200}
    return {"name": name, **({"n_train": 30_000, "n_test": 30_000} if scale == "small" else {})}


def scale_notes(scale: str) -> list[str]:
    """How this scale differs from the paper's experiment."""
    if scale == "smoke":
        return ["scikit-learn's digits stand in for the images: this shows that everything runs, no more."]
    notes = [
        "Boosted trees are left out of the adversaries: with ten classes they would take most of the time. "
        f"UMAP lays out in {N_ROUNDS} rounds; its default for so few points is 500."
    ]
    if scale == "paper":
        return notes
    here, paper = COMMON[scale], COMMON["paper"]
    n = data("mnist", scale)["n_train"]
    updates = here["epochs"] * math.ceil(n / here["batch_size"])
    return [
        f"{n:,} training images and {here['epochs']} epochs, {updates:,} updates with the paper's batches of "
        f"{here['batch_size']} and its rate of {here['learning_rate']:g}; the paper has 60,000 and "
        f"{paper['epochs']}. Judges have the 10,000 test images and 20,000 that were left out of training. "
        "Ours has the rate of `Funnel()`.",
        *notes,
    ]


def tradeoff_runs(name: str, scale: str) -> list[Run]:
    """Every reading and baseline over its weights, for each code length and seed."""
    where = data(name, scale)
    codes = {"smoke": [6], "small": [64], "paper": [32, 64, 128, 256]}[scale]
    seeds = {"smoke": range(1), "small": range(2), "paper": range(3)}[scale]
    runs = [Run(BOUND, where)]
    if name == "mnist":
        printed = {**PAPER_SETTING, "n_components": codes[0], "batch_size": COMMON[scale]["batch_size"]}
        runs.append(Run(UNCLAMPED, where, {**printed, "epochs": 2}))
    for method, several in weights(scale, few=name != "mnist").items():
        for one in several:
            grid = {"n_components": codes, "seed": seeds}
            runs += grid_runs(method, where, settings={**fixed_settings(method, scale), **one}, grid=grid)
    runs += grid_runs(
        "funnel", where, settings=_left_alone(scale), grid={"n_components": codes, "seed": seeds}
    )
    if scale == "small" and name == "mnist":
        for method, one in (("published", PAPER_SETTING), ("conditional", {"gamma": 20})):
            settings = {**fixed_settings(method, scale), **one}
            runs += grid_runs(method, where, settings={**settings, "n_components": 256}, grid={"seed": seeds})
        for method, more in SEEN_AGAIN.items():
            for one in more:
                settings = {**fixed_settings(method, scale), **one, "n_components": codes[0]}
                runs.append(Run(method, where, settings, MORE_SEED))
    return runs


def fixed_settings(method: str, scale: str) -> dict[str, Any]:
    """What all runs of a method share: ours has its own rate, CPF and DVPF the program's likelihood."""
    fixed = dict(COMMON[scale])
    if method == "funnel":
        fixed.pop("learning_rate", None)
        fixed["alpha"] = OUR_PRICE
    if method in ("conditional", "deep-variational"):
        fixed["likelihood"] = "bernoulli"
    return fixed


def _left_alone(scale: str) -> dict[str, Any]:
    """How `Funnel()` is judged when nothing is set; the tests' is made small."""
    small = {"hidden": COMMON[scale]["hidden"], "epochs": 2} if scale == "smoke" else {}
    return {**JUDGES[scale], **small}


def weights(scale: str, *, few: bool) -> dict[str, list[dict[str, Any]]]:
    """The weights of each method; `few` leaves some of the small scale out."""

    def several(name: str, *values: float) -> list[dict[str, Any]]:
        return [{name: value} for value in values]

    def aligned(settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**one, "align": True} for one in settings]

    def pairs(*values: tuple[float, float]) -> list[dict[str, Any]]:
        return [{"alpha": alpha, "beta": beta} for alpha, beta in values]

    if scale == "smoke":
        return {
            **{method: [PAPER_SETTING] for method in READINGS.values()},
            "funnel": several("leakage_weight", 1),
            "conditional": several("gamma", 1),
            "deep-variational": several("alpha", 0.3),
            "autoencoder": several("alpha", LEAST_ALPHA, 0.3),
        }
    if scale == "paper":
        steps = (5e-4, 1.6e-3, 5e-3, 1.6e-2, 5e-2)
        grid = pairs(*((alpha, beta) for alpha in steps for beta in steps))
        baseline = (1e-3, 6e-3, 4e-2, 0.25, 1.6, 10)
        return {
            **dict.fromkeys(READINGS.values(), grid),
            "funnel": [*(ours := several("leakage_weight", 4, 2, 1, 0.5, 0.3, 0.2)), *aligned(ours)],
            "conditional": several("gamma", *baseline, 20),
            "deep-variational": several("alpha", *baseline),
            "autoencoder": several("alpha", LEAST_ALPHA, 0.03, 0.1, 0.3, 1),
        }
    all_of_them = {
        "published": pairs((0.01, 0.05), (0.005, 0.01), (0.05, 0.01), (0.01, 0.02)),
        "written": pairs((0.01, 0.05), (0.1, 0.01), (0.05, 0.02)),
        "written-mended": pairs((0.01, 0.05), (0.01, 0.02)),
        "funnel": [
            *several("leakage_weight", 1, 0.3),
            OUR_NOISY,
            *several("leakage_weight", 0.15, 0.5),
            OUR_PRECISE,
            *aligned(several("leakage_weight", 1, 0.3)),
        ],
        "conditional": several("gamma", 1, 0.15, 4, 0.4, 20),
        "deep-variational": several("alpha", 0.5, 50),
        "autoencoder": several("alpha", LEAST_ALPHA, 0.3, 1, 0.1, 2),
    }
    if not few:
        return all_of_them
    # DVPF stays above 18 dB on MNIST with larger weights, too.
    most = {
        "published": 3,
        "written": 2,
        "written-mended": 1,
        "deep-variational": 1,
        "autoencoder": 4,
        "funnel": 4,
    }
    found = {method: part[: most.get(method)] for method, part in all_of_them.items()}
    # Fashion-MNIST is harder to restore: less weight for the upper end of what is compared.
    return {**found, "funnel": [*found["funnel"], *several("leakage_weight", 0.1)]}


def seconds(run: Run) -> float:
    """An epoch grows with the records; judges with their number."""
    if run.data is None:  # networks that are built and hardly trained
        return 5.0
    if run.method == BOUND:
        return 60.0
    if run.method == UNCLAMPED:
        return 20.0
    scale = "smoke" if run.data["name"] == "digits" else "small" if "n_train" in run.data else "paper"
    settings = run.settings.get("settings", run.settings)
    share = {"smoke": 0.001, "small": run.data.get("n_train", 0) / 60_000, "paper": 1.0}[scale]
    epoch = ALIGNED_SECONDS if settings.get("align") else EPOCH_SECONDS.get(run.method, 7.7)
    training = epoch * settings.get("epochs", DEFAULT_EPOCHS) * share
    return float(training + JUDGE_SECONDS[scale])


def curve_of(record: Record) -> str | None:
    """The curve that a record belongs to."""
    method, settings = record["run"]["method"], record["run"]["settings"]
    if method == "autoencoder":
        return PLAIN if settings["alpha"] <= LEAST_ALPHA else VAE
    if method == "funnel" and "alpha" not in settings:  # nothing is set
        return ALONE
    if method == "funnel" and settings.get("align"):
        return ALIGNED
    return next((name for name, one in CURVES.items() if one == method), None)


def curves_of(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records by curve, with random erasure of the autoencoder's codes, and ours sharing time with it."""
    curves = {curve: [r for r in records if curve_of(r) == curve] for curve in CURVES}
    lengths = sorted({r["run"]["settings"]["n_components"] for r in curves[PLAIN]})
    plain = [r for r in curves[PLAIN] if r["run"]["settings"]["n_components"] == lengths[-1]]
    return {
        **{name: part for name, part in curves.items() if part},
        ERASURE: erased(plain, SHARES),
        SHARED: shared([*curves[OURS], *plain], SHARED_LEVELS),
    }


def bound_of(records: Sequence[Record]) -> float | None:
    """The most PSNR of a release without leakage, where it was computed."""
    return next((r["values"]["psnr_bound"] for r in records if r["run"]["method"] == BOUND), None)


def find_tradeoff(records: Sequence[Record], scale: str, *, name: str, figure: str) -> Findings:
    """What adversaries find against fresh PSNR, and the statements of each reading and ours about it."""
    found = groups(curves_of(records))
    lengths = _lengths_of_all(found)
    parts = {
        curve: [g for g in found if g.curve == curve and (curve in YARDSTICKS or g.settings[0] in lengths)]
        for curve in (*CURVES, *YARDSTICKS)
    }
    claims = [
        claim
        for reading, curve in zip(READINGS, (PUBLISHED, WRITTEN, MENDED), strict=True)
        for cost in COSTS
        for rival in (CPF, DVPF)
        for claim in _against(parts, reading, curve, rival, cost, figure)
    ]
    if name == "mnist":
        claims += [
            claim
            for cost in COSTS
            for claim in _against(parts, "published", PUBLISHED, CPF, cost, figure, least=USEFUL)
        ]
    claims += _sizes(parts, name)
    claims += [
        no_more(
            f"ours, {name}",
            (OURS, parts[OURS]),
            (rival, parts[rival]),
            "psnr_fresh",
            OUR_RANGE,
            "dB of a fresh decoder",
            (OURS, PLAIN if rival == ERASURE else rival),
            parts[PLAIN],
            erase=True,
        )
        for rival in (CPF, DVPF, VAE, PUBLISHED, WRITTEN, ERASURE)
    ]
    claims += _less(parts, ALIGNED, OURS, "leakage", f"ours, {name}")
    claims += _less(parts, OURS, CPF, "clustering", f"ours, {name}")
    claims += [
        claim for rival in (CPF, ERASURE) for claim in _less(parts, ALONE, rival, "leakage", f"ours, {name}")
    ]
    bound = bound_of(records)
    drawn = plot_tradeoff(
        found,
        "psnr_fresh",
        DRAWN,
        "quality of a fresh decoder, PSNR  [dB]",
        f"{TITLES[name]}, as figure {figure[-2:]} of the paper",
        bound,
        list(CURVES),
    )
    notes = [
        "Utility is the PSNR of a new decoder that learns from releases alone, the same network and "
        f"{COMMON[scale]['decoder_steps']:,} steps for every method; `psnr` is that of the method's own "
        "decoder, which for CPF sees the class.",
        RULE,
        *([judges(records)] if any("judged_by" in r["values"] for r in records) else []),
        *worse_than_nothing([g for g in found if g.curve not in YARDSTICKS]),
        "Random erasure releases the autoencoder's code with a probability, else nothing; time sharing "
        "one of two codes, of ours or the autoencoder's. Both are computed from the runs, and yardsticks: a "
        "record whose code is the autoencoder's is all told. A rival without settings as private as ours "
        "goes on below them by random erasure of the first one's codes.",
        f"Statements compare codes of d = {', '.join(map(str, sorted(lengths)))}, which all have; lines of "
        "the figure join settings of any d that no other of the method beats.",
        "DVPF is a reconstruction of the published method.",
    ]
    if name == "mnist" and scale == "small":
        notes.append(
            f"Ours with α = {OUR_PRECISE['alpha']:g} was added after a look at this figure, where random "
            "erasure had been level with ours at 18 dB; it was chosen from runs with another seed (search). "
            "So little noise may hide what codes tell from judges with fewer records than here."
        )
        notes.append(
            f"The paper names no PSNR. The statements from {USEFUL:g} dB on, and all third seeds, were added "
            "after looks at this figure, where two seeds had left statements open."
        )
    if name == "fashion" and scale == "small":
        notes.append(
            "γ = 20, λ = 0.1 and the third setting of the published reading were added after a look at this "
            "figure, whose curves had ended within the range that is compared."
        )
    notes += [_run_away(r["values"]) for r in records if r["run"]["method"] == UNCLAMPED]
    if bound is not None:
        notes.append(f"A release without leakage has at most {bound:.2f} dB (an estimate of a bound).")
    table = means_table([g for g in found if g.curve not in YARDSTICKS], MEASURES)
    tables = {f"{name}-tradeoff": table}
    if parts[OURS]:
        tables[f"{name}-levels"] = levels_table(
            {curve: part for curve, part in parts.items() if part}, "psnr_fresh", "leakage", OUR_LEVELS
        )
    return Findings(tables, claims, {figure.replace(" ", "-"): drawn}, [*scale_notes(scale), *notes])


def _run_away(values: Mapping[str, Any]) -> str:
    """What became of the printed formula without a clamp."""
    epoch = int(values["ran_away_in_epoch"])
    told = (
        f"runs away in epoch {epoch}, where Î(Z;Y) is {values['leakage_nats']:.1f} nats on average, which no "
        f"information can be, and R {values['residual_nats']:.1f}"
        if epoch
        else f"had not run away after {values['n_epochs']} epochs"
    )
    return (
        f"As it is printed, without a clamp of Î at 0, a literal twin of the paper's formula {told}. The "
        f"PSNR of training records in epoch {values['n_epochs']} is {values['psnr']:.1f} dB; the mean record "
        f"has {values['psnr_nothing']:.1f} dB. The written reading here has the clamp."
    )


def _lengths_of_all(found: Sequence[Group]) -> set[Any]:
    """The code lengths that all methods have: curves of others would not be compared at the same length."""
    by_curve: dict[str, set[Any]] = {}
    for group in found:
        if group.curve not in YARDSTICKS:
            by_curve.setdefault(group.curve, set()).add(group.settings[0])
    return set.intersection(*by_curve.values()) if by_curve else set()


def _against(
    parts: Mapping[str, Sequence[Group]],
    reading: str,
    curve: str,
    rival: str,
    cost: str,
    figure: str,
    *,
    least: float = -math.inf,
) -> list[Claim]:
    """Whether a reading has less of a cost than a rival at the same PSNR; nothing where neither was run.

    The paper has the highest success at a PSNR, so no setting is left out. From the PSNR `least` on.
    """
    if not parts[curve] or not parts[rival]:
        return []
    mine, theirs = (_reaching(parts[name], cost, least) for name in (curve, rival))
    found, own = (
        compare(mine, theirs, gain, cost, (least, math.inf), through=joined)
        for gain in ("psnr_fresh", "psnr")
    )
    where = f" from {least:g} dB on" if least > -math.inf else ""
    kind = "clustering adversary" if cost == "clustering" else "strongest adversary with labels"
    return [
        Claim(
            f"{figure}, {reading}" + ("" if cost == "clustering" else ", with labels"),
            f"At a comparable PSNR{where} the {kind} has less success against DCA than against {rival}.",
            f"Success at the same fresh PSNR, {curve} minus {rival}: {found or 'no PSNR in common'}; at the "
            f"same PSNR of their own decoders: {own or 'no PSNR in common'}."
            f"{found.clearly + found.remark if found else ''}",
            None if found is None else found.less,
            (curve, rival),
        )
    ]


def _reaching(found: Sequence[Group], cost: str, least: float) -> list[Group]:
    """The settings that the line through all has from a fresh PSNR on, by rising PSNR."""
    through = joined(found, "psnr_fresh", cost)
    return through[max(sum(group.mean("psnr_fresh") <= least for group in through) - 1, 0) :]


def _sizes(parts: Mapping[str, Sequence[Group]], name: str) -> list[Claim]:
    """For codes of the same length."""
    sizes = {
        curve: {
            record["run"]["settings"]["n_components"]: record["values"]["n_parameters"]
            for group in parts[curve]
            for record in group.records
        }
        for curve in (PUBLISHED, DVPF)
    }
    both = sorted(sizes[PUBLISHED].keys() & sizes[DVPF].keys())
    if not both:
        return []
    told = "; ".join(f"d = {d}: {sizes[PUBLISHED][d]:,.0f} against {sizes[DVPF][d]:,.0f}" for d in both)
    return [
        Claim(
            f"section IV-B, {name}",
            "DCA needs fewer parameters than DVPF.",
            f"Parameters at {told}.",
            all(sizes[PUBLISHED][d] < sizes[DVPF][d] for d in both),
        )
    ]


def _less(
    parts: Mapping[str, Sequence[Group]], curve: str, rival: str, cost: str, source: str
) -> list[Claim]:
    """Whether ours has less of a cost than another curve at the same PSNR; nothing where neither was run."""
    if not parts[curve] or not parts[rival]:
        return []
    most = most_told(parts[PLAIN]) if cost == "leakage" else None
    found = compare(parts[curve], parts[rival], "psnr_fresh", cost, most=most)
    says, measured = {
        "leakage": (f"adversaries find less in {curve} than in {rival}", "Bits found"),
        "clustering": (
            f"the clustering adversary has less success against {curve} than against {rival}",
            "Success",
        ),
    }[cost]
    return [
        Claim(
            source,
            f"At the same PSNR of a fresh decoder {says}.",
            f"{measured}, {curve} minus {rival}: {found or 'no PSNR in common'}."
            f"{found.remark if found else ''}",
            None if found is None else found.less,
            (curve, PLAIN if rival == ERASURE else rival),
        )
    ]


EXPERIMENTS = (
    Experiment(
        "mnist",
        "Unknown distribution: MNIST, figure 2a",
        partial(tradeoff_runs, "mnist"),
        partial(find_tradeoff, name="mnist", figure="figure 2a"),
        seconds,
        kept=True,
        curve_of=curve_of,
    ),
    Experiment(
        "fashion",
        "Unknown distribution: Fashion-MNIST, figure 2b",
        partial(tradeoff_runs, "fashion-mnist"),
        partial(find_tradeoff, name="fashion", figure="figure 2b"),
        seconds,
        kept=True,
        curve_of=curve_of,
    ),
)
