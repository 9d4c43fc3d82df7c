"""CertifiedFunnel as one of scikit-learn's: its own checks, and what these cannot ask with so few people."""

import numpy as np
import pytest
from populations import graded
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from privacyfunnel.certified import CertifiedFunnel
from privacyfunnel.errors import InvalidInputError

FEW = "its data have private classes of fewer than ten people, which are refused"
WORDS = "wants the words of scikit-learn; ours say what is wrong, where, and what helps"
EXPECTED_FAILURES = {
    "check_estimators_overwrite_params": FEW,
    "check_dont_overwrite_parameters": FEW,
    "check_estimators_fit_returns_self": FEW,
    "check_readonly_memmap_input": FEW,
    "check_n_features_in_after_fitting": FEW,
    "check_estimators_nan_inf": FEW,
    "check_f_contiguous_array_estimator": FEW,
    "check_fit2d_1feature": FEW,
    "check_fit2d_1sample": FEW,
    "check_dict_unchanged": FEW,
    "check_fit2d_predict1d": FEW,
    "check_complex_data": WORDS,
    "check_dtype_object": WORDS,
    "check_estimators_empty_data_messages": WORDS,
    "check_requires_y_none": WORDS,
}


# Its checks call fit_transform(X, y), as a pipeline does.
@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.TargetWarning")
@parametrize_with_checks(
    [CertifiedFunnel(None, n_cells=4, random_state=0)], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_what_the_checks_ask_with_enough_people():
    X, y, _ = graded().draw(3_000, np.random.default_rng(0))
    X.flags.writeable = False
    funnel = CertifiedFunnel(0.3, n_cells=6, random_state=0)
    settings = funnel.get_params()
    assert funnel.fit(X, y) is funnel
    assert funnel.get_params() == settings
    assert funnel.n_features_in_ == 2
    first = funnel.transform(X, rng=0)
    held = dict(vars(funnel))
    funnel.transform(X)
    assert {name: id(value) for name, value in vars(funnel).items()} == {
        name: id(value) for name, value in held.items()
    }
    again = clone(funnel).fit(np.asfortranarray(X), y)
    assert np.array_equal(again.transform(X, rng=0), first)
    assert CertifiedFunnel(0.3, n_cells=6, random_state=0).fit(X[:, :1], y).n_features_in_ == 1
    for gap, said in ((np.nan, "a missing number"), (np.inf, "an infinite number")):
        broken = X.copy()
        broken[5, 1] = gap
        with pytest.raises(InvalidInputError, match=said):
            clone(funnel).fit(broken, y)
        with pytest.raises(InvalidInputError, match=said):
            funnel.transform(broken)
    with pytest.raises(InvalidInputError, match="one row a record"):
        funnel.transform(X[0])
    with pytest.raises(InvalidInputError, match="name what is private"):
        clone(funnel).fit(X)


def test_a_funnel_is_fitted_again_after_its_trade_off_was_looked_at():
    X, y, _ = graded().draw(3_000, np.random.default_rng(0))
    funnel = CertifiedFunnel(None, n_cells=6, random_state=0).fit(X, y)
    front = funnel.frontier_
    assert funnel.fit(X, y).frontier_ is not front
