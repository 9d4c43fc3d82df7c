import pytest

torch = pytest.importorskip("torch", reason="the extra `learned` is not installed")


@pytest.fixture(autouse=True)
def one_thread():
    """Tests run beside each other; one thread each is fastest and repeatable."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def fits_are_judged_where_a_test_is_about_it(request, monkeypatch):
    """A fit of an epoch or two keeps next to nothing, and its verdict takes longer than it."""
    if request.module.__name__ != "test_verdict":
        monkeypatch.setattr("privacyfunnel.learned.verdict.LEAST_KEPT", 10**9)


@pytest.fixture(scope="session")
def digits():
    """scikit-learn's 8×8 digits in [0, 1]: 1,000 records to learn from and 400 the encoder never sees."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x, y = (data.data / 16).astype("float32"), data.target
    return x[:1000], y[:1000], x[1000:1400], y[1000:1400]
