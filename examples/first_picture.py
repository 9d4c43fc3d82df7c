"""
What can be kept, and what it tells
===================================

A census table: people's occupation is to be handed out, and their sex is private. Some occupations are
nearly all men's. A release replaces occupations by random symbols; here is how much of the occupation it can
keep, and how much it must tell about sex.

Run: ``python examples/first_picture.py [FOLDER]``
Writes kept-and-told.png, the picture of the README, to FOLDER (docs/images).
"""

import sys
from pathlib import Path

import privacyfunnel as pf
from privacyfunnel.plotting import new_figure, plot_frontier, save_figure

WORDS = {
    "$H(X)$": "all of it",
    "$I(X;Y)$": "what occupation itself tells",
    "X or nothing": "occupation or nothing",
}


def draw(folder: Path) -> pf.Frontier:
    joint = pf.Joint.from_frame(pf.datasets.load_adult(), public="occupation", private="sex")
    best = pf.frontier(joint, method="exact", n_points=40, rng=0)
    curves = {
        "the best release there is (proved)": best,
        "occupations merged into groups": pf.frontier(joint, method="greedy", rng=0),
    }
    figure, (ax,) = new_figure((6.4, 4.3))
    plot_frontier(curves, ax=ax)
    ax.set_xlabel("how much of the public column (occupation) is kept  [bit]")
    ax.set_ylabel("how much is told about the private one (sex)  [bit]")
    for label in [*ax.texts, *ax.get_legend().get_texts()]:
        for letters, words in WORDS.items():
            label.set_text(label.get_text().replace(letters, words))
    save_figure(figure, folder / "kept-and-told.png", dpi=140)
    return best


if __name__ == "__main__":
    best = draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"))
    for share in (0.5, 0.8, 0.9, 1.0):
        told = best.leakage_at(share * best.max_utility)
        print(f"{100 * share:.0f} % of the occupation kept: at the best {told:.4f} bit told about sex")
