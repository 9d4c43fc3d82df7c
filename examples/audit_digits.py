"""
Audit releases of digits
========================

How often is the digit guessed from noisy principal components?

Run: ``python examples/audit_digits.py [FOLDER] [--quick]`` (report, card and figures go there; default: here)
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier

import privacyfunnel as pf
from privacyfunnel.auditing import logistic_regression
from privacyfunnel.plotting import save_figure
from privacyfunnel.report import plot_confusion, plot_success_psnr, save_card, save_comparison


class Forest:
    """An adversary of one's own."""

    name = "forest"
    threat_model = "Sees codes, knows other people's digits, and grows a forest on them."

    def fit(self, Z, y):
        self.forest = RandomForestClassifier(50, random_state=0).fit(Z, y)

    def predict_proba(self, Z):
        return self.forest.predict_proba(Z)


def main(folder: Path, quick: bool) -> None:
    train, _, images, digits = pf.datasets.load_digits()
    adversaries = [Forest(), logistic_regression()] if quick else None  # None: the default set
    reports = {}
    for width in (4, 16):
        pca = PCA(width, random_state=0).fit(train.reshape(len(train), -1))
        for noise in (0.25, 1.0):
            codes = pca.transform(images.reshape(len(images), -1))
            codes += noise * np.random.default_rng(0).normal(size=codes.shape)
            copies = pca.inverse_transform(codes).reshape(images.shape)
            what = {"Z": codes, "X": images, "X_hat": copies, "private": {"digit": digits}}
            report = pf.audit(**what, adversaries=adversaries, name=f"{width} components", n_jobs=1)
            print(f"{width:2} components, noise {noise:4}: {report!r}")
            reports.setdefault(f"{width} components", []).append(report)
    np.savez(folder / "release.npz", z=codes, x=images, x_hat=copies, y=digits)

    verdicts = report.gate(max_success=0.6, min_psnr=5)
    print(*(verdict.sentence for verdict in verdicts), sep="\n")
    report.save(folder / "audit.html")
    save_card(report, folder / "card.md", verdicts)
    save_comparison([one for group in reports.values() for one in group], folder / "compare.html")
    save_figure(plot_success_psnr(reports), folder / "success-psnr.png")
    save_figure(plot_confusion(report, "logistic regression"), folder / "confusion.png")


if __name__ == "__main__":
    paths = [Path(one) for one in sys.argv[1:] if not one.startswith("--")]
    main(paths[0] if paths else Path(), "--quick" in sys.argv)
