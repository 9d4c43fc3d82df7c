"""
Adult: occupation without sex
=============================

What may be told of an occupation without telling sex. Prints the tables of docs/adult.md.

Run: ``python examples/adult.py``
"""

import numpy as np

import privacyfunnel as pf


def describe(name: str, joint: pf.Joint, solution: pf.Solution) -> None:
    interval, profile = solution.leakage_interval(rng=0), pf.measure(solution.mechanism, joint)
    twice = pf.repeated_leakage(solution.mechanism, joint, 2)
    print(f"\n{name}: utility {solution.utility:.5f}, leakage {solution.leakage:.5f} bit")
    print(
        f"proved: objective {solution.objective:.6f} ≥ {solution.lower_bound:.6f}, gap {solution.gap:.1e} bit"
    )
    print(f"leakage on the population, 95 %: {interval.low:.5f} to {interval.high:.5f} bit")
    print(
        f"guess of sex right: {profile.guess_after:.4f}; two releases leak {twice.value:.5f} ({twice.kind})"
    )


def symbols(joint: pf.Joint, mechanism: pf.TableMechanism, female: int) -> None:
    """One line a symbol: how often, which occupations, what it tells of sex."""
    p_z, p_x_given_z = mechanism.p_z(joint.p_x), mechanism.p_x_given_z(joint.p_x)
    p_y_given_z = mechanism.p_y_given_z(joint)
    for z in np.argsort(-p_z):
        letters = sorted(np.flatnonzero(p_x_given_z[z] > 0), key=lambda x: -p_x_given_z[z, x])
        parts = [
            f"{joint.x_labels[x]} {p_x_given_z[z, x]:.3f} (P(z|x) = {mechanism.p_z_given_x[x, z]:.3f})"
            for x in letters
        ]
        print(f"| {p_z[z]:.4f} | {', '.join(parts)} | {p_y_given_z[z, female]:.3f} |")


def main() -> None:
    joint = pf.Joint.from_frame(pf.datasets.load_adult(), public=["occupation"], private=["sex"])
    female = joint.y_labels.index("Female")
    print(joint)
    print(f"P(Female) = {joint.p_y[female]:.4f}; guessing Male is right for {joint.p_y.max():.4f}")
    print("\n| occupation | P(x) | P(Female given x) |")
    for x in np.argsort(joint.p_xy[:, female] / joint.p_x):
        print(f"| {joint.x_labels[x]} | {joint.p_x[x]:.4f} | {joint.p_xy[x, female] / joint.p_x[x]:.3f} |")

    found = {
        "beta = 0.05": pf.solve(joint, beta=0.05, method="exact", rng=0),
        "max_leakage = 0.01": pf.solve(joint, max_leakage=0.01, method="exact", rng=0),
        "perfect privacy": pf.perfect_privacy(joint),
    }
    for name, solution in found.items():
        describe(name, joint, solution)
        symbols(joint, solution.mechanism, female)


if __name__ == "__main__":
    main()
