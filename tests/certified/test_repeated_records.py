"""Records that are there several times: told where they look like people, and not where tables are coarse."""

import numpy as np
import pandas as pd
import pytest

from privacyfunnel.certified import CertifiedFunnel
from privacyfunnel.certified.twins import warn_of_twins
from privacyfunnel.datasets import load_adult, load_german_credit
from privacyfunnel.errors import RepeatedRecordsWarning


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(2)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(0, "sex", np.where(rng.random(n) < 1 / (1 + np.exp(-X[:, 0])), "m", "f"))
    return frame


@pytest.mark.parametrize("copies", [2, 15])
def test_copies_of_people_are_told(copies):
    frame = pd.concat([people(400)] * copies, ignore_index=True)
    with pytest.warns(
        RepeatedRecordsWarning, match=r"100 % of the records have .* pass groups= .* or keep one"
    ):
        warn_of_twins(frame, [])
    sex = (frame.sex == "m").to_numpy().astype(int)
    with pytest.warns(RepeatedRecordsWarning):
        warn_of_twins(frame.drop(columns="sex").to_numpy(), [sex])


def test_fit_warns_unless_groups_tell_who_is_who():
    frame = pd.concat([people(1_000)] * 3, ignore_index=True)
    who = np.tile(np.arange(1_000), 3)
    with pytest.warns(RepeatedRecordsWarning) as told:
        CertifiedFunnel(0.3, n_cells=4, random_state=0).fit(frame, private="sex")
    assert len(told) == 1
    assert told[0].filename == __file__
    CertifiedFunnel(0.3, n_cells=4, random_state=0).fit(frame, private="sex", groups=who)


def coarse_table():
    rng = np.random.default_rng(0)
    town = rng.integers(0, 5, 2_000)
    return pd.DataFrame(
        {"town": town, "job": (town + rng.integers(0, 3, 2_000)) % 5, "sex": rng.integers(0, 2, 2_000)}
    )


def sparse_table():
    rng = np.random.default_rng(0)
    some = rng.random((2_000, 1)) < 0.3
    return pd.DataFrame(np.where(some, rng.integers(0, 50, (2_000, 8)), 0), columns=list("abcdefgh"))


@pytest.mark.parametrize(
    "make", [load_adult, load_german_credit, coarse_table, sparse_table, lambda: people(2_000)]
)
def test_people_who_look_alike_by_chance_are_not(make):
    frame = make()
    warn_of_twins(frame, [])  # warnings are errors
    warn_of_twins(frame.iloc[:, :3], [])


def test_kinds_are_no_people():
    places = np.random.default_rng(0).normal(size=(30, 3))
    warn_of_twins(places[np.random.default_rng(1).integers(0, 30, 3_000)], [])
    warn_of_twins(pd.DataFrame({"lists": [[1], [2]] * 500, "sex": [0, 1] * 500}), [])
