"""How many workers, and threads that end when they are asked to."""

import os
import subprocess
import sys
from contextlib import closing
from threading import Event

import pytest

from privacyfunnel.errors import InvalidInputError
from privacyfunnel.parallel import in_order, in_threads, n_cores, n_workers


def nothing():
    pass


def test_negative_numbers_count_back_from_all_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert n_cores() == 6
    assert [n_workers(n) for n in (1, 9, -1, -2, -6, -99)] == [1, 9, 6, 5, 1, 1]
    for wrong in (0, True, 1.0, "2", 10**400):
        with pytest.raises(InvalidInputError, match="n_jobs must be a positive number, or -1 for all cores"):
            n_workers(wrong)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_every_call_is_made_once(n_jobs):
    calls = [lambda i=i: i * i for i in range(20)]
    assert dict(in_threads(calls, n_jobs, nothing, nothing)) == {i: i * i for i in range(20)}


def test_results_come_as_they_end():
    seen, order = Event(), []
    for at, result in in_threads([lambda: seen.wait(10), seen.is_set], 2, nothing, nothing):
        order.append((at, result))
        seen.set()
    assert order == [(1, False), (0, True)]


def test_an_error_asks_the_others_to_end_and_begins_no_more():
    asked, begun = Event(), []

    def fail():
        raise ValueError("no")

    calls = [
        fail,
        lambda: asked.wait(10),
        *[lambda i=i: (asked.wait(10), begun.append(i)) for i in range(50)],
    ]
    with pytest.raises(ValueError, match="no"):
        list(in_threads(calls, 2, asked.set, nothing))
    assert asked.is_set()
    assert len(begun) < 50


def test_closing_ends_what_runs():
    asked = Event()
    with closing(in_threads([nothing, lambda: asked.wait(10)], 2, asked.set, nothing)) as ended:
        assert next(ended)[0] == 0
    assert asked.is_set()


def test_somebody_can_look_at_the_clock_meanwhile():
    looked = Event()
    assert dict(in_threads([lambda: looked.wait(10)], 1, nothing, looked.set)) == {0: True}


def test_libraries_that_are_loaded_later_are_limited_too():
    # In a process of its own: what other tests have loaded must not help.
    script = """
import os
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "3"
from threadpoolctl import threadpool_info
from privacyfunnel.parallel import library_threads
threads = lambda: {one["filepath"]: one["num_threads"] for one in threadpool_info()}
with library_threads(1):
    early = threads()
import scipy.linalg, sklearn.cluster
before = threads()
with library_threads(1):
    inside = threads()
assert len(before) > len(early), "nothing was loaded in between"
assert set(early.values()) == set(inside.values()) == {1}, (early, inside)
assert threads() == before and 1 not in before.values()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_in_order_keeps_the_order_and_takes_few_ahead(n_jobs):
    taken = []

    def items():
        for number in range(50):
            taken.append(number)
            yield number

    results = in_order(lambda number: number**2, items(), n_jobs)
    assert next(results) == 0
    assert len(taken) <= n_jobs + 1
    assert list(results) == [number**2 for number in range(1, 50)]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_in_order_ends_at_an_error(n_jobs):
    def call(number):
        if number == 4:
            raise ValueError("four")
        return number

    results = in_order(call, iter(range(1000)), n_jobs)
    assert [next(results) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="four"):
        next(results)
    assert list(results) == []
