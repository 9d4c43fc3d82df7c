"""Fingerprints: open for what is released, keyed for what is private; the key is its owner's alone."""

import hashlib
import hmac
import os

import numpy as np
import pytest

from privacyfunnel.errors import DataFileError, InvalidInputError
from privacyfunnel.fingerprints import keyed_fingerprint, open_fingerprint
from privacyfunnel.keys import owner_key

KEY = bytes(range(32))
VALUES = np.array([0, 1, 1, 1])


def test_an_open_fingerprint_can_be_computed_by_anybody():
    content = repr((VALUES.shape, VALUES.dtype.str)).encode() + VALUES.tobytes()
    assert open_fingerprint(VALUES) == "sha256:" + hashlib.sha256(content).hexdigest()
    assert open_fingerprint(VALUES) != open_fingerprint(VALUES[::-1])
    assert open_fingerprint(["a", None]) == open_fingerprint(np.array(["a", None], dtype=object))


def test_a_keyed_fingerprint_is_the_standard_one_of_name_and_content():
    content = b"private\0" + repr((VALUES.shape, VALUES.dtype.str)).encode() + VALUES.tobytes()
    twin = hmac.new(KEY, content, hashlib.sha256).hexdigest()
    assert keyed_fingerprint(VALUES, KEY, "private") == f"hmac-sha256:{twin}"
    assert keyed_fingerprint(VALUES, KEY, "task") != keyed_fingerprint(VALUES, KEY, "private")
    assert keyed_fingerprint(VALUES, bytes(32), "private") != keyed_fingerprint(VALUES, KEY, "private")


@pytest.mark.parametrize("key", [b"", b"x" * 31, "x" * 32, None])
def test_what_is_no_key_is_refused_and_not_shown(key):
    with pytest.raises(InvalidInputError, match="must be 32 bytes") as caught:
        keyed_fingerprint(VALUES, key, "private")
    assert "xx" not in str(caught.value)


def test_a_new_key_is_for_its_owner_alone_and_stays(tmp_path):
    path = tmp_path / "audit.key"
    key = owner_key(path)
    assert len(key) == 32
    assert owner_key(path) == key != owner_key(tmp_path / "other.key")
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name != "posix", reason="needs permissions of POSIX")
def test_a_key_that_others_may_read_is_refused(tmp_path):
    path = tmp_path / "audit.key"
    key = owner_key(path)
    path.chmod(0o640)
    with pytest.raises(InvalidInputError, match="chmod 600") as caught:
        owner_key(path)
    assert key.hex() not in str(caught.value)


@pytest.mark.parametrize("content", ["", "no key\n", "ab" * 31, "ab" * 33, "é" * 32])
def test_a_file_without_a_key_is_refused(tmp_path, content):
    path = tmp_path / "audit.key"
    path.write_text(content, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(InvalidInputError, match="holds no key"):
        owner_key(path)
    assert path.read_text(encoding="utf-8") == content


def test_a_key_that_cannot_be_made_is_one_sentence(tmp_path):
    with pytest.raises(DataFileError, match="cannot use the key file"):
        owner_key(tmp_path / "nowhere" / "audit.key")
    tmp_path.joinpath("folder").mkdir(mode=0o700)
    with pytest.raises(InvalidInputError, match="holds no key"):
        owner_key(tmp_path / "folder")
