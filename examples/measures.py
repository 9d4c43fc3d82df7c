"""
Four meanings of a good release
===============================

One table, age and employment against sex, in German credit; four meanings of useful and telling.

Run: ``python examples/measures.py [FOLDER]`` (writes measures.png to FOLDER, docs/images by default)
"""

import sys
from pathlib import Path

import narwhals as nw
import numpy as np

import privacyfunnel as pf
from privacyfunnel.measures import Measures
from privacyfunnel.plotting import COLOURS, legend, new_figure, save_figure, tidy

YEARS = {"unemployed": 0.0, "< 1 year": 0.5, "1 to 4 years": 2.5, "4 to 7 years": 5.5, ">= 7 years": 10.0}
LIMIT = 0.01  # bit about sex


def main(folder: Path) -> None:
    people = nw.from_native(pf.datasets.load_german_credit())
    people = people.with_columns(decade=nw.col("age") // 10 * 10)
    joint = pf.Joint.from_frame(people, public=["decade", "employment"], private="sex", task="credit")
    points = [(decade / 10, YEARS[employment] / 3) for decade, employment in joint.x_labels]
    wanted = {"information": "information", "distance": pf.Distance(points), "task": pf.Task("credit")}
    found = {name: pf.solve(joint, max_leakage=LIMIT, utility=one, rng=0) for name, one in wanted.items()}
    # The most information where sex is guessed no more often than from the first release.
    guessed = pf.measure(found["information"].mechanism, joint).guess_after
    found["success"] = pf.solve(joint, max_leakage=guessed, leakage="success", rng=0)

    judges = {name: Measures.of(joint, one, "information", None) for name, one in wanted.items()}
    shares = {}
    for name, solution in found.items():
        tables = solution.mechanism.p_z_given_x, np.eye(joint.n_x)  # what is released, and X itself
        kept = [[judge.utility_of(joint.p_x, table) for table in tables] for judge in judges.values()]
        shares[name] = [100 * one / most for one, most in kept]
        judged = ", ".join(f"{key} {share:.1f} %" for key, share in zip(judges, shares[name], strict=True))
        told = pf.measure(solution.mechanism, joint)
        print(
            f"for {name}: keeps {judged}; tells {told.leakage:.4f} bit about sex, guessed right "
            f"{100 * told.guess_after:.1f} %; proved to {solution.gap / solution.utility:.0e}"
        )
    draw(shares, list(judges), folder)


def draw(shares: dict[str, list[float]], judges: list[str], folder: Path) -> None:
    figure, (ax,) = new_figure((6.4, 3.4))
    for number, (name, values) in enumerate(shares.items()):
        places = np.arange(len(judges)) + 0.19 * (number - 1.5)
        bars = ax.bar(places, values, 0.17, color=COLOURS[number], label=f"solved for {name}")
        ax.bar_label(bars, fmt="%.0f", fontsize=7.5)
    tidy(ax, "judged by", "kept, % of what X itself has")
    ax.set_xticks(range(len(judges)), judges)
    ax.set_ylim(0, 110)
    legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, columnspacing=1.2)
    save_figure(figure, folder / "measures.png", dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"))
