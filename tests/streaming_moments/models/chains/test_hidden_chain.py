"""Chains of any emission: read against all paths of states, recovered, made likelier by rounds."""

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import multivariate_normal, poisson

from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.chains import (
    DiscreteEmission,
    GaussianEmission,
    HiddenChain,
    Likelihoods,
    VectorSequences,
    gaussian_chain,
)
from streaming_moments.models.chains.row_windows import RowWindows
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.statistics.vectors.pilot import foundation_of
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.synthetic.hidden import markov_sequences

MOVES = np.array([[0.8, 0.3], [0.2, 0.7]])
START, WEIGHTS = np.array([0.7, 0.3]), np.array([0.6, 0.4])
MEANS = np.array([[0.0, 1.0], [2.0, -1.0]])
COVARIANCES = np.array([[[1.0, 0.3], [0.3, 0.5]], [[0.4, 0.0], [0.0, 2.0]]])
ROWS = [[[0.1, 0.9], [1.5, -0.2], [np.nan, 0.0], [2.2, -3.0]], [[0.4, 0.2]], []]


def vector_sequences(sequences):
    return VectorSequences.of([np.reshape(one, (len(one), 2)) for one in sequences])


def gaussians():
    return HiddenChain(GaussianEmission(MEANS, COVARIANCES), MOVES, START, WEIGHTS)


def symbols():
    columns = np.array([[0.7, 0.1], [0.2, 0.3], [0.1, 0.6]])
    return HiddenChain(DiscreteEmission(columns), MOVES, START, WEIGHTS)


def density(row, state):
    if np.isnan(row).any():
        return 1.0
    return multivariate_normal(MEANS[state], COVARIANCES[state]).pdf(row)


def chance(symbol, state):
    return 1.0 if symbol < 0 else symbols().emission.smoothed[symbol, state]


def of_paths(sequence, likelihood, start):
    """Of each path of states with a sequence."""
    found = {}
    for path in product(range(2), repeat=len(sequence)):
        total = start[path[0]] * likelihood(sequence[0], path[0])
        for place in range(1, len(path)):
            total *= MOVES[path[place], path[place - 1]] * likelihood(sequence[place], path[place])
        found[path] = total
    return found


CASES = [
    (gaussians(), vector_sequences(ROWS[:2]), ROWS[:2], density),
    (symbols(), SymbolBatch.of([[0, 2, -1, 1], [1]]), [[0, 2, -1, 1], [1]], chance),
]


@pytest.mark.parametrize(("chain", "batch", "sequences", "likelihood"), CASES)
def test_reading_agrees_with_all_paths_of_states(chain, batch, sequences, likelihood):
    paths = [of_paths(one, likelihood, chain.smooth_start) for one in sequences]
    totals = [sum(one.values()) for one in paths]
    assert np.allclose(chain.log_likelihoods(batch), np.log(totals), rtol=1e-12)
    expected = [
        [sum(c for p, c in paths[0].items() if p[t] == state) / totals[0] for state in range(2)]
        for t in range(4)
    ]
    assert np.allclose(chain.posterior(batch)[:4], expected, atol=1e-12)
    logs, states = chain.decode(batch)
    best = max(paths[0], key=paths[0].get)
    assert tuple(states[:4]) == best
    assert logs[0] == pytest.approx(np.log(paths[0][best]))


@pytest.mark.parametrize(("chain", "batch", "sequences", "likelihood"), CASES)
def test_a_round_is_that_of_all_paths_of_states(chain, batch, sequences, likelihood):
    following, score = chain.after_round(batch)
    joint, start, shares = np.zeros((2, 2)), np.zeros(2), []
    for one in sequences:
        paths = of_paths(one, likelihood, chain.smooth_start)
        total, posterior = sum(paths.values()), np.zeros((len(one), 2))
        for path, weight in paths.items():
            start[path[0]] += weight / total / 2
            posterior[np.arange(len(one)), path] += weight / total
            for before, after in pairwise(path):
                joint[after, before] += weight / total
        shares.append(posterior)
    posterior = np.concatenate(shares)
    assert score == pytest.approx(chain.log_likelihoods(batch).sum())
    assert np.allclose(following.transition, joint / joint.sum(axis=0))
    assert np.allclose(following.start, start)
    assert np.allclose(following.weights, posterior.mean(axis=0))
    given = [row for one in sequences for row in one]
    seen = np.array([not (np.isnan(row).any() or np.array_equal(row, -1)) for row in given])
    if isinstance(chain.emission, DiscreteEmission):
        counts = np.zeros((3, 2))
        for symbol, share in zip(np.array(given)[seen], posterior[seen], strict=True):
            counts[symbol] += share
        assert np.allclose(following.emission.columns, counts / counts.sum(axis=0))
    else:
        means = posterior[seen].T @ np.array(given)[seen] / posterior[seen].sum(axis=0)[:, None]
        assert np.allclose(following.emission.means, means)


def drawn_rows(number, length=40, seed=0, d=3):
    k = 3
    rng = np.random.default_rng(seed)
    means = 3 * np.eye(k, d)
    roots = np.stack([np.diag(rng.uniform(0.5, 1.2, d)) for _ in range(k)])
    roots[0, 1, 0] = 0.6
    moves = 0.25 * rng.dirichlet(np.ones(k), k).T + 0.75 * np.eye(k)
    states = np.empty((number, length), int)
    states[:, 0] = rng.choice(k, number, p=[0.6, 0.3, 0.1])
    for place in range(1, length):
        chances = np.cumsum(moves[:, states[:, place - 1]], axis=0)
        states[:, place] = (chances < rng.random(number) * chances[-1]).sum(axis=0)
    noise = rng.normal(size=(number, length, d))
    values = means[states] + np.einsum("nlde,nle->nld", roots[states], noise)
    covariances = roots @ roots.transpose(0, 2, 1)
    return VectorSequences.of(list(values)), means, covariances, moves, states


def test_planted_gaussians_are_recovered_by_moments_and_by_rounds():
    sequences, means, covariances, moves, states = drawn_rows(400)
    errors = []
    for rounds in (0, 60):
        found = gaussian_chain(sequences, 3, rounds)
        distances = np.linalg.norm(found.emission.means[:, None] - means, axis=2)
        order = distances.argmin(axis=0)
        assert sorted(order) == [0, 1, 2]
        errors.append(
            (
                np.abs(found.emission.means[order] - means).max(),
                np.abs(found.emission.covariances[order] - covariances).max(),
                np.abs(found.transition[np.ix_(order, order)] - moves).max(),
                np.abs(found.start[order] - [0.6, 0.3, 0.1]).max(),
            )
        )
        score = found.log_likelihoods(sequences).sum()
    assert (np.array(errors[0]) < [0.15, 0.3, 0.05, 0.1]).all()
    assert (np.array(errors[1]) < [0.06, 0.1, 0.03, 0.08]).all()
    start, emission = np.array([0.6, 0.3, 0.1]), GaussianEmission(means, covariances)
    true = HiddenChain(emission, moves, start, np.full(3, 1 / 3))
    assert score >= true.log_likelihoods(sequences).sum()
    assert (np.argsort(order)[found.decode(sequences)[1]] == states.ravel()).mean() > 0.97


def test_exact_moments_give_the_chain_itself():
    rng = np.random.default_rng(3)
    k, d = 3, 2
    means = np.array([[0.0, 2.0], [1.5, -1.0], [-2.0, -1.0]])
    covariances = np.stack([np.diag(rng.uniform(0.3, 1, d)) for _ in range(k)])
    moves = 0.4 * rng.dirichlet(np.ones(k), k).T + 0.6 * np.eye(k)
    wide = np.vstack([np.ones(k), means.T])
    one, two = np.triu_indices(d)
    seconds = covariances + means[:, :, None] * means[:, None, :]
    middle = np.vstack([wide, seconds[:, one, two].T])
    sums, share, start = 0.0, np.array([0.2, 0.5, 0.3]), np.array([0.2, 0.5, 0.3])
    for _ in range(4):  # not stationary
        joint = np.einsum("a,ba,cb->abc", share, moves, moves)
        sums = sums + np.einsum("pa,ib,qc,abc->ipq", wide, middle, wide, joint)
        share = moves @ share
    found = RowWindows(np.zeros(d), np.ones(d), sums, wide @ start).chain(k)
    order = np.linalg.norm(found.emission.means[:, None] - means, axis=2).argmin(axis=0)
    assert np.allclose(found.emission.means[order], means, atol=1e-9)
    assert np.allclose(found.emission.covariances[order], covariances, atol=1e-8)
    assert np.allclose(found.transition[np.ix_(order, order)], moves, atol=1e-9)
    assert np.allclose(found.start[order], start, atol=1e-9)


def test_no_round_makes_sequences_less_likely():
    drawn = markov_sequences(60, length=30, n_symbols=6, k=2, seed=2)
    chains = [
        (HiddenChain(DiscreteEmission(drawn.emission[:, ::-1]), MOVES, START, START), drawn.batch),
        (RowWindows.of(drawn_rows(40)[0]).chain(3), drawn_rows(40)[0]),
    ]
    for begun, sequences in chains:
        chain, scores = begun, []
        for _ in range(15):
            chain, score = chain.after_round(sequences)
            scores.append(score)
        # what is read is smoothed by a ten thousandth, which a round does not know
        assert np.diff(scores).min() > -1e-2
        assert scores[-1] > scores[0]


def test_sums_of_rows_do_not_say_how_states_follow():
    sequences, *_ = drawn_rows(50, d=2)
    mixed = np.random.default_rng(0).permutation(len(sequences.values))
    shuffled = VectorSequences(sequences.offsets, sequences.values[mixed])
    foundation = foundation_of(sequences.values, 8)
    # of one half: rows are of the two in turn
    odd = np.zeros(len(mixed), bool)
    kept = [foundation.of_vectors(VectorBatch.of(one.values, odd)) for one in (sequences, shuffled)]
    assert kept[0] == kept[1]
    chains = [RowWindows.of(one).sums for one in (sequences, shuffled)]
    assert not np.allclose(chains[0], chains[1], rtol=0.1)


def test_rows_that_no_state_could_emit_are_read():
    far = vector_sequences([[[0.0, 1.0], [1e6, 1e6], [-1e6, 1e6], [1e6, -1e6], [2.0, -1.0]]])
    stuck = HiddenChain(gaussians().emission, np.array([[0.0, 1.0], [1.0, 0.0]]), START, WEIGHTS)
    for chain in (gaussians(), stuck):
        assert np.isfinite(chain.log_likelihoods(far)).all()
        posterior = chain.posterior(far)
        assert np.allclose(posterior.sum(axis=1), 1)
        following, _ = chain.after_round(far)
        assert np.isfinite(following.emission.covariances).all()
        assert np.isfinite(chain.decode(far)[0]).all()


@dataclass(frozen=True)
class Counts:
    offsets: np.ndarray
    values: np.ndarray

    @property
    def begins(self):
        return np.ones(self.offsets.size - 1, bool)


@dataclass(frozen=True)
class PoissonEmission:
    """A further emission, which is all that a chain asks for."""

    rates: np.ndarray

    def log_likelihoods(self, sequences):
        logs = poisson.logpmf(sequences.values[:, None], self.rates)
        return Likelihoods(np.arange(sequences.values.size, dtype=np.int32), logs)

    def likelihoods(self, sequences):
        found = self.log_likelihoods(sequences)
        return Likelihoods(found.rows, np.exp(found.table))

    def maximised(self, sequences, posterior):
        return PoissonEmission(posterior.T @ sequences.values / posterior.sum(axis=0))


def test_a_further_emission_needs_nothing_of_the_chain():
    rng = np.random.default_rng(1)
    states = np.cumsum(rng.random((80, 50)) < 0.1, axis=1) % 2
    counts = Counts(np.arange(81) * 50, rng.poisson(np.array([2.0, 9.0])[states]).ravel())
    chain = HiddenChain(PoissonEmission(np.array([1.0, 5.0])), MOVES, START, WEIGHTS)
    for _ in range(30):
        chain, _ = chain.after_round(counts)
    assert np.allclose(chain.emission.rates, [2, 9], atol=0.3)
    assert np.allclose(np.diag(chain.transition), 0.9, atol=0.02)
    assert (chain.decode(counts)[1] == states.ravel()).mean() > 0.95


def test_what_is_no_sequence_of_rows_is_named():
    with pytest.raises(InvalidInput, match="shapes"):
        VectorSequences.of([[[1.0]], [[1.0, 2.0]]])
    with pytest.raises(InvalidInput, match="infinite"):
        VectorSequences.of([[[np.inf]]])
    with pytest.raises(InvalidInput, match="do not match offsets"):
        VectorSequences(np.array([0, 3]), np.zeros((2, 1)))
    with pytest.raises(InvalidInput, match="positive definite"):
        GaussianEmission(MEANS, np.zeros((2, 2, 2)))
    with pytest.raises(InvalidInput, match="covariances have shape"):
        GaussianEmission(MEANS, np.ones((2, 2)))
    with pytest.raises(ForeignStatistics, match="the rows have 1 number, but the model needs 2"):
        gaussians().posterior(VectorSequences.of([[[1.0]]]))
    with pytest.raises(ForeignStatistics, match="symbol 7"):
        symbols().posterior(SymbolBatch.of([[7]]))
    with pytest.raises(InvalidInput, match="whole, non-empty sequences"):
        gaussians().after_round(vector_sequences([[]]))
    with pytest.raises(InvalidInput, match="constant"):
        gaussian_chain(VectorSequences.of([np.ones((9, 2))]), 2)
    with pytest.raises(NotIdentifiable, match="ask for at most 3 states"):
        gaussian_chain(drawn_rows(5, d=2)[0], 4)
    with pytest.raises(NotIdentifiable):
        gaussian_chain(VectorSequences.of([[[1.0], [2.0]]]), 2)
