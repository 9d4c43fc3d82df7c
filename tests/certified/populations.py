"""Populations whose leakage is known: records are numbers that say in which kind somebody is."""

import numpy as np

import privacyfunnel as pf


class Population:
    """Kinds of people at places, each with P(y | kind); a record is the place with a little noise."""

    def __init__(self, p_kind, p_y_given_kind, width=0.05):
        self.p_kind, self.p_y = np.asarray(p_kind, float), np.asarray(p_y_given_kind, float)
        self.places = np.column_stack([np.arange(len(self.p_kind)), np.cos(np.arange(len(self.p_kind)))])
        self.width = width

    def draw(self, n, rng):
        kinds = rng.choice(len(self.p_kind), n, p=self.p_kind)
        y = (rng.random(n)[:, None] > np.cumsum(self.p_y[kinds], axis=1)).sum(axis=1)
        noise = self.width * rng.uniform(-1, 1, (n, 2))
        return self.places[kinds] + noise, y, kinds

    def leakage(self, funnel, measure="information"):
        """What a fitted funnel really tells: noise says nothing about y, so only the kind matters."""
        rng = np.random.default_rng(0)
        n = 400
        joint = np.zeros((self.p_y.shape[1], funnel.rule_.n_symbols))
        for kind, share in enumerate(self.p_kind):
            X = self.places[kind] + self.width * rng.uniform(-1, 1, (n, 2))
            cells = np.bincount(funnel.rule_.cells_of(X), minlength=funnel.rule_.cells.n_cells) / n
            joint += share * np.outer(self.p_y[kind], cells @ funnel.rule_.mechanism.p_z_given_x)
        if measure == "success":
            return float(joint.max(axis=0).sum())
        if measure == "parity":
            rows = joint / joint.sum(axis=1, keepdims=True)
            return max(0.5 * float(np.abs(a - b).sum()) for i, a in enumerate(rows) for b in rows[i + 1 :])
        return pf.mutual_information(joint)


def graded(n_kinds=8, seed=0, n_y=2):
    """Kinds that tell y more or less."""
    rng = np.random.default_rng(seed)
    return Population(rng.dirichlet(np.full(n_kinds, 5.0)), rng.dirichlet(np.full(n_y, 2.0), size=n_kinds))


def hostile():
    """One rare kind reveals y; nobody else tells anything."""
    return Population([0.49, 0.5, 0.01], [[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]])
