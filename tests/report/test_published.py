"""What a report's files tell somebody who has them, the released codes and this library."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing import AuditReport, logistic_regression
from privacyfunnel.keys import owner_key
from privacyfunnel.report import save_card, save_comparison


def files_of(report: AuditReport, folder: Path) -> dict[str, str]:
    """Everything that can be written about a report, by file name."""
    report.save(folder / "audit.json")
    report.save(folder / "audit.html")
    save_card(report, folder / "card.md", report.gate(max_success=0.9, max_leakage=0.5))
    save_comparison([report, report], folder / "compare.html")
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def guesses_by_hash(digests: set[str], n: int) -> list[tuple[int, ...]]:
    """The columns of n binary values that one of the digests is a hash of, by any way one would hash them."""
    found = []
    for values in product((0, 1), repeat=n):
        columns = np.array(values), np.array([str(one) for one in values]), np.array(values, dtype=object)
        for column in columns:
            head = repr((column.shape, column.dtype.str)).encode()
            text = "\0".join(map(str, column.tolist())).encode()
            named = str({"sex": column}).encode()
            whole = np.array({"sex": column})
            for content in (
                column.tobytes() if column.dtype.kind != "O" else text,
                head + (column.tobytes() if column.dtype.kind != "O" else text),
                b"private\0" + head + (column.tobytes() if column.dtype.kind != "O" else text),
                text,
                repr((whole.shape, whole.dtype.str)).encode() + named,
            ):
                tried = (hashlib.sha256(content), hmac.new(b"", content, "sha256"))
                if any(one.hexdigest() in digests for one in tried):
                    found.append(values)
    return found


@pytest.mark.parametrize("keyed", [False, True])
def test_private_values_cannot_be_found_by_trying_hashes(tmp_path, keyed):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 10)
    key = owner_key(tmp_path / "audit.key") if keyed else None
    out = tmp_path / "out"
    out.mkdir()
    digests: set[str] = set()
    for private in (y, {"sex": y}):
        report = pf.audit(
            Z=rng.normal(size=(10, 2)),
            X=rng.normal(size=(10, 2)),
            private=private,
            adversaries=[logistic_regression()],
            fingerprint_key=key,
            n_jobs=1,
        )
        for text in files_of(report, out).values():
            digests |= set(re.findall(r"\b[0-9a-f]{64}\b", text))
            assert key is None or key.hex() not in text
    # Two releases; with a key also records and private column, each twice.
    assert len(digests) == (6 if keyed else 2)
    assert guesses_by_hash(digests, 10) == []


def test_the_search_finds_a_column_that_was_hashed():
    column = np.array([0, 1, 1, 0])
    content = repr((column.shape, column.dtype.str)).encode() + column.tobytes()
    assert guesses_by_hash({hashlib.sha256(content).hexdigest()}, 4) == [(0, 1, 1, 0)]
    twin = np.array({"sex": column})
    content = repr((twin.shape, twin.dtype.str)).encode() + str(twin.item()).encode()
    assert guesses_by_hash({hashlib.sha256(content).hexdigest()}, 4) == [(0, 1, 1, 0)]


def test_who_has_the_key_recognises_the_data():
    Z, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    prints = [
        pf.audit(
            Z=Z, private={"sex": values}, adversaries=[logistic_regression()], fingerprint_key=key, n_jobs=1
        ).meta["fingerprint"]
        for values, key in ((y, bytes(32)), (y, bytes(32)), (1 - y, bytes(32)), (y, b"1" * 32))
    ]
    assert prints[0] == prints[1]
    assert len({one["private"] for one in prints}) == 3
    assert len({one["Z"] for one in prints}) == 1  # of what is released: without the key
    assert json.dumps(prints)
