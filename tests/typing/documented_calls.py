"""Every call that README.md and docs/ show, with the type that comes back; for mypy --strict, never run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

import privacyfunnel as pf
from privacyfunnel import certificate
from privacyfunnel.auditing import (
    Adversary,
    Finding,
    LeakageBound,
    cross_fitted_bound,
    logistic_regression,
    neural_network,
)
from privacyfunnel.certified import CertifiedFunnel, Verdict
from privacyfunnel.certified.tables import ColumnTables, TableSchema
from privacyfunnel.keys import hmac_pads, new_key, read_key
from privacyfunnel.learned import (
    Autoencoder,
    ConditionalFunnel,
    DeepVariationalFunnel,
    Funnel,
)
from privacyfunnel.plotting import save_figure
from privacyfunnel.report import compare as save_page
from privacyfunnel.report import plot_confusion, plot_embedding, save_card, save_comparison
from privacyfunnel.solution import Target
from privacyfunnel.sql import key_table_statement
from privacyfunnel.sweep import Store, grid_runs, sweep


def known(people: object) -> pf.TableMechanism:
    joint = pf.Joint.from_frame(people, public=["housing", "employment"], private=["sex"])
    assert_type(joint, pf.Joint)
    assert_type(pf.Joint([[0.25, 0.25], [0.5, 0.0]]), pf.Joint)
    assert_type(pf.Joint.from_counts([[3, 1], [2, 4]]), pf.Joint)
    solution = pf.solve(joint, max_leakage=0.01, rng=0)
    assert_type(solution, pf.Solution)
    assert_type(pf.solve(joint, beta=0.3, method="exact", n_jobs=-1), pf.Solution)
    assert_type(pf.solve(joint, min_utility=1.0, method="dca", n_z=[2, 3], alpha=None), pf.Solution)
    assert_type(solution.target, Target)
    assert_type((solution.target.value, solution.beta), tuple[float, float | None])
    assert_type((solution.utility, solution.leakage, solution.objective), tuple[float, float, float])
    assert_type((solution.lower_bound, solution.gap), tuple[float | None, float | None])
    assert_type((solution.method, solution.status, solution.notes), tuple[str, pf.Status, tuple[str, ...]])
    assert_type(solution.raise_for_status(), pf.Solution)
    interval = solution.leakage_interval(rng=0)
    assert_type(interval, pf.Interval)
    assert_type((interval.low, interval.high, interval.level), tuple[float, float, float])
    fit, held_out = pf.split_joint(joint, 0.5, rng=0)
    estimate = pf.held_out_leakage(pf.solve(fit, beta=0.2).mechanism, held_out, rng=0)
    assert_type(estimate, pf.Estimate)
    assert_type((estimate.value, estimate.interval.low), tuple[float, float])
    assert_type(solution.certificate(held_out, confidence=0.95), pf.Measured)
    kept = pf.solve(joint, max_leakage=0.05, population=0.95)
    assert_type(kept.certified, pf.Measured | None)
    budgeted = pf.solve(joint, max_leakage={"sex": 0.005, "older": 0.02}, utility=pf.Task("credit"), rng=0)
    assert_type(budgeted, pf.Solution)
    print(budgeted.leakages, pf.solve(joint, leakage="success", max_leakage=0.695))
    repeated = pf.repeated_leakage(solution.mechanism, joint, 2)
    assert_type(repeated, pf.Measured)
    assert_type((repeated.value, float(repeated)), tuple[float, float])
    assert_type(pf.measure(solution.mechanism, joint), pf.LeakageProfile)
    assert_type(pf.measure(solution.mechanism, joint).largest_pointwise_leakage, float)
    assert_type((pf.entropy([0.5, 0.5]), pf.kl_divergence([1.0], [1.0])), tuple[float, float])
    assert_type(pf.mutual_information(joint.p_xy), float)
    assert_type(pf.perfect_privacy(pf.datasets.perfect_privacy()).utility, float)
    return solution.mechanism


def released(mechanism: pf.TableMechanism, people: Any) -> Any:
    mechanism.save("mechanism.json")
    mechanism.save(Path("mechanism.json"))
    loaded: pf.TableMechanism = pf.load("mechanism.json")
    print(loaded.release("own", rng=None), loaded.p_z_given_x, loaded.z_labels)
    half = pf.time_share([mechanism, loaded], [0.5, 0.5])
    assert_type(half, pf.TableMechanism)
    written = mechanism.release_stream("people.parquet", "released.parquet", keep="person")
    print(written.n_records, mechanism.release_stream(people).read_all())
    return mechanism.release_frame(people, keep=["credit"], shuffle=True)


def tradeoff() -> Figure:
    joint = pf.datasets.paper_joint()
    front = pf.frontier(joint, n_points=12, rng=0)
    assert_type(front, pf.Frontier)
    assert_type(pf.frontier(joint, method=["exact", "dca"], betas=[0.1, 0.2]), pf.Frontier)
    assert_type((front.leakage_at(1.0), front.utility_at(0.1)), tuple[float, float])
    assert_type(front.lower_bound_at(1.0), float | None)
    assert_type(front.envelope(), tuple[pf.TradeoffPoint, ...])
    assert_type(front.compare(front.select("exact")), pf.FrontierComparison)
    front.save("frontier.json")
    front.to_csv("frontier.csv")
    print(front.to_frame())
    return front.plot()


def compared(joint: pf.Joint) -> Figure:
    comparison = pf.compare(joint, methods=["dca", "dca-ridge"], utilities=[0.5, 1.0], n_starts=2, rng=0)
    assert_type(comparison, pf.Comparison)
    assert_type((comparison.summary, comparison.largest_gap("dca")), tuple[str, tuple[float, float]])
    assert_type(comparison.fronts["dca"].proved(), list[tuple[float, float]])
    print(comparison.to_frame(), comparison.settings, comparison.seconds)
    comparison.to_csv("compare.csv")
    comparison.save("compare.html")
    save_page(comparison, "compare.html")
    return comparison.plot()


def learned(images: NDArray[np.float64], digits: NDArray[np.int64]) -> Funnel:
    train, train_digits, new_images, _ = pf.datasets.load_digits()
    funnel = Funnel(hidden=(64, 64), epochs=60, random_state=0).fit(images, digits % 2)
    assert_type(funnel, Funnel)
    assert_type(Funnel(n_components=64).fit(train, private=train_digits), Funnel)
    assert_type(ConditionalFunnel().fit(images, private=digits), ConditionalFunnel)
    assert_type(DeepVariationalFunnel().fit(images, private=digits), DeepVariationalFunnel)
    assert_type(Autoencoder(8), Autoencoder)
    print(funnel.verdict_, funnel.history_["leakage"].iloc[-1])
    codes = funnel.transform(new_images)
    print(((funnel.inverse_transform(codes) - new_images) ** 2).mean())
    funnel.set_params(batch_size=128, random_state=0, release_state=1)
    funnel.partial_fit(images, private=digits, classes=range(10))
    funnel.save("model")
    funnel.save("encoder", part="encoder")
    model: Funnel = pf.load("model")
    bound = cross_fitted_bound(neural_network(), codes, digits % 2)
    assert_type(bound, LeakageBound)
    assert_type((bound.value, bound.standard_error, bound.upper_end()), tuple[float, float, float])
    return model


class Forest:
    """An adversary of one's own."""

    name = "forest"
    threat_model = "Sees codes, knows other people's digits, and grows a forest on them."

    def fit(self, Z: NDArray[np.float64], y: NDArray[np.int64]) -> None:
        self.share = np.bincount(y) / len(y)

    def predict_proba(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.tile(self.share, (len(Z), 1))


def audited(funnel: Funnel, images: ArrayLike, digits: ArrayLike) -> None:
    report = pf.audit(funnel, images, digits)
    assert_type(report, pf.AuditReport)
    assert_type(pf.audit(Z=images, X=images, private=digits, figures=True), pf.AuditReport)
    own: Adversary = Forest()
    adversaries = [own, logistic_regression()]
    mine = pf.audit(Z=images, private={"digit": digits}, adversaries=adversaries, keep={"age": digits})
    if mine.strongest is not None:
        assert_type(mine.strongest, Finding)
        assert_type((mine.strongest.source, mine.strongest.low), tuple[str, float | None])
    print(report.to_frame(), pf.load("audit.json"))
    report.save("audit.html")
    verdicts = report.gate(max_success=0.9, max_leakage=0.5)
    assert_type(all(verdict.passed for verdict in verdicts), bool)
    save_comparison([report, mine], "compare.html")
    save_card(report, "card.md", report.gate(max_success=0.99))
    save_figure(plot_confusion(report), "confusion.pdf")
    save_figure(plot_embedding(report), "umap.png")


def certified() -> None:
    counts = np.array([[410.0, 390.0], [620.0, 580.0], [490.0, 510.0]])
    assert_type(certificate.success_bound(counts), float)
    assert_type(certificate.leakage_bound(counts, [0.5, 0.5]), float)


def guaranteed() -> None:
    people = pf.datasets.load_german_credit()
    funnel = CertifiedFunnel(0.3, random_state=0).fit(people, private="sex", task="credit")
    assert_type(funnel, CertifiedFunnel)
    assert_type(funnel.verdict_, Verdict)
    assert_type(funnel.certificate_, pf.Measured)
    print(funnel.release(people), funnel.choose(max_leakage=0.3).certificates_)
    funnel.save("rule", part="release")


def same_frame_back(symbols: NDArray[np.intp]) -> None:
    people = pf.datasets.load_german_credit()
    schema = TableSchema.read(people, drop=["sex", "personal_status"])
    assert_type(schema.report, tuple[str, ...])
    assert_type(schema.to_points(people), NDArray[np.float64])
    tables = ColumnTables.count(schema, people, symbols)
    print(tables.draw(symbols), tables.codebook())


def keyed(mechanism: pf.TableMechanism, letters: list[str], persons: list[str]) -> None:
    assert_type(new_key("owner.key"), bytes)
    key = read_key("owner.key")
    assert_type(hmac_pads(key), tuple[bytes, bytes])
    print(mechanism.release(letters, key=key, id=persons))
    assert_type(mechanism.to_sql_table("mechanism", dialect="duckdb"), list[str])
    assert_type(mechanism.to_sql("people", dialect="duckdb", id="person", shuffle=True), str)
    assert_type(key_table_statement("duckdb"), str | None)


def inspected(people: Any, mechanism: pf.TableMechanism, letters: list[str], sex: list[str]) -> None:
    found = pf.inspect(people, private="sex")
    assert_type(found, pf.Inspection)
    assert_type(found.summary, str)
    assert_type(found.pairs[0].bits, pf.Estimate)
    assert_type(pf.audit(mechanism, letters, sex, fresh_records=True), pf.AuditReport)


def swept() -> Mapping[str, Any]:
    runs = grid_runs("dca", "paper", settings={"n_starts": 5}, grid={"beta": [0.2, 0.4], "seed": [0, 1]})
    sweep(runs, "runs/", n_jobs=-1)
    frame: Mapping[str, Any] = Store("runs/").to_frame()
    return frame


def mistakes(joint: pf.Joint) -> None:
    try:
        pf.solve(joint, min_utility=99.0)
    except pf.errors.PrivacyFunnelError as error:
        print(error)
