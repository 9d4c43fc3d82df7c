"""Funnel: an encoder that keeps records reconstructible and a private attribute out of its codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import InvalidInputError
from .aligned import AlignedEncoder
from .base import LearnedFunnel, Trained
from .budget import BudgetStatus, train_within_budget
from .families import latent, likelihood
from .networks import COMMON_PRICE, mlp, scaling_of
from .objectives import PrivateAttributes, Weights
from .steps import AlternatingStep
from .training import TrainingStatus
from .verdict import Guessed, Verdict, by_line, judged, kept_apart, not_measured


@dataclass(eq=False, repr=False, kw_only=True)
class Funnel(LearnedFunnel):
    """Learn a code Z of X that keeps X reconstructible and tells little about a private Y.

    Each mini-batch trains a classifier of Y, a decoder, and the encoder against the classifier:

        classifier:  min −E log Q(Y|Z), several times on fresh batches
        decoder:     min −E log P(X|Z)
        encoder:     min β · (unexplained share of the variance) + λ · Î(Z;Y) / H(Y) + α E D[P(Z|x) ‖ N(0, I)]

    The weights have no unit, so the defaults are a start for any data. `Funnel.written` is the paper's own
    objective and setting; objectives.py has every term.

    Y → X → Z holds by construction: the encoder sees X alone, so releasing never needs Y.

    Guarantee: none. Training is a heuristic, and Î(Z;Y) is what *this* classifier finds in the records it
    learns from: others may find more. Judge a release by an audit on records the encoder never saw.

    Parameters
    ----------
    n_components : int
        Length of the code.
    alpha : float, optional
        Weight of D[P(Z|x) ‖ N(0, I)] in nats: the price of code. It must stay above 0: without noise the
        scale of the code escapes the classifier. By default that at which the best linear code of the records
        would keep seven tenths of their variance (0.005 for MNIST, 0.02 for Adult); with "dca" 0.004.
    beta : float
        Weight of the reconstruction; larger keeps more of X.
    leakage_weight : float
        Weight of Î(Z;Y), as a share of H(Y); 0 removes privacy from the objective.
    max_leakage : float, optional
        Budget in bits. Given, three tenths of the records are kept from the networks, fresh adversaries audit
        the codes of these as training goes on, and `leakage_weight` is only where the search for the weight
        starts. `budget_` tells what was reached; a budget that was not met is a ConvergenceWarning.
    objective : "lagrangian" or "dca"
        The plain sum above, or the paper's square, whose weights are in nats.
    classifier : "mlp" or "linear"
        What stands for the adversary during training. The paper's linear one protects against linear
        adversaries only.
    classifier_steps : int
        Steps of the classifier for each of the encoder: with several, each on a fresh batch and fresh noise
        and at twice the learning rate. The paper takes 1, with the decoder's and on the same batch.
    hidden : ints
        Hidden layers of the encoder; the decoder has the last of them.
    architecture : "mlp" or "conv"
    latent : "normal" or "laplace"
    likelihood : "gaussian", "bernoulli", "laplace" or "exponential"
    scale : "auto", "columns", "common" or "none"
        How records are scaled before anything else: each column by its spread (0/1 columns keep theirs), all
        by one common spread, or not at all. "auto" takes columns for frames, common for stacks of images, the
        first of the two for plain tables whose columns differ by more than ten times in spread, and none for
        likelihoods of a fixed range. Reconstructions have the units of the data.
    offset : float
        With "dca": subtracted inside the square, which stays 0 below it; the paper drops this constant.
    schedule : "simultaneous" or "alternating"
        The steps of encoder and decoder both from the weights before, or the encoder's after the decoder's on
        the same batch, as in the paper. Alternating with Adam's momentum can run away, sooner at larger
        learning rates; both at once did not where it did.
    align : bool
        Whether the encoder sees, beside each record, the record moved by transport so that the classes of Y
        lie upon one another, and a classifier's guess (aligned.py). It helps where Y is nearly a function of
        X. One private attribute with classes; not with `max_leakage` or `partial_fit`. The encoder then
        holds a classifier of Y: it cannot be handed on by itself.
    epochs : int, optional
        Passes over the records. By default as many as make 2,000 steps, and at least 10; with `max_leakage`,
        until the code keeps no more within the budget.
    batch_size, learning_rate
        Records in a step, and the step size of Adam.
    validation_fraction : float
        Share of the records, at most 2,000, that is kept from training for the verdict; 0 for none, and no
        verdict. Not with `max_leakage`, which keeps three tenths.
    random_state : None, int or Generator
        Seeds training. It does not seed releases.
    release_state : None, int or Generator
        Seeds `transform`; None draws from the operating system's entropy.
    checkpoint : path, optional
        Folder for a checkpoint after every epoch, with `max_leakage` after every audit; a run that was killed
        continues from it to the same bits. One run at a time may use a folder.
    device : str
        "auto" takes a GPU if there is one.
    progress : bool, optional
        Show a progress bar; by default when stderr is a terminal, and a line a minute when it is none.
    numeric : names of private attributes
        Those to be taken for numbers although they look like classes, such as incomes in whole euros; "y" is
        the name of one without a name.

    Attributes
    ----------
    history_ : frame
        A row an epoch; information in bits.
    status_ : TrainingStatus
        How training ended, as a sentence with the remedy.
    private_ : PrivateAttributes
        The private attributes and their classes.
    verdict_ : Verdict
        What the code keeps and tells on records kept from training; `print(funnel.verdict_)` is a sentence.
    budget_ : Budget or None
        What the search for `max_leakage` reached, with its bound and trace.
    """

    scale: str = "auto"
    epochs: int | None = None
    learning_rate: float = 1e-3
    validation_fraction: float = 0.1
    alpha: float | None = None
    beta: float = 1.0
    leakage_weight: float = 1.0
    max_leakage: float | None = None
    objective: str = "lagrangian"
    classifier: str = "mlp"
    classifier_steps: int = 3
    offset: float = 0.0
    schedule: str = "simultaneous"
    align: bool = False

    @classmethod
    def written(
        cls,
        n_components: int = 64,
        *,
        alpha: float = 0.01,
        beta: float = 0.05,
        mended: bool = False,
        **settings: Any,
    ) -> Funnel:
        """The funnel as the paper writes it (`eq:unkn_alg`); `settings` change the rest of it.

            decoder:  min −β E log P(X|Z) − E log Q(Y|Z)
            encoder:  min ½ ( Î(Z;Y) + D[P_z ‖ P_zᵏ] − β E log P(X|Z) )² + α E D[P(Z|x) ‖ N(0, I)]

        The second after the first on each mini-batch, normal codes, P(X|Z) = N(·, I) with its constant, for
        the records as they are, and a linear classifier that learns with the decoder: it protects against
        linear adversaries only. Gradients are clipped at a norm of 5, as for all estimators here, of which
        the paper says nothing.

        `mended` is meant to keep this classifier from being outrun: both steps at once, a fifth of the weight
        on Î(Z;Y), and the Bernoulli likelihood of the authors' program for X in [0, 1]. It does not
        everywhere; a fit that was outrun warns.
        """
        paper: dict[str, Any] = {
            "objective": "dca",
            "schedule": "alternating",
            "classifier": "linear",
            "classifier_steps": 1,
            "latent": "normal",
            "likelihood": "gaussian",
            "scale": "none",
            "validation_fraction": 0.0,
            "epochs": 100,
            "batch_size": 256,
            "learning_rate": 3e-4,
        }
        other = {"schedule": "simultaneous", "likelihood": "bernoulli", "leakage_weight": 0.2}
        chosen = paper | (other if mended else {}) | settings
        return cls(n_components, alpha=alpha, beta=beta, **chosen)

    def _train(
        self,
        trained: Trained,
        x: Tensor,
        targets: list[Tensor],
        *,
        whole: bool,
        epochs: int | None,
        **options: Any,
    ) -> None:
        step: Any = trained.step
        if self.align and (self.max_leakage is not None or not whole):
            raise InvalidInputError(
                "align=True needs fit without max_leakage: the front end is fixed once, from all records "
                "that are trained on. Leave one of them out.",
                names=("align", "max_leakage"),
            )
        if self.max_leakage is not None:
            passes = None if epochs is None else int(epochs)
            budget = train_within_budget(
                step, x, targets, max_leakage=self.max_leakage, epochs=passes, **options
            )
            # Its last audit takes the attributes together.
            found = Guessed.of(" × ".join(step.private.names), budget.bound, step.private.entropy)
            trained.verdict = Verdict(budget.explained, (found,), budget.bound.n, budget.note)
            trained.budget = budget
            return
        # Of the data, not of the seed: a run that goes on from a checkpoint keeps the same records apart.
        seed = int(trained.fingerprint[:8], 16)
        kept = kept_apart(targets, len(x), self.validation_fraction if whole else 0.0, seed)
        rows = torch.from_numpy(np.flatnonzero(~kept)).to(x.device)
        learned = (x[rows], [target[rows] for target in targets]) if kept.any() else (x, targets)
        if isinstance(encoder := trained.modules["encoder"], AlignedEncoder):
            # One that goes on from a checkpoint takes it from there: the same, learned from the same records.
            encoder.learn(learned[0], learned[1][0], trained.progress.seed)
        super()._train(trained, *learned, whole=whole, epochs=epochs, **options)
        if trained.progress.status in (TrainingStatus.DIVERGED, TrainingStatus.INTERRUPTED):
            trained.verdict = not_measured("training did not end well")
        elif kept.any():
            trained.verdict = judged(step, x, targets, kept, seed)
        else:
            few = f"{len(x):,} records are too few to keep some from training"
            reason = few if whole and self.validation_fraction > 0 else "no records were kept from training"
            trained.verdict = by_line(step, x, targets, seed, reason) if whole else not_measured(reason)

    def _notes(self, *, whole: bool) -> list[str]:
        budget = self.budget_
        if budget is None:
            # That a code says nothing is told once.
            told = self.status_ is TrainingStatus.COLLAPSED
            return super()._notes(whole=whole) + ([] if told else self._verdict_notes())
        # A search changes the multiplier, so its loss may rise: only how training ended counts.
        ended = [] if self.status_.ok else [self.status_.value]
        if budget.status.ok:
            return ended
        found = (
            f"max_leakage={budget.target:g} bit: at least {budget.bound.value:.3g} bit found, upper end "
            f"{budget.upper:.3g}, {max(budget.explained, 0):.0%} of the records' variance explained. "
        )
        note = found + budget.status.value
        # That a code says nothing is told once.
        told = budget.status is BudgetStatus.MET_BUT_USELESS and self.status_ is TrainingStatus.COLLAPSED
        return [note] if told else [*ended, note]

    def _verdict_notes(self) -> list[str]:
        verdict: Verdict = self.verdict_
        history = self.progress_.history
        outrun = verdict.outrun(history[-1]["leakage"]) if history and self.leakage_weight > 0 else []
        return verdict.warnings() + outrun

    def _build(self, n_features: int, private: PrivateAttributes | None) -> nn.ModuleDict:
        assert private is not None
        networks = self._networks(n_features)
        if self.align:
            networks["encoder"] = self._aligned(n_features, private)
        if self.classifier == "linear":
            networks["classifier"] = nn.Linear(self.n_components, private.n_outputs)
        else:
            networks["classifier"] = mlp([self.n_components, 256, 256, private.n_outputs])
        return nn.ModuleDict(networks)

    def _aligned(self, n_features: int, private: PrivateAttributes) -> AlignedEncoder:
        if self.architecture != "mlp" or len(private.columns) != 1 or private.columns[0].classes is None:
            raise InvalidInputError(
                "align=True is for fully connected networks and one private attribute with classes; leave it "
                "out for others.",
                names=("align", "architecture"),
            )
        return AlignedEncoder(n_features, tuple(self.hidden), self.n_components, private.n_outputs)

    def _step(
        self, modules: nn.ModuleDict, private: PrivateAttributes | None, generator: torch.Generator
    ) -> AlternatingStep:
        assert private is not None
        price = COMMON_PRICE if self.objective == "dca" else float(scaling_of(modules).code_price)
        weights = Weights(price if self.alpha is None else self.alpha, self.beta, self.leakage_weight)
        if self.objective == "dca":
            weights = replace(weights, offset=self.offset)
        else:
            # Parts of one class so far have no entropy, and numbers that lie close a negative one.
            entropy = private.entropy if private.entropy > 0 else 1.0
            null_loss = float(scaling_of(modules).null_loss)
            weights = replace(weights, squared=False, reconstruction_unit=null_loss, leakage_unit=entropy)
        return AlternatingStep(
            modules,
            latent(self.latent),
            likelihood(self.likelihood),
            private,
            weights,
            self.learning_rate,
            self.classifier_steps,
            generator,
            simultaneous=self.schedule == "simultaneous",
        )
