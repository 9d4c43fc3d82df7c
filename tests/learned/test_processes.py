"""Several processes and one folder: a reader never sees half a model, whoever is killed when."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

import privacyfunnel as pf
from privacyfunnel.errors import DataFileError
from privacyfunnel.learned import ConditionalFunnel, Funnel, manifest

TINY = {"n_components": 3, "hidden": (16,), "epochs": 1, "random_state": 4}

SAVER = """
import sys, torch
from sklearn.datasets import load_digits
from privacyfunnel import learned
torch.set_num_threads(1)
x, y = load_digits(return_X_y=True)
model = getattr(learned, sys.argv[1])(3, hidden=(16,), epochs=1, random_state=4)
while True:  # until killed; a new epoch, so new weights, each time
    model.partial_fit(x[:100] / 16, y[:100], classes=range(10)).save(sys.argv[2])
    print(model.progress_.epoch, flush=True)
"""
TRAINER = """
import sys, numpy as np, torch
from privacyfunnel.learned import Funnel, training
torch.set_num_threads(1)
data = np.load(sys.argv[1] + "/data.npz")
def write_and_tell(*args, original=training.write_checkpoint):
    original(*args)
    print("written", flush=True)
    sys.stdin.read()  # waits in the midst of training, for ever
training.write_checkpoint = write_and_tell
Funnel(3, hidden=(16,), epochs=3, random_state=4, checkpoint=sys.argv[1] + "/run").fit(data["x"], data["y"])
"""


@pytest.fixture
def start():
    """Start Python programs; whatever still runs at the end of the test is killed."""
    started = []

    def start(code, *arguments):
        command = [sys.executable, "-c", code, *map(str, arguments)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started.append(subprocess.Popen(command, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_two_processes_that_save_into_one_folder_and_are_killed(start, digits, tmp_path):
    folder = tmp_path / "both"
    savers = [start(SAVER, name, folder) for name in ("Funnel", "ConditionalFunnel")]
    for saver in savers:  # both are at work
        assert saver.stdout.readline() == "1\n", saver.stderr.read()
    seen = set()
    for round_ in range(12):
        assert savers[round_ % 2].stdout.readline().strip().isdigit()
        loaded = pf.load(folder)  # whole and checked, whatever the others are doing
        seen.add(type(loaded))
        assert np.isfinite(loaded.transform(digits[2][:5])).all()
    for saver in savers:
        saver.kill()
        assert saver.wait() == -signal.SIGKILL
        assert type(pf.load(folder)) in (Funnel, ConditionalFunnel)
    assert seen <= {Funnel, ConditionalFunnel}
    model = Funnel(**TINY).fit(digits[0][:100], digits[1][:100])
    model.save(folder)  # the lock of the killed is gone, and so is what they left behind
    assert len(list(folder.iterdir())) == 2
    loaded = pf.load(folder).modules_["encoder"].heads.weight
    assert torch.equal(loaded, model.modules_["encoder"].heads.weight)


def test_two_processes_that_train_with_checkpoints_in_one_folder(start, digits, tmp_path):
    x, y, _, _ = digits
    np.savez(tmp_path / "data.npz", x=x[:200], y=y[:200])
    first = start(TRAINER, tmp_path)
    assert first.stdout.readline() == "written\n", first.stderr.read()
    before = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    options = TINY | {"epochs": 3}
    for other in ({}, {"alpha": 0.5}):
        with pytest.raises(DataFileError, match="another run is training with checkpoints in this folder"):
            Funnel(**options, **other, checkpoint=tmp_path / "run").fit(x[:200], y[:200])
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == before
    first.kill()
    first.wait()
    resumed = Funnel(**options, checkpoint=tmp_path / "run").fit(x[:200], y[:200])
    whole = Funnel(**options).fit(x[:200], y[:200])
    for a, b in zip(resumed.modules_.parameters(), whole.modules_.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_checkpoint_folder_that_cannot_be_made(digits, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataFileError, match="checkpoints cannot be written here"):
        Funnel(**TINY, checkpoint=tmp_path / "file").fit(digits[0][:50], digits[1][:50])


def test_without_locks_no_process_removes_what_another_is_about_to_name(digits, tmp_path, monkeypatch):
    """One saver stands still between its weights and its manifest while another one saves and cleans up."""
    monkeypatch.setattr(manifest, "locked", lambda handle, *, wait: None)
    slow, fast = (kind(**TINY).fit(digits[0][:100], digits[1][:100]) for kind in (Funnel, ConditionalFunnel))
    written, go_on = threading.Event(), threading.Event()

    def paused(path, *rest, original=manifest.save_json):
        if threading.current_thread() is not threading.main_thread():
            written.set()
            assert go_on.wait(60)
        original(path, *rest)

    monkeypatch.setattr(manifest, "save_json", paused)
    saver = threading.Thread(target=slow.save, args=(tmp_path,))
    saver.start()
    assert written.wait(60)
    fast.save(tmp_path)
    assert isinstance(pf.load(tmp_path), ConditionalFunnel)
    go_on.set()
    saver.join()
    assert isinstance(pf.load(tmp_path), Funnel)
    monkeypatch.setattr(manifest, "UNLOCKED_AGE", -1.0)  # later, what is left goes
    slow.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
