"""Marks: whatever part of a training comes again is noticed, by its owner alone."""

import hashlib

import numpy as np
import pytest

from privacyfunnel.learned.inputs import N_MARKS, Marks

KEY = bytes(range(32))


def test_marks_are_keyed_hashes_of_the_records():
    records = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    marks = Marks(KEY).after(records)
    digests = [hashlib.blake2b(row.tobytes(), digest_size=8, key=KEY).digest() for row in records]
    assert marks.marks.tolist() == sorted(int.from_bytes(digest, "little") for digest in digests)
    assert not np.isin(Marks().after(records).marks, marks.marks).any()  # another key
    assert Marks().key != Marks().key


@pytest.mark.parametrize("n", [200, 20_000])
def test_marks_find_whatever_part_comes_again(n):
    rng = np.random.default_rng(1)
    records, others = rng.normal(size=(2, n, 3)).astype(np.float32)
    marks = Marks(KEY)
    for part in np.array_split(records, 7):
        marks = marks.after(part)
    assert len(marks.marks) == min(n, N_MARKS)
    assert marks.share(rng.permutation(records)[: n // 3]) == 1
    assert marks.share(others) == 0
    mixed = np.concatenate([records[: n // 4], others[: n // 4]])
    assert marks.share(mixed) == pytest.approx(0.5, abs=0.12)
    assert np.array_equal(marks.after(records).marks, marks.marks)  # more epochs on the same records


def test_marks_say_nothing_where_there_is_nothing_to_go_by():
    same = np.zeros((30, 2), dtype=np.float32)
    assert len(Marks(KEY).after(same).marks) == 0  # nobody is told apart
    assert Marks(KEY).share(same) is None
    assert Marks(KEY).after(np.eye(3, dtype=np.float32)).share(same) is None


def test_a_model_from_before_there_were_marks_does_not_pretend_to_know(tmp_path):
    import json

    import privacyfunnel as pf
    from privacyfunnel.learned import Autoencoder
    from privacyfunnel.learned.manifest import checksum

    x = np.random.default_rng(2).normal(size=(60, 3)).astype(np.float32)
    Autoencoder(2, hidden=(4,), epochs=1, random_state=0).fit(x).save(tmp_path)
    assert pf.load(tmp_path).trained_on(x) == 1
    document = json.loads((tmp_path / "manifest.json").read_text())
    payload = {key: value for key, value in document["payload"].items() if key not in ("marks", "checksum")}
    document["payload"] = {**payload, "checksum": checksum(payload)}
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    older = pf.load(tmp_path)
    assert older.trained_on(x) is None
    assert older.partial_fit(x).trained_on(x) is None
