"""Certificates in audits: what nobody can exceed, of records that had no part in the mechanism."""

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing.findings import CERTIFICATE, ENTROPY
from privacyfunnel.auditing.measures.certified import certificate_findings, reference_share
from privacyfunnel.auditing.plan import NOT_FRESH
from privacyfunnel.certificate import leakage_bound, success_bound
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.report import wording

P_XY = np.array([[0.20, 0.10], [0.10, 0.20], [0.15, 0.15], [0.06, 0.04]])
QUIET: dict[str, object] = {"n_jobs": 1, "progress": False}


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    cells = rng.choice(P_XY.size, size=n, p=P_XY.ravel())
    return [f"job {i}" for i in cells // 2], np.array(["w", "m"])[cells % 2]


def mechanism():
    names = [f"job {i}" for i in range(4)]
    joint = pf.Joint(P_XY, x_labels=names, x_names="job", y_labels=["w", "m"], y_names="sex")
    return pf.solve(joint, max_leakage=0.01, rng=0).mechanism


@pytest.fixture(scope="module")
def audited():
    x, y = people(6_000)
    return pf.audit(mechanism(), x, {"sex": y}, fresh_records=True, **QUIET)


def test_a_certificate_is_above_the_truth_and_below_all_there_is_to_know(audited):
    released = P_XY.T @ mechanism().p_z_given_x
    (bits,) = audited.find("leakage", source=CERTIFICATE)
    (success,) = audited.find("success", source=CERTIFICATE)
    assert pf.mutual_information(released) < bits.value < 0.05
    assert released.max(axis=0).sum() < success.value < 0.65
    for one in (bits, success):
        assert (one.kind, one.on, one.confidence, one.interval) == (
            "upper bound",
            "Z",
            0.95,
            (0.0, one.value),
        )
    # P(Y) is guessed from records that do not certify.
    assert (success.n_samples, bits.n_samples) == (6_000, 5_400)


def test_the_numbers_are_those_of_soft_counts():
    rng = np.random.default_rng(1)
    counts = rng.multinomial(3_000, P_XY.ravel()).reshape(4, 2).astype(float)
    channel = mechanism().p_z_given_x
    success, bits = certificate_findings(pf.auditing.findings.About(0.9, 5), counts, channel)
    assert success.value == success_bound(channel.T @ counts, 0.9)
    # Whatever tenth was taken for P(Y), the bound is near that of all records with the true shares.
    assert bits.value == pytest.approx(leakage_bound(channel.T @ counts, P_XY.sum(axis=0), 0.9), rel=0.5)
    assert [reference_share(k) for k in (2, 5, 100)] == pytest.approx([0.1, 0.2, 1 / 3])


def test_it_is_the_upper_end_everywhere(audited):
    told = wording.told(audited, "sex")
    assert told.leaked.upper.source == CERTIFICATE
    assert told.most.source == CERTIFICATE
    assert audited.strongest.kind == "lower bound"
    summary = audited.summary()
    assert summary["success"] < summary["success_most"] < 0.65
    assert summary["leakage_most"] == told.leaked.upper.value
    assert "Nobody who sees one release and nothing else is right more often than" in wording.sentence(
        audited, "sex"
    )
    assert "no part in making the mechanism" in " ".join(audited.meta["audited"])
    assert not [one for one in audited.meta["not_audited"] if "trained on" in one or one == NOT_FRESH]


def test_gates_are_proved_by_it(audited):
    success, bits = audited.gate(max_success=0.65, max_leakage=0.05)
    for one in (success, bits):
        assert one.passed
        assert one.proved
        assert one.finding.source == CERTIFICATE
        assert "for every adversary, with 95 % confidence" in one.sentence
        assert "Not covered: the order of the rows" in one.sentence
    # A limit between what was found and what is proved is kept by those tried alone.
    between = (bits.value + audited.summary()["leakage_high"]) / 2
    (tried,) = audited.gate(max_leakage=between)
    assert tried.passed
    assert not tried.proved


def test_files_tell_it_rounded_up(audited, tmp_path):
    (exact,) = audited.find("success", source=CERTIFICATE)
    (shown,) = audited.published().find("success", source=CERTIFICATE)
    assert exact.value <= shown.value < exact.value + 0.002
    assert shown.value == pytest.approx(round(shown.value, 3), abs=1e-12)
    audited.save(tmp_path / "audit.json")
    again = pf.load(tmp_path / "audit.json")
    assert again.gate(max_leakage=0.05) == audited.gate(max_leakage=0.05)
    audited.save(tmp_path / "audit.html")
    assert CERTIFICATE in (tmp_path / "audit.html").read_text()


def test_without_a_word_it_stays_what_there_is_to_know():
    x, y = people(2_000)
    report = pf.audit(mechanism(), x, {"sex": y}, **QUIET)
    assert report.find(source=CERTIFICATE) == ()
    assert wording.told(report, "sex").leaked.upper.source == ENTROPY
    assert NOT_FRESH in report.meta["not_audited"]
    assert not report.gate(max_leakage=0.2)[0].proved


def test_symbols_that_were_released_elsewhere():
    x, y = people(4_000)
    z = mechanism().release(x, rng=7)  # other draws than those of the people
    report = pf.audit(Z=z, private={"sex": y}, fresh_records=True, **QUIET)
    soft = pf.audit(mechanism(), x, {"sex": y}, fresh_records=True, **QUIET)
    drawn, known = (one.find("leakage", source=CERTIFICATE)[0].value for one in (report, soft))
    assert 0.01 < known < 0.1  # with less noise than a draw, on average
    assert 0.01 < drawn < 0.1


def test_a_joint_of_other_records():
    x, y = people(3_000)
    joint = pf.Joint.from_samples(x, y, x_names="job", y_names="sex")
    report = pf.audit(mechanism(), joint, fresh_records=True)
    assert {one.quantity for one in report.find(source=CERTIFICATE)} == {"success", "leakage"}
    assert report.gate(max_leakage=0.05)[0].proved
    assert NOT_FRESH in pf.audit(mechanism(), joint).meta["not_audited"]
    known = pf.audit(mechanism(), pf.Joint(P_XY, x_labels=[f"job {i}" for i in range(4)]), fresh_records=True)
    assert known.find(source=CERTIFICATE) == ()  # exact numbers need none


def test_rare_classes_are_covered():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 3, 3_000)
    y = np.where(rng.random(3_000) < 0.5, "a", "b")
    y[:4] = "rare"
    y = rng.permutation(y)
    report = pf.audit(Z=x, private=y, fresh_records=True, **QUIET)
    assert report.find("unmeasured leakage")
    assert wording.told(report).unmeasured == []
    verdict = report.gate(max_leakage=0.1)[0]
    assert (verdict.passed, verdict.proved) == (True, True)
    unsaid = pf.audit(Z=x, private=y, **QUIET)
    assert wording.told(unsaid).unmeasured


def test_kept_columns_are_not_covered():
    x, y = people(3_000)
    report = pf.audit(
        mechanism(), x, {"sex": y}, keep={"name": np.where(y == "w", "a", "b")}, fresh_records=True, **QUIET
    )
    assert not report.gate(max_leakage=0.05)[0].passed
    harmless = np.array(["one", "two"])[np.arange(3_000) % 2]
    beside = pf.audit(mechanism(), x, {"sex": y}, keep={"name": harmless}, fresh_records=True, **QUIET)
    verdict = beside.gate(max_leakage=0.2)[0]
    assert (verdict.passed, verdict.proved) == (True, False)


def test_numbers_have_no_certificate():
    rng = np.random.default_rng(0)
    report = pf.audit(Z=rng.integers(0, 3, 500), private=rng.normal(size=500), fresh_records=True, **QUIET)
    assert report.find(source=CERTIFICATE) == ()


class Knowing:
    """A mechanism that knows what it was trained on."""

    def __init__(self, share):
        self.share = share

    def trained_on(self, X):
        return self.share

    def transform(self, X):
        return X[:, 0].astype(int)


def test_a_mechanism_that_knows_its_records():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (800, 2)).astype(float), rng.integers(0, 2, 800)
    # Marks are of some records: that none is found proves nothing, and nobody said it.
    known = pf.audit(Knowing(0.0), X, y, **QUIET)
    assert known.find(source=CERTIFICATE) == ()
    assert not any(one.proved for one in known.gate(max_success=0.7, max_leakage=0.9))
    assert "no proof" in " ".join(known.meta["audited"])
    assert pf.audit(Knowing(0.0), X, y, fresh_records=True, **QUIET).find("leakage", source=CERTIFICATE)
    assert pf.audit(Knowing(0.1), X, y, **QUIET).find(source=CERTIFICATE) == ()
    # Such records equal one another, and so new ones equal some of the training.
    assert pf.audit(Knowing(0.1), X, y, fresh_records=True, **QUIET).find("leakage", source=CERTIFICATE)
    with pytest.raises(InvalidInputError, match="about 50 %"):
        pf.audit(Knowing(0.5), X, y, fresh_records=True, **QUIET)
    X[:, 1] = rng.random(800)
    for share, said in ((0.5, "50 %"), (0.01, "1 %")):  # one that is known is not new
        with pytest.raises(InvalidInputError, match=rf"fresh_records says .* trained on about {said}"):
            pf.audit(Knowing(share), X, y, fresh_records=True, **QUIET)


def test_certificates_of_audits_hold_as_often_as_they_say():
    """The whole way from counts, reference included; a level at which misses would show."""
    rng = np.random.default_rng(9)
    population = np.array([[0.49, 0.49], [0.0, 0.02]])
    truth = pf.mutual_information(population)
    about = pf.auditing.findings.About(0.5, 0)
    missed = 0
    for i in range(200):
        counts = rng.multinomial(300, population.ravel()).reshape(2, 2).astype(float)
        missed += certificate_findings(about.of(seed=i), counts)[1].value < truth
    assert missed <= 100
