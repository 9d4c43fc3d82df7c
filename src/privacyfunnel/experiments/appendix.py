"""Unknown distribution: code lengths, example pictures and the parameter table of the paper's appendix."""

from __future__ import annotations

from collections.abc import Sequence

from ..sweep import Run, grid_runs
from ..sweep.fits import AUDIT
from .base import Claim, Experiment, Findings, Record
from .images import (
    ALPHA,
    COMMON,
    LEAST_BETA,
    MEASURES,
    SUCCESS,
    data,
    scale_notes,
    seconds,
)
from .learned import NOISE, compare, groups, judges, means_table, plot_embeddings, plot_images, plot_tradeoff

PAPER_CODES = {32: 1084742, 64: 1133190, 128: 1230086, 256: 1423878}


def length_runs(scale: str) -> list[Run]:
    """The paper's solver with codes of four lengths."""
    codes, n, seeds = {
        "smoke": ([4, 8], 2, range(1)),
        "small": ([32, 64, 128, 256], 3, range(2)),
        "paper": ([32, 64, 128, 256], 5, range(3)),
    }[scale]
    return grid_runs(
        "written",
        data("mnist", scale),
        settings={**COMMON[scale], "alpha": ALPHA},
        grid={"beta": {"geometric": [LEAST_BETA[scale], 5e-2, n]}, "n_components": codes, "seed": seeds},
    )


def find_length(records: Sequence[Record], scale: str) -> Findings:
    """Whether longer codes tell an adversary less at the same PSNR."""
    lengths = sorted({r["run"]["settings"]["n_components"] for r in records})
    curves = {f"d = {d}": [r for r in records if r["run"]["settings"]["n_components"] == d] for d in lengths}
    found = groups(curves)
    longest, shortest = ([g for g in found if g.curve == f"d = {d}"] for d in (lengths[-1], lengths[0]))
    claims = []
    for cost, kind in SUCCESS.items():
        step = compare(longest, shortest, "psnr", cost)
        claims.append(
            Claim(
                "appendix E" if cost == "clustering" else "appendix E, with labels",
                "A longer code is more robust at the same reconstruction quality.",
                f"{kind[0].upper()}{kind[1:]}: success with d = {lengths[-1]} minus d = {lengths[0]} "
                f"{step or 'has no PSNR in common'}.",
                None if step is None else step.mean < -NOISE,
            )
        )
    drawn = plot_tradeoff(found, "psnr", SUCCESS, ("PSNR [dB]", "adversary success"), f"Code length, {scale}")
    table = means_table(found, MEASURES)
    notes = [*scale_notes("mnist", scale), judges(records)]
    return Findings({"code-length": table}, claims, {"code-length": drawn}, notes)


def picture_runs(scale: str) -> list[Run]:
    """The paper's example, α = 0.01, β = 0.05, and its parameter table."""
    fixed = {key: value for key, value in COMMON[scale].items() if key not in AUDIT}
    length = 8 if scale == "smoke" else 256
    example = Run(
        "privacyfunnel.experiments.functions:pictures",
        data("mnist", scale),
        {
            "settings": {
                **fixed,
                "alpha": 0.01,
                "beta": 0.05,
                "n_components": length,
                "epochs": {"smoke": 2, "small": 15, "paper": 100}[scale],
            },
            **{key: COMMON[scale][key] for key in AUDIT},
            "n_points": {"smoke": 0, "small": 2000, "paper": 10000}[scale],
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
    (example,) = (r for r in records if r["run"]["data"] is not None)
    sizes = {
        r["run"]["settings"]["n_components"]: r["values"]["n_parameters"]
        for r in records
        if r["run"]["data"] is None
    }
    values = example["values"]
    figures = {
        "samples": plot_images(values["images"], "Test images"),
        "reconstructions": plot_images(values["reconstructions"], f"Reconstructed, {values['psnr']:.1f} dB"),
    }
    if "classes" in values:
        points = {"UMAP of X": values["embedded_x"], "UMAP of the codes Z": values["embedded_z"]}
        figures["embeddings"] = plot_embeddings(points, values["classes"], "Classes in X and in Z")
    length = example["run"]["settings"]["settings"]["n_components"]
    table = {
        "d": list(PAPER_CODES),
        "parameters, paper": list(PAPER_CODES.values()),
        "parameters, here": [sizes[d] for d in PAPER_CODES],
    }
    claims = [
        Claim(
            "table I",
            "The networks have 1,084,742 to 1,423,878 parameters for d = 32 to 256.",
            ", ".join(f"{sizes[d]:,}" for d in PAPER_CODES) + ".",
            sizes == PAPER_CODES,
        ),
        Claim(
            "appendix F",
            "With α = 0.01, β = 0.05, d = 256: PSNR 24 dB at an adversary's success of 0.57.",
            f"d = {length}: {values['psnr']:.1f} dB, clustering {values['clustering']:.2f}, strongest with "
            f"labels {values['success_with_labels']:.2f}; one seed.",
            values["psnr"] >= 23 and values["clustering"] <= 0.57 + NOISE,
        ),
    ]
    epochs = example["run"]["settings"]["settings"]["epochs"]
    notes = [*scale_notes("mnist", scale), judges([example]), f"The example is trained for {epochs} epochs."]
    return Findings({"parameters": table}, claims, figures, notes)


EXPERIMENTS = (
    Experiment("code-length", "Code length and the trade-off on MNIST", length_runs, find_length, seconds),
    Experiment(
        "pictures",
        "Samples, reconstructions, embeddings and the parameter table",
        picture_runs,
        find_pictures,
        seconds,
    ),
)
