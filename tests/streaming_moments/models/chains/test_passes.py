"""Passes over sequences: against brute force and whole rounds, however sequences are cut."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments import polished
from streaming_moments.errors import BoundExceeded, ForeignStatistics, InvalidInput
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.chains.passes import (
    STRETCH,
    ChainReader,
    ExpectedStates,
    begun,
    improved,
    stretches,
)
from streaming_moments.sklearn import MomentHMM
from streaming_moments.statistics.expected_sums import BESIDE, UNIT
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.synthetic.hidden import markov_sequences


def drawn(seed, n=3, k=2):
    rng = np.random.default_rng(seed)
    emission, moves = rng.dirichlet(np.ones(n), k).T, rng.dirichlet(np.ones(k), k).T
    start, weights = rng.dirichlet(np.ones(k), 2)
    return HiddenMarkovModel(emission, moves, start, weights)


def by_paths(model, symbols):
    """Expected places of each state with each symbol, moves and first states, over all paths."""
    chain, k = model.chain, model.n_topics
    emission, start = chain.emission.smoothed, chain.smooth_start
    counts, moves, first = np.zeros(emission.shape), np.zeros((k, k)), np.zeros(k)
    for path in product(range(k), repeat=len(symbols)):
        chance = start[path[0]]
        for before, state in pairwise(path):
            chance *= model.transition[state, before]
        for state, symbol in zip(path, symbols, strict=True):
            chance *= emission[symbol, state] if symbol >= 0 else 1.0
        first[path[0]] += chance
        for before, state in pairwise(path):
            moves[state, before] += chance
        for state, symbol in zip(path, symbols, strict=True):
            if symbol >= 0:
                counts[symbol, state] += chance
    whole = first.sum()
    return counts / whole, moves / whole, first / whole


def expected(model, chunks):
    reader, total = ChainReader(model), ExpectedStates.zero(model)
    for batch in chunks:
        total = reader.add(batch, total)
    return total


@given(st.integers(0, 2**32), st.lists(st.integers(-1, 2), min_size=1, max_size=6))
def test_a_pass_expects_what_all_paths_of_states_give(seed, symbols):
    model = drawn(seed)
    found = expected(model, stretches([SymbolBatch.of([symbols])]))
    counts, moves, first = by_paths(model, symbols)
    for sums, wanted in ((found.symbols, counts), (found.moves, moves), (found.first, first)):
        np.testing.assert_allclose(sums / UNIT, wanted, atol=len(symbols) * 2.0**-20)
    assert found.places.sum() == pytest.approx(len(symbols) * UNIT, abs=len(symbols))
    assert (found.documents, found.tokens) == (1, len(symbols))


def cut(symbols, places):
    """A sequence in chunks with the context that readers give, each a batch."""
    batches, ends = [], sorted({0, *places, len(symbols)})
    for begin, end in pairwise(ends):
        before = min(begin, 2)
        own = np.array(symbols[begin - before : end], dtype=np.int32)
        none = np.zeros(1, np.bool_)
        batches.append(
            SymbolBatch(
                np.array([0, own.size]), own, np.array([before], np.int8), none + (begin == 0), none
            )
        )
    return batches


@given(st.integers(0, 2**32), st.integers(1, 700), st.sets(st.integers(1, 699), max_size=6))
def test_stretches_and_sums_are_the_same_however_sequences_are_cut(seed, size, places):
    rng = np.random.default_rng(seed)
    one, two = rng.integers(-1, 3, size), rng.integers(-1, 3, 5)
    whole = list(stretches([SymbolBatch.of([one, two])]))
    parts = list(stretches([*cut(one, {place for place in places if place < size}), *cut(two, ())]))
    joined = np.concatenate([batch.symbols for batch in whole])
    assert joined.tolist() == [*one, *two]
    begins = np.concatenate([batch.begins for batch in whole])
    assert begins.sum() == 2
    assert np.flatnonzero(begins).tolist() == [0, -(-size // STRETCH)]
    for name in ("symbols", "begins"):
        found = np.concatenate([getattr(batch, name) for batch in parts])
        assert (found == np.concatenate([getattr(batch, name) for batch in whole])).all()
    sizes = [np.diff(batch.offsets) for batch in (*whole, *parts)]
    assert np.concatenate(sizes).max() <= STRETCH
    model = drawn(seed)
    wanted, found = expected(model, whole), expected(model, parts[::-1])
    for name, sums in wanted.arrays.items():
        assert (found.arrays[name] == sums).all()


def test_a_pass_over_short_sequences_is_a_baum_welch_round():
    corpus = markov_sequences(200, 40, n_symbols=6, k=3, seed=1)
    model = drawn(4, n=6, k=3)
    following, _ = begun(model).chain.after_round(corpus.batch)
    after = polished(model, corpus.batch, 1, threads=2)
    counts = following.emission.columns * following.weights * 8000 + BESIDE
    for own, wanted in (
        (after.emission, counts / counts.sum(axis=0)),
        (after.transition, following.transition),
        (after.start, following.start),
        (after.weights, following.weights),
    ):
        np.testing.assert_allclose(own, wanted, atol=1e-5)
    assert (after.polishing.documents, after.polishing.tokens) == (200, 8000)


def test_passes_bring_sequences_of_many_symbols_nearer():
    corpus = markov_sequences(50, 400, n_symbols=200, k=4, seed=2)
    given = [corpus.batch.select(0, 40), corpus.batch.select(40, 50)]
    rows = np.split(given[0].symbols, given[0].offsets[1:-1])
    plain, found = MomentHMM(4, 200).fit(rows), MomentHMM(4, 200, polish="auto").fit(rows)
    model = found.model_
    truth = HiddenMarkovModel(corpus.emission, corpus.transition, corpus.start, corpus.start)
    best = polished(truth, given[0], 20).perplexity(given[1])
    assert plain.model_.perplexity(given[1]) > 1.01 * best
    assert model.perplexity(given[1]) < 1.005 * best
    assert 2 <= model.polishing.passes <= 20
    again = polished(plain.model_, given[0], model.polishing.passes)
    assert (again.emission == model.emission).all()
    assert np.array_equal(found.emissionprob_, model.emission.T)
    said = model.described()
    assert "error bars and scores are of the fit before" in said.sentence
    assert said.facts["polishing"]["documents"] == 40
    kept = HiddenMarkovModel.from_parts(*model.parts())
    assert kept.polishing == model.polishing


def test_what_cannot_be_polished_says_why():
    model, batch = drawn(0), SymbolBatch.of([[0, 1, 2]])
    with pytest.raises(ForeignStatistics, match="symbol 7"):
        polished(model, SymbolBatch.of([[0, 7]]))
    with pytest.raises(InvalidInput, match="no alpha to learn"):
        polished(model, batch, alpha=True)
    with pytest.raises(InvalidInput, match="there is one sequence; cut it into several, or give"):
        MomentHMM("auto").fit([0, 1, 2, 0, 1, 2] * 40)
    with pytest.raises(InvalidInput, match="passes need all sequences again"):
        MomentHMM(2, polish=1).partial_fit([[0, 1, 0, 1]])
    with pytest.raises(BoundExceeded, match="symbols are more than"):
        ExpectedStates.zero(model).counting(1, 1 << 43)


def test_a_sequence_that_no_path_explains_gives_each_place_one_state():
    """States never change, but the second half of the sequence contradicts the first."""
    half = STRETCH // 2
    emission = np.zeros((2000, 2))
    emission[[0, 1], [0, 1]] = 1.0
    weights = np.array([0.5, 0.5])
    model = HiddenMarkovModel(emission, np.eye(2), weights, weights)
    sequence = [0] * half + [1] * half
    found = expected(model, stretches([SymbolBatch.of([sequence])]))
    assert found.places.sum() == pytest.approx(STRETCH * UNIT, abs=STRETCH)
    assert found.moves.sum() == pytest.approx((STRETCH - 1) * UNIT, abs=4)
    for sums in found.arrays.values():
        assert sums.min() >= 0
    assert found.first.sum() == pytest.approx(UNIT, abs=2)


def test_states_without_a_place_stay_and_few_sequences_tell_no_first_state():
    model = drawn(0)
    after = improved(model, ExpectedStates.zero(model))
    for name in ("emission", "transition", "start", "weights"):
        wanted = model.weights if name == "start" else getattr(model, name)
        assert (getattr(after, name) == wanted).all()
    after = polished(model, SymbolBatch.of([[0, 1, 2]] * 19))
    assert (after.start == after.weights).all()
    after = polished(model, SymbolBatch.of([[0, 1, 2]] * 20))
    assert np.abs(after.start - after.weights).max() > 1e-3
