"""The settings of the learned estimators as options of `pfunnel fit`: one row each.

Light: importing this imports no torch. A test holds the rows against the estimators' own fields, so that a
setting of theirs without a row here, or with other choices or defaults, fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .options import Option

SETTINGS = {
    "n_components": Option("Length of the code Z.", "64", int, flags=("--components", "-d")),
    "alpha": Option("Weight of the code's noise.", "the method's"),
    "beta": Option(
        "Weight of the reconstruction, funnel and autoencoder.", "1; 0.05 as written or published"
    ),
    "gamma": Option("Weight of the reconstruction, conditional.", "1"),
    "max_leakage": Option(
        "The most that fresh adversaries may find on records kept from training, funnel. The weight of the "
        "leakage is then found for it; exit code 1 says that the budget was not met.",
        "none",
        metavar="BITS",
    ),
    "leakage_weight": Option("Weight of the leakage, funnel.", "1; 0.2 as written-mended"),
    "objective": Option(
        "The plain sum of weights without a unit, or the paper's square (dca), funnel.",
        "lagrangian; dca as written",
        str,
        choices=("lagrangian", "dca"),
    ),
    "offset": Option("With dca, what is subtracted inside the square, funnel.", "0"),
    "classifier": Option(
        "What stands for the adversary, funnel. The paper's linear one stops linear ones only.",
        "mlp; linear as written",
        str,
        choices=("mlp", "linear"),
    ),
    "classifier_steps": Option("Its steps for each of the encoder, funnel.", "3; 1 as written", int),
    "schedule": Option(
        "Both steps at once, or the encoder's after the decoder's, which can run away, funnel.",
        "simultaneous; alternating as written",
        str,
        choices=("simultaneous", "alternating"),
    ),
    "align": Option(
        "Move the private classes onto one another first, funnel; the encoder cannot be handed on.",
        "no",
        bool,
    ),
    "adversarial_rate": Option(
        "Learning rate of the games against discriminators, as a share of --learning-rate, deep-variational.",
        "0.1",
    ),
    "scale": Option(
        "Scale records column by column, by one common spread, or not at all.",
        "auto for funnel, else none",
        str,
        choices=("auto", "columns", "common", "none"),
    ),
    "validation_fraction": Option(
        "Share of the records kept from training for the verdict, funnel.", "0.1; 0 as written"
    ),
    "numeric": Option(
        "A private column of whole numbers that is a number and no class. Repeat for several.",
        "none",
        str,
        several=True,
        metavar="COLUMN",
    ),
    "likelihood": Option(
        "What the reconstruction error is: gaussian, bernoulli (X in [0, 1]), laplace or exponential.",
        "gaussian; bernoulli as published and written-mended",
        str,
        choices=("gaussian", "bernoulli", "laplace", "exponential"),
        metavar="NAME",
    ),
    "latent": Option("Noise of the code.", "normal", str, choices=("normal", "laplace")),
    "architecture": Option(
        "Fully connected networks, or convolutions for square images.", "mlp", str, choices=("mlp", "conv")
    ),
    "hidden": Option(
        "Size of a hidden layer of the encoder, mlp. Repeat for several.", "500, 500", int, several=True
    ),
    "epochs": Option(
        "Passes over the records.",
        "2,000 steps, with --max-leakage until no more is kept; else 100",
        int,
    ),
    "batch_size": Option("Records in a step.", "256", int),
    "learning_rate": Option("Step size of Adam.", "0.001 for funnel, else 0.0003"),
    "checkpoint": Option(
        "Save every epoch here; the same command goes on from there.", "none", str, metavar="FOLDER"
    ),
    "device": Option(
        "Where to train: cpu, cuda or mps; auto takes a GPU if there is one.", "auto", str, metavar="NAME"
    ),
}

#: Fields of the estimators that are no options of `fit`: it has --seed, encoding has a seed of its own, and
#: who watches decides about progress.
NO_OPTIONS = ("random_state", "release_state", "progress")


def given_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given, as the estimators take them."""
    return {
        name: tuple(value) if SETTINGS[name].several else value
        for name, value in values.items()
        if value is not None and value != []
    }
