"""MNIST epochs and one encoding against a literal twin and against their matrix products alone.

Of the objective as the paper writes it, which the twin computes too, and of `Funnel` as it is.

Every measurement runs in a process of its own, so that its peak memory and its threads are its own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from privacyfunnel.attributes import read_attributes
from privacyfunnel.datasets import load_mnist
from privacyfunnel.learned import Funnel
from privacyfunnel.learned.training import train

from .learned import Row, publish

D, BATCH, ALPHA, BETA = 64, 256, 0.01, 0.05
PAPER = {"n_components": D, "batch_size": BATCH}
REPEAT = 2
ROUNDS = 9
N_WARM = 512
TITLE = "Speed on MNIST: 60,000 images, d = 64, batch 256"
NOTE = (
    "*epoch* is of the objective as the paper writes it (`Funnel.written`: linear classifier, one "
    "step), *epoch as it is* of `Funnel` by itself (a network of 256 and 256 as classifier, three steps"
    " on fresh batches). Seconds are the best of {repeat}, each in a process of its own after a warm-up"
    " on {warm} records; a fit also checks and fingerprints the records, once for all epochs. Those of "
    "a group take turns, so that a busy moment hits all of them. The twin decodes each image as it is "
    "asked for and makes two full passes a batch, backward through encoder and decoder both times, with"
    " torch's plain Adam. The floor is the matrix products of the same networks, forward and backward, "
    "on batches that lie ready. Peak memory is that of the whole process with torch and the data "
    "({data:.0f} MB as floats). Funnel by this: its seconds divided by those of the row; asked for are "
    "at most 0.5 for the twin and 1.5 for the floors. Alternating: Funnel and the other take turns for "
    "{rounds} rounds in one process, and the ratio of each round is one figure; it is the fairest where"
    " the speed of the cores changes from one moment to the next, as here."
)


class Twin:
    """The paper's update, written down literally: no shared pass, no preloaded floats."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU())
        self.loc, self.log_scale = nn.Linear(500, D), nn.Linear(500, D)
        self.decoder = nn.Sequential(nn.Linear(D, 500), nn.ReLU(), nn.Linear(500, 784))
        self.classifier = nn.Linear(D, 10)
        self.before = torch.zeros(D)
        encoding = [*self.body.parameters(), *self.loc.parameters(), *self.log_scale.parameters()]
        decoding = [*self.decoder.parameters(), *self.classifier.parameters()]
        self.encoding = torch.optim.Adam(encoding, lr=3e-4)
        self.decoding = torch.optim.Adam(decoding, lr=3e-4)

    def losses(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        features = self.body(x)
        loc, log_scale = self.loc(features), self.log_scale(features)
        z = loc + log_scale.exp() * torch.randn_like(loc)
        rec = 0.5 * (self.decoder(z) - x).square().sum(1).mean()
        return loc, log_scale, z, rec, functional.cross_entropy(self.classifier(z), y)

    def step(self, x: Tensor, y: Tensor, entropy: float) -> None:
        *_, rec, cross_entropy = self.losses(x, y)
        self.decoding.zero_grad()
        (BETA * rec + cross_entropy).backward()
        self.decoding.step()
        loc, log_scale, z, rec, cross_entropy = self.losses(x, y)
        kl = (0.5 * (loc.square() + (2 * log_scale).exp() - 1) - log_scale).sum(1).mean()
        scale = (0.9 * (2 * self.before).exp() + 0.1 * z.square().mean(0)).log() / 2
        moved = scale - self.before
        prior = (0.5 * ((2 * moved).exp() - 1) - moved).sum()
        residual = (entropy - cross_entropy).clamp_min(0) + prior + BETA * rec
        self.encoding.zero_grad()
        (0.5 * residual.square() + ALPHA * kl).backward()
        self.encoding.step()
        self.before = scale.detach()


class PerSample(torch.utils.data.Dataset):
    """Images as they are stored, decoded one by one when asked for, as common image data sets do it: a PIL
    image, then a tensor (channel, height, width)."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        picture = Image.fromarray(self.images[i])
        pixels = torch.from_numpy(np.array(picture, copy=True))[:, :, None].permute(2, 0, 1).contiguous()
        return pixels.float().div(255).reshape(-1), int(self.labels[i])


def epoch_of_twin(n: int | None = None) -> Callable[[], None]:
    images, labels, *_ = load_mnist("uint8")
    share = np.bincount(labels) / len(labels)
    entropy = float(-(share * np.log(share)).sum())
    loader = torch.utils.data.DataLoader(PerSample(images[:n], labels[:n]), BATCH, shuffle=True)
    twin = Twin()

    def epoch() -> None:
        for x, y in loader:
            twin.step(x, y, entropy)

    return epoch


def fit_of_funnel(n: int | None = None) -> Callable[[], None]:
    """All that a fit of one epoch does: checking the records, their fingerprint, and the epoch."""
    images, labels, *_ = load_mnist()
    x, y = images.reshape(len(images), -1)[:n], labels[:n]
    model = Funnel.written(**PAPER, epochs=1, random_state=0, progress=False)
    return lambda: model.fit(x, private=y)


def epoch_of_funnel(n: int | None = None) -> Callable[[], None]:
    """One epoch as the paper writes it, of a model that has begun."""
    return _epoch_of(Funnel.written(**PAPER, epochs=1, random_state=0, progress=False), n)


def epoch_as_it_is(n: int | None = None) -> Callable[[], None]:
    """One epoch with what `Funnel` takes by itself."""
    return _epoch_of(Funnel(**PAPER, epochs=1, random_state=0, progress=False), n)


def _epoch_of(model: Funnel, n: int | None) -> Callable[[], None]:
    images, labels, *_ = load_mnist()
    x = images.reshape(len(images), -1)
    model.fit(x[:N_WARM], private=labels[:N_WARM])
    records, targets = (
        torch.from_numpy(x[:n]),
        model.private_.encode(read_attributes(labels[:n], like=model.attributes_)),
    )

    def epoch() -> None:
        done, generator = model.progress_, model.generator_
        train(
            model.step_,
            records,
            targets,
            epochs=done.epoch + 1,
            batch_size=BATCH,
            generator=generator,
            progress=done,
        )

    return epoch


class Encoding:
    """The products of the encoder, forward and backward."""

    def __init__(self) -> None:
        self.first, self.second = torch.randn(784, 500), torch.randn(500, 500)
        self.heads = torch.randn(500, 2 * D)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = rows @ self.first
        features = hidden @ self.second
        return hidden, features, features @ self.heads

    def backward(self, rows: Tensor, hidden: Tensor, features: Tensor, heads: Tensor) -> None:
        features.T @ heads  # the products take as long whatever the numbers are
        back = heads @ self.heads.T
        hidden.T @ back
        rows.T @ (back @ self.second.T)


def epoch_of_products(n: int | None = None) -> Callable[[], None]:
    """Forward, and backward to weights and inputs, where the two steps need them; nothing else."""
    x = torch.from_numpy(load_mnist().x_train.reshape(-1, 784)[:n])
    encoder = Encoding()
    inner, outer, classifier = torch.randn(D, 500), torch.randn(500, 784), torch.randn(D, 10)

    def epoch() -> None:
        for rows in x.split(BATCH):
            hidden, features, heads = encoder.forward(rows)
            z = heads[:, :D]
            for frozen in (False, True):
                inside = z @ inner
                output = inside @ outer
                back = output @ outer.T
                logits = z @ classifier
                if frozen:
                    back @ inner.T, logits @ classifier.T
                else:
                    inside.T @ output, z.T @ back, z.T @ logits
            encoder.backward(rows, hidden, features, heads)

    return epoch


def products_as_it_is(n: int | None = None) -> Callable[[], None]:
    """Both updates at once share all their products; each step of the classifier encodes another batch."""
    x = torch.from_numpy(load_mnist().x_train.reshape(-1, 784)[:n])
    encoder = Encoding()
    inner, outer = torch.randn(D, 500), torch.randn(500, 784)
    one, two, three = torch.randn(D, 256), torch.randn(256, 256), torch.randn(256, 10)

    def epoch() -> None:
        for rows in x.split(BATCH):
            for _ in range(3):
                z = encoder.forward(rows)[2][:, :D]
                low = z @ one
                high = low @ two
                logits = high @ three
                back = logits @ three.T
                high.T @ logits, low.T @ back, z.T @ (back @ two.T)
            hidden, features, heads = encoder.forward(rows)
            z = heads[:, :D]
            inside = z @ inner
            output = inside @ outer
            back = output @ outer.T
            inside.T @ output, z.T @ back, back @ inner.T
            (z @ one @ two @ three) @ three.T @ two.T @ one.T
            encoder.backward(rows, hidden, features, heads)

    return epoch


def encode_of_funnel(n: int | None = None) -> Callable[[], None]:
    images, labels, *_ = load_mnist()
    x = images.reshape(len(images), -1)
    model = Funnel.written(**PAPER, epochs=1, random_state=0, progress=False)
    model.fit(x[:N_WARM], private=labels[:N_WARM])
    return lambda: model.encode(x[:n])


def encode_of_products(n: int | None = None) -> Callable[[], None]:
    x = torch.from_numpy(load_mnist().x_train.reshape(-1, 784)[:n])
    encoder = Encoding()

    def encode() -> None:
        for rows in x.split(4096):
            encoder.forward(rows)

    return encode


GROUPS = {
    "epoch": {
        "Funnel": epoch_of_funnel,
        "Funnel, fit of one epoch": fit_of_funnel,
        "literal twin": epoch_of_twin,
        "floor": epoch_of_products,
    },
    "epoch as it is": {"Funnel": epoch_as_it_is, "floor": products_as_it_is},
    "encode": {"Funnel": encode_of_funnel, "floor": encode_of_products},
}


def measure(group: str, name: str, threads: int) -> None:
    """Time one of them in this process and print the result as JSON."""
    torch.set_num_threads(threads)
    with torch.no_grad() if name == "floor" else torch.enable_grad():
        GROUPS[group][name](N_WARM)()
        work = GROUPS[group][name]()
        begun, busy = time.perf_counter(), time.process_time()
        work()
        seconds, cpu = time.perf_counter() - begun, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "CPU seconds": cpu, "peak": peak}))


def alternate(group: str, name: str, threads: int) -> None:
    """Ratios of Funnel by another, which take turns in this process, as JSON."""
    torch.set_num_threads(threads)
    ours, theirs = GROUPS[group]["Funnel"](), GROUPS[group][name]()

    def seconds(work: Callable[[], None]) -> float:
        with torch.no_grad() if work is theirs and name == "floor" else torch.enable_grad():
            begun = time.perf_counter()
            work()
            return time.perf_counter() - begun

    seconds(ours), seconds(theirs)  # the first of a process is slower
    print(json.dumps({"ratios": [seconds(ours) / seconds(theirs) for _ in range(ROUNDS)]}))


def main(output: Path | None = None) -> None:
    n = len(load_mnist("uint8").x_train)
    note = NOTE.format(repeat=REPEAT, rounds=ROUNDS, warm=N_WARM, data=n * 784 * 4 / 1e6)
    settings = {"n_components": D, "batch_size": BATCH, "alpha": ALPHA, "beta": BETA}
    runs: list[Row] = []
    table: list[Row] = []
    for threads in sorted({1, min(2, os.cpu_count() or 1)}):
        for group, members in GROUPS.items():
            ours = [
                {"task": group, "what": name, "threads": threads, "turn": turn}
                | in_process("measure", group, name, threads)
                for turn in range(REPEAT)
                for name in members
            ]
            turns = in_process("alternate", group, "floor", threads)["ratios"]
            runs += [*ours, {"task": group, "what": "floor", "threads": threads, "ratios": turns}]
            table += compared(ours, turns, n)
            # After each group: what was measured stays if the run is stopped.
            publish("learned-speed", TITLE, table, runs, [note], settings, output)


def compared(runs: list[Row], turns: list[float], n: int) -> list[Row]:
    """One row for each of a group: its best times, and those of `Funnel` by them; beside the floor, the
    ratios of taking turns."""
    names = dict.fromkeys(run["what"] for run in runs)
    best, cpu = (
        {name: min(run[clock] for run in runs if run["what"] == name) for name in names}
        for clock in ("seconds", "CPU seconds")
    )
    return [
        {
            "task": runs[0]["task"],
            "threads": runs[0]["threads"],
            "what": name,
            "seconds": f"{best[name]:.2f}",
            "CPU seconds": f"{cpu[name]:.2f}",
            "samples/s": f"{n / best[name]:.0f}",
            "Funnel by this": f"{best['Funnel'] / best[name]:.2f}",
            "alternating: median (lowest to highest)": (
                f"{np.median(turns):.2f} ({min(turns):.2f} to {max(turns):.2f})" if name == "floor" else ""
            ),
            "peak memory (MB)": f"{max(run['peak'] for run in runs if run['what'] == name):.0f}",
        }
        for name in names
    ]


def in_process(task: str, group: str, name: str, threads: int) -> Row:
    """One measurement in a fresh interpreter, whose libraries have this many threads from the start."""
    call = f"from benchmarks import learned_speed; learned_speed.{task}({group!r}, {name!r}, {threads})"
    counts = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "MKL", "OPENBLAS")}
    done = subprocess.run(
        [sys.executable, "-c", call], env={**os.environ, **counts}, capture_output=True, text=True, check=True
    )
    result: Row = json.loads(done.stdout.splitlines()[-1])
    return result
