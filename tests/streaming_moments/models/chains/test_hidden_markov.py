"""Hidden Markov models: exact on exact moments, recovered, refined, read against brute force."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from streaming_moments.deprecation import Deprecated
from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.chains.windows_em import Chain
from streaming_moments.models.rows import InMemory
from streaming_moments.models.three_view import em_starts, triples
from streaming_moments.models.three_view.em_starts import likelier
from streaming_moments.models.three_view.triples import (
    ListedTriples,
    TripleTable,
    triple_table,
    triples_of,
)
from streaming_moments.models.three_view.triples_em import after_rounds, spread
from streaming_moments.sklearn import MomentHMM
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.statistics.views.statistics import ViewStatistics, ViewTotals
from streaming_moments.synthetic.hidden import markov_sequences


def foundation_of(n, matrix=None, halves=False):
    words = Vocabulary(tuple(f"s{i}" for i in range(n)), n)
    matrix = np.eye(n) if matrix is None else matrix
    return SequencesFoundation(words, Basis(matrix.astype(np.int8), n, words.fingerprint), halves)


def fitted(statistics, k, refine=0, seed=0):
    options = HiddenMarkovModel.Options(topics=k, refine=refine, seed=seed)
    return HiddenMarkovModel.fit(InMemory((statistics,)), options)


def exact(seed=0, n=7, k=3, places=6, sketch=True):
    """Moments of a chain that is not stationary, pooled over some places."""
    rng = np.random.default_rng(seed)
    O, T = rng.dirichlet(np.ones(n), k).T, rng.dirichlet(np.ones(k), k).T
    start = rng.dirichlet(np.ones(k))
    matrix = rng.integers(-60, 61, (n, 5)) if sketch else np.eye(n)
    outer = np.vstack([np.ones(k), matrix.T @ O])
    sums, share = np.zeros((n, outer.shape[0], outer.shape[0])), start
    for _ in range(places):
        # left, middle and right state
        joint = np.einsum("a,ba,cb->abc", share, T, T)
        sums += np.einsum("pa,ib,qc,abc->ipq", outer, O, outer, joint)
        share = T @ share
    scale = 2.0**44
    arrays = {
        "triple_sketch": np.rint(scale * sums).astype(np.int64),
        "first_counts": np.rint(scale * (O @ start)).astype(np.int64),
    }
    totals = ViewTotals(100, 800, int(arrays["triple_sketch"][:, 0, 0].sum()))
    statistics = ViewStatistics(foundation_of(n, matrix), RowBlock(), totals, arrays)
    return statistics, O, T, start


def matched(model, O):
    distances = np.abs(model.emission[:, :, None] - O[:, None, :]).sum(axis=0)
    own, truth = linear_sum_assignment(distances)
    return own[np.argsort(truth)]


@pytest.mark.parametrize("sketch", [True, False])
def test_exact_moments_of_a_chain_that_is_not_stationary_give_it_back(sketch):
    statistics, O, T, start = exact(sketch=sketch)
    model = fitted(statistics, 3)
    order = matched(model, O)
    assert np.abs(model.emission[:, order] - O).max() < 1e-8
    assert np.abs(model.transition[np.ix_(order, order)] - T).max() < 1e-7
    assert np.abs(model.start[order] - start).max() < 1e-8
    assert (model.untold, model.turned) == (0, 0)
    # what all windows agree with stays, but for what is spread over all symbols and states
    refined = fitted(statistics, 3, refine=1)
    assert refined.refined == (not sketch)
    order = matched(refined, O)
    assert np.abs(refined.emission[:, order] - O).max() < 1e-3
    assert np.abs(refined.transition[np.ix_(order, order)] - T).max() < 1e-3
    # weights are those of the middle of a window, one move after its first place
    places = [np.linalg.matrix_power(T, place) @ start for place in range(7)]
    first, middle = np.mean(places[:-1], axis=0), np.mean(places[1:], axis=0)
    assert np.abs(first - middle).max() > 0.02
    for one in (model, refined):
        assert np.abs(one.weights[matched(one, O)] - middle).max() < 2e-3


def forward(O, T, start, symbols):
    """Probability of symbols, by adding up all paths of states."""
    total = 0.0
    for path in product(range(len(start)), repeat=len(symbols)):
        chance = start[path[0]] * O[symbols[0], path[0]]
        for before, state, symbol in zip(path, path[1:], symbols[1:], strict=False):
            chance *= T[state, before] * O[symbol, state]
        total += chance
    return total


def test_observable_operators_give_the_probability_of_sequences():
    statistics, O, T, start = exact()
    model = fitted(statistics, 3)
    symbols = np.array([3, 0, 6, 1, 5, 2])
    truth = forward(O, T, start, symbols)
    assert np.exp(model.log_probability(symbols)) == pytest.approx(truth, rel=1e-6)
    predictions, restarts = model.filtered(symbols[:3])
    expected = [forward(O, T, start, [*symbols[:3], x]) for x in range(7)]
    expected = np.array(expected) / np.sum(expected)
    assert restarts == 0
    assert np.abs(predictions[3] - expected).max() < 1e-3  # a thousandth of unigrams
    # a symbol that was not seen may have been any
    unseen = np.array([3, -1, 6])
    truth = sum(forward(O, T, start, [3, x, 6]) for x in range(7))
    assert np.exp(model.log_probability(unseen)) == pytest.approx(truth, rel=1e-6)
    expected = [sum(forward(O, T, start, [3, x, 6, y]) for x in range(7)) for y in range(7)]
    following = model.filtered(unseen)[0][3]
    assert np.abs(following - np.array(expected) / np.sum(expected)).max() < 1e-3
    for outside in (7, -2):
        for read in (model.filtered, model.log_probability):
            with pytest.raises(ForeignStatistics, match=f"symbol {outside} is not in"):
                read(np.array([0, outside]))


def small_model():
    return HiddenMarkovModel(
        np.array([[0.7, 0.1], [0.2, 0.3], [0.1, 0.6]]),
        np.array([[0.8, 0.3], [0.2, 0.7]]),
        np.array([0.6, 0.4]),
        np.array([0.6, 0.4]),
    )


def test_reading_agrees_with_all_paths_of_states():
    model = small_model()
    sequences = [[0, 2, 2, 1], [1], [2, -1, 0]]
    batch = SymbolBatch.of(sequences)
    found = model.log_likelihoods(batch)
    O, T = model.chain.emission.smoothed, model.transition
    start = model.chain.smooth_start
    assert found[0] == pytest.approx(np.log(forward(O, T, start, sequences[0])), rel=1e-12)
    unseen = sum(forward(O, T, start, [2, x, 0]) for x in range(3))
    assert found[2] == pytest.approx(np.log(unseen), rel=1e-12)
    # posteriors and the likeliest path of the first
    paths = {}
    for path in product(range(2), repeat=4):
        chance = start[path[0]] * O[0, path[0]]
        for place in range(1, 4):
            chance *= T[path[place], path[place - 1]] * O[sequences[0][place], path[place]]
        paths[path] = chance
    total = sum(paths.values())
    expected = np.array(
        [
            [sum(c for p, c in paths.items() if p[t] == state) / total for state in range(2)]
            for t in range(4)
        ]
    )
    assert np.allclose(model.posterior(batch)[:4], expected, atol=1e-12)
    logs, states = model.decode(batch)
    best = max(paths, key=paths.get)
    assert tuple(states[:4]) == best
    known = 7
    assert model.perplexity(batch) == pytest.approx(np.exp(-found.sum() / known))
    with pytest.raises(ForeignStatistics, match="alphabet of 3"):
        model.decode(SymbolBatch.of([[3]]))
    with pytest.raises(InvalidInput, match="no symbol is in the alphabet"):
        model.perplexity(SymbolBatch.of([[-1, -1]]))
    assert np.isfinite(logs).all()


def test_rounds_never_make_the_windows_less_likely():
    rng = np.random.default_rng(0)
    table = rng.poisson(3, (5, 5, 5))
    start = Chain(rng.dirichlet(np.ones(5), 3).T, rng.dirichlet(np.ones(3), 3).T, np.full(3, 1 / 3))
    windows = ListedTriples.of_table(table)
    chain, scores = start, []
    for _ in range(12):
        chain, score = chain.after_round(windows)
        scores.append(score)
    assert all(np.diff(scores) > -1e-12)
    assert scores[-1] > scores[0] + 0.001
    chain, _ = after_rounds(windows, start, 2)
    # by the definition: all states of all windows
    joint = np.einsum(
        "a,la,ba,mb,cb,rc->mlrabc",
        *(chain.weights, chain.emission, chain.transition),
        chain.emission,
        chain.transition,
        chain.emission,
    )
    share = joint * (table / joint.sum(axis=(3, 4, 5)))[..., None, None, None]
    emitted = (
        share.sum(axis=(0, 2, 4, 5)) + share.sum(axis=(1, 2, 3, 5)) + share.sum(axis=(0, 1, 3, 4))
    )
    moved = share.sum(axis=(0, 1, 2, 5)).T + share.sum(axis=(0, 1, 2, 3)).T
    following, _ = after_rounds(windows, start, 3)
    assert np.allclose(following.emission, emitted / emitted.sum(axis=0))
    assert np.allclose(following.transition, moved / moved.sum(axis=0))


def test_a_full_table_says_what_its_triples_say_one_by_one(monkeypatch):
    rng = np.random.default_rng(0)
    table = rng.poisson(2, (5, 6, 7)) * rng.integers(1, 10_000, (5, 6, 7))
    tables = [rng.dirichlet(np.ones(n), 3).T for n in (6, 5, 7)]
    listed = triples_of(table)
    monkeypatch.setattr(triples, "_DENSE", 100)
    full = triples_of(table)
    assert (type(listed), type(full)) == (ListedTriples, TripleTable)
    assert full.work(3) < listed.work(3)
    expected, found = listed.posteriors(*tables), full.posteriors(*tables)
    assert found.score == pytest.approx(expected.score, rel=1e-6)
    for name in ("left", "middle", "right"):
        assert np.allclose(getattr(found, name), getattr(expected, name), rtol=1e-5), name
    # of few triples a table is mostly empty
    table[rng.random(table.shape) < 0.9] = 0
    monkeypatch.setattr(triples, "_DENSE", 1)
    assert isinstance(triples_of(table), ListedTriples)


def test_a_triple_that_cannot_be_makes_a_step_that_is_not_taken():
    """As where a longer step leaves a probability that floats do not hold."""
    table = np.zeros((3, 3, 3), dtype=np.int64)
    table[0, 1, 2], table[1, 1, 1] = 2, 3
    even = np.full((3, 2), 1 / 3)
    without = even * np.array([0, 1, 1])[:, None]
    told = ListedTriples.of_table(table).posteriors(even, without, even)
    assert told.score == -np.inf
    for sums in (told.left, told.middle, told.right):
        assert np.isfinite(sums).all()


def test_longer_steps_are_never_less_likely_and_get_further():
    drawn = markov_sequences(100, n_symbols=12, k=4, seed=3)
    sums = foundation_of(12).of_sequences(drawn.batch).sums["triple_sketch"]
    windows = ListedTriples.of_table(sums[:, 1:, 1:])
    rng = np.random.default_rng(1)
    chain = Chain(rng.dirichlet(np.ones(12), 4).T, rng.dirichlet(np.ones(4), 4).T, np.full(4, 0.25))
    found = [after_rounds(windows, chain, rounds, 1.2) for rounds in (1, 2, 5, 10, 20, 100)]
    scores = [score for _, score in found]
    assert (np.diff(scores) >= 0).all()
    for one, _ in found:
        assert np.allclose(one.emission.sum(axis=0), 1)
        assert np.allclose(one.transition.sum(axis=0), 1)
        assert one.weights.sum() == pytest.approx(1)
    assert scores[-1] > after_rounds(windows, chain, 100)[1] + 0.01


def test_a_hundred_thousand_symbols_give_the_model_back():
    drawn = markov_sequences(1_000, seed=0)
    held_out = markov_sequences(100, seed=0, draw=1).batch
    statistics = foundation_of(50, halves=True).of_sequences(drawn.batch)
    model = fitted(statistics, 5, refine=20)
    order = matched(model, drawn.emission)
    # the prototype's .045 and .029, after as many rounds
    assert np.abs(model.emission[:, order] - drawn.emission).sum(axis=0).mean() < 0.05
    moves = model.transition[np.ix_(order, order)]
    assert np.abs(moves - drawn.transition).sum(axis=0).mean() < 0.04
    truth = HiddenMarkovModel(drawn.emission, drawn.transition, drawn.start, drawn.start)
    assert np.log(model.perplexity(held_out) / truth.perplexity(held_out)) < 0.008
    states = model.decode(held_out)[1]
    own = markov_sequences(100, seed=0, draw=1).states
    assert (np.argsort(order)[states] == own).mean() > 0.85
    assert model.bars.shape == (5,)
    assert 0 < model.bars.mean() < 0.3


def test_blocks_of_rows_and_parts_give_the_same_model():
    drawn = markov_sequences(200, n_symbols=12, k=3, seed=1)
    foundation = foundation_of(12, halves=True)
    whole = fitted(foundation.of_sequences(drawn.batch), 3, refine=5)
    blocks = [foundation.of_sequences(drawn.batch, RowBlock(index, 5)) for index in range(5)]
    options = HiddenMarkovModel.Options(topics=3, refine=5)
    again = HiddenMarkovModel.fit(InMemory(blocks), options)
    for name in ("emission", "transition", "start", "bars"):
        assert np.allclose(getattr(again, name), getattr(whole, name), atol=1e-7)
    assert np.allclose(again.observable.symbols, whole.observable.symbols, atol=1e-9)
    kept = HiddenMarkovModel.from_parts(*whole.parts())
    assert np.array_equal(kept.observable.last, whole.observable.last)
    assert (kept.windows, kept.refined) == (200 * 98, 5)
    with pytest.raises(
        InvalidInput, match="hmm lacks emission, moves, start, weights, window_score"
    ):
        HiddenMarkovModel.from_parts({}, {})


def test_what_the_statistics_do_not_hold_is_not_identifiable():
    foundation = foundation_of(4)
    with pytest.raises(NotIdentifiable, match="three observed symbols in a row"):
        fitted(foundation.of([]), 2)
    same = foundation.of_sequences(SymbolBatch.of([[0, 0, 0, 0]]))
    with pytest.raises(NotIdentifiable, match="in 1 directions, but 2 states need 2"):
        fitted(same, 2)
    with pytest.raises(NotIdentifiable, match="sketches of at least"):
        fitted(same, 5)


def test_what_drew_sequences_has_the_old_name_of_its_transition_for_a_release():
    drawn = markov_sequences(2, length=3, k=2)
    with pytest.warns(Deprecated, match=r"^SyntheticSequences\.moves is .* use transition$"):
        assert drawn.moves is drawn.transition


def test_one_long_sequence_begins_as_the_states_are_everywhere():
    drawn = markov_sequences(1, length=20_000, n_symbols=10, k=2, seed=4)
    model = fitted(foundation_of(10).of_sequences(drawn.batch), 2, refine=5)
    assert np.array_equal(model.start, model.weights)
    assert "too few sequences to estimate the first state" in model.described().sentence


def test_of_many_starts_the_likelier_go_on(monkeypatch):
    drawn = markov_sequences(300, n_symbols=6, k=3, seed=2)
    windows = ListedTriples.of_table(
        triple_table(InMemory((foundation_of(6).of_sequences(drawn.batch),)))
    )
    rng = np.random.default_rng(0)
    start = Chain(rng.dirichlet(np.ones(6), 3).T, rng.dirichlet(np.ones(3), 3).T, np.full(3, 1 / 3))
    _, alone = after_rounds(windows, spread(start), 70)
    scores = [likelier(windows, [start], rounds)[1] for rounds in (1, 70)]
    assert scores[1] >= max(alone, scores[0])
    # as likely as what drew the sequences, over again
    truth = Chain(drawn.emission, drawn.transition, np.full(3, 1 / 3))
    assert scores[1] > after_rounds(windows, truth, 1)[1] - 1e-3
    again = likelier(windows, [start], 70)
    assert again[1:] == (scores[1], 70)
    # of more triples than a second has room for as many rounds less, and more are had by asking
    monkeypatch.setattr(em_starts, "_MOST_WORK", windows.work(3) * (0.5 * 25 + 7 + 2 * 3) * 10)
    fewer = [likelier(windows, [start], rounds, usual=70)[2] for rounds in (35, 70, 140)]
    assert fewer == [5, 10, 20]


def test_a_state_that_the_whole_alphabet_loses_is_found_from_a_sketch_of_it():
    drawn = markov_sequences(100, seed=1)
    statistics = foundation_of(50, halves=True).of_sequences(drawn.batch)

    def error(model):
        found = model.emission[:, matched(model, drawn.emission)]
        return np.abs(found - drawn.emission).sum(axis=0).mean()

    assert error(fitted(statistics, 5)) > 0.5  # as decomposed
    model = fitted(statistics, 5, refine=100)
    assert error(model) < 0.2
    parts = [statistics.foundation.of_sequences(drawn.batch, RowBlock(i, 2)) for i in range(2)]
    options = HiddenMarkovModel.Options(topics=5, refine=100)
    again = HiddenMarkovModel.fit(InMemory(tuple(parts)), options)
    assert np.allclose(again.emission, model.emission, atol=1e-6)


def test_rare_symbols_keep_their_shares():
    batch = markov_sequences(400, n_symbols=1000, k=4).batch
    model = MomentHMM(4, 1000).fit(batch.symbols, lengths=np.diff(batch.offsets)).model_
    # as decomposed, entries of rare symbols have either sign, and clipped most symbols lose theirs
    np.testing.assert_allclose(model.emission @ model.weights, model.symbol_shares, rtol=1e-9)
    assert np.count_nonzero(model.symbol_shares == 0) < 500
