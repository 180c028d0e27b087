"""What stands beside mixtures of Bernoullis by moments does what it says."""

import numpy as np
from sets import Case, Fit, likeliest, measured


def test_steps_climb_and_the_likeliest_start_is_no_worse_than_the_truth():
    case, rng = Case("", 400, 12, 2, "items"), np.random.default_rng(0)
    truth = Fit(case.probabilities(rng), np.array([0.6, 0.4]))
    labels = rng.choice(2, size=400, p=truth.weights)
    X = (rng.random((400, 12)) < truth.probabilities.T[labels]).astype(float)
    fit, before = truth, -np.inf
    for _ in range(5):
        fit, likelihood = fit.step(X)
        assert likelihood > before
        before = likelihood
    found = likeliest(X, 2, seed=1)
    assert found.step(X)[1] > truth.settled(X)[1] - 1e-3


def test_each_line_has_a_method_and_its_numbers():
    case = Case("", 2000, 20, 2, "items")
    lines = [line.split(" | ") for line in measured(case, 1, peers=False)]
    assert [name for name, *_ in lines] == [
        "one pass",
        "and 2 polishing passes",
        "EM from the truth",
    ]
    errors = [float(error) for _, error, *_ in lines]
    assert errors[1] < 1.1 * errors[2]
