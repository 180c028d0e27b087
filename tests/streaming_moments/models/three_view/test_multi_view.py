"""Mixtures of three views: exact on exact moments, recovered from records, read from any views."""

from dataclasses import replace

import numpy as np
import pytest

from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.rows import InMemory
from streaming_moments.models.three_view.columns import like
from streaming_moments.models.three_view.mixture_em import Mixture
from streaming_moments.models.three_view.multi_view import MultiViewMixture
from streaming_moments.models.three_view.triples import ListedTriples, triple_table
from streaming_moments.models.three_view.triples_em import after_rounds
from streaming_moments.sklearn import MomentViews
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.statistics.views.records import ViewBatch
from streaming_moments.statistics.views.statistics import ViewStatistics, ViewTotals
from streaming_moments.synthetic.hidden import view_records


def words_of(*sizes):
    return tuple(Vocabulary(tuple(f"{i}w{j}" for j in range(n)), n) for i, n in enumerate(sizes))


def foundation_of(words, matrices, halves=False):
    bases = tuple(
        Basis(matrix.astype(np.int8), own.n_words, own.fingerprint)
        for own, matrix in zip(words, matrices, strict=True)
    )
    return ViewsFoundation(bases, words, halves=halves)


def on_identity(batch, halves=True):
    words = words_of(*(view.n_words for view in batch.views))
    named = [
        replace(view, vocabulary=own.fingerprint)
        for view, own in zip(batch.views, words, strict=True)
    ]
    foundation = foundation_of(words, [np.eye(own.n_words) for own in words], halves)
    return foundation.of_counts(ViewBatch(*named))


def fitted(statistics, k, **options):
    return MultiViewMixture.fit(
        InMemory((statistics,)), MultiViewMixture.Options(topics=k, **options)
    )


def exact(alpha0, seed=0, k=3, sizes=(7, 6, 8), columns=(5, 4, 5)):
    """Statistics that are the moments themselves, up to rounding to integers."""
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.ones(n), k).T for n in sizes]
    weights = rng.dirichlet(np.full(k, 3.0))
    a = alpha0 * weights
    second, third = np.diag(weights), np.zeros((k, k, k))
    third[(np.arange(k),) * 3] = weights
    if alpha0:
        eye = np.eye(k)
        second = (np.diag(a) + np.outer(a, a)) / (alpha0 * (alpha0 + 1))
        third = np.einsum("i,ij,ijl->ijl", a, a + eye, a + eye[:, None] + eye[None])
        third /= alpha0 * (alpha0 + 1) * (alpha0 + 2)
    matrices = [rng.integers(-60, 61, (n, s)) for n, s in zip(sizes, columns, strict=True)]
    rows, left, right = (
        np.vstack([np.ones(k), matrix.T @ table])
        for matrix, table in zip(matrices, tables, strict=True)
    )
    scale = 2.0**46
    sums = {
        "triple_sketch": np.einsum("ia,pb,qc,abc->ipq", tables[0], left, right, third),
        "left_rows": np.einsum("ia,pb,ab->ip", tables[1], rows, second),
        "right_rows": np.einsum("ia,pb,ab->ip", tables[2], rows, second),
    }
    sums = {name: np.rint(scale * array).astype(np.int64) for name, array in sums.items()}
    foundation = foundation_of(words_of(*sizes), matrices)
    totals = ViewTotals(100, 300, int(sums["triple_sketch"][:, 0, 0].sum()))
    return ViewStatistics(foundation, RowBlock(), totals, sums), tables, weights


@pytest.mark.parametrize("alpha0", [0.0, 0.7])
def test_exact_moments_give_back_the_model(alpha0):
    statistics, tables, weights = exact(alpha0)
    model = fitted(statistics, 3, alpha0=alpha0)
    order = np.argsort(-weights)
    assert np.abs(model.weights - weights[order]).max() < 1e-9
    for found, truth in zip((model.rows, model.left, model.right), tables, strict=True):
        assert np.abs(found - truth[:, order]).max() < 1e-9


def error(found, truth):
    return float(np.abs(like(found, truth) - truth).sum(axis=0).mean())


@pytest.mark.parametrize(
    ("mean", "bound"),
    [(None, 0.044), (5.0, 0.02)],  # 1.1 times the prototype's .040 and .018
)
def test_thirty_thousand_records_give_the_model_back(mean, bound):
    drawn = view_records(30_000, mean=mean, seed=3)
    model = fitted(on_identity(drawn.batch), 4)
    assert error(model.rows, drawn.tables[0]) < bound
    assert error(model.left, drawn.tables[1]) < 1.5 * bound
    assert error(model.right, drawn.tables[2]) < 1.5 * bound
    # the bars say how far it is off
    assert 0.4 < model.bars.mean() / error(model.rows, drawn.tables[0]) < 2.5


def test_mixed_states_are_recovered_with_their_alpha0():
    drawn = view_records(20_000, k=3, mean=8.0, alpha0=0.5, seed=1)
    model = fitted(on_identity(drawn.batch), 3, alpha0=0.5)
    assert (model.refined, model.triple_score) == (0, None)
    assert error(model.rows, drawn.tables[0]) < 0.08
    assert error(model.right, drawn.tables[2]) < 0.08
    shares = model.transform(drawn.batch)
    assert np.allclose(shares.sum(axis=1), 1)


def test_the_state_of_a_record_is_found_from_any_of_its_views():
    drawn = view_records(4_000, seed=3)
    model = fitted(on_identity(drawn.batch), 4)
    rows, left, right = drawn.batch.views
    order = np.abs(model.rows[:, :, None] - drawn.tables[0][:, None, :]).sum(axis=0).argmin(axis=1)
    given = (
        {"left": left},
        {"rows": rows, "right": right},
        {"rows": rows, "left": left, "right": right},
    )
    right_share = [(order[model.assign(views)] == drawn.states).mean() for views in given]
    assert right_share == sorted(right_share)
    assert right_share[0] > 0.8
    assert right_share[-1] > 0.97
    assert np.array_equal(
        model.transform(drawn.batch).argmax(axis=1),
        model.assign({"rows": rows, "left": left, "right": right}),
    )
    with pytest.raises(InvalidInput, match="give at least one of rows, left, right"):
        model.assign({"middle": left})
    with pytest.raises(ForeignStatistics, match="but the model has 30"):
        model.assign({"rows": left})


def test_blocks_of_rows_and_parts_give_the_same_model():
    drawn = view_records(2_000, seed=3)
    whole = on_identity(drawn.batch)
    model = fitted(whole, 4)
    blocks = [
        whole.foundation.statistics(
            RowBlock(index, 7),
            whole.totals,
            # of the views with fewer words some blocks are shorter than others
            {name: array[index::7].copy() for name, array in whole.sums.items()},
        )
        for index in range(7)
    ]
    again = MultiViewMixture.fit(InMemory(blocks), MultiViewMixture.Options(topics=4))
    for name in ("rows", "left", "right", "weights", "bars"):
        assert np.allclose(getattr(again, name), getattr(model, name), atol=1e-8)
    kept = MultiViewMixture.from_parts(*model.parts())
    assert np.array_equal(kept.left, model.left)
    assert (kept.columns, kept.documents) == (model.columns, 2_000)
    with pytest.raises(InvalidInput, match="model views lacks rows, left, right, weights, columns"):
        MultiViewMixture.from_parts({}, {})


def test_what_the_statistics_do_not_hold_is_not_identifiable():
    drawn = view_records(500, k=2, seed=2)
    statistics = on_identity(drawn.batch)
    with pytest.raises(NotIdentifiable, match="larger `create --max|sketches of at least"):
        fitted(statistics, 31 + 10, refine=0)
    with pytest.raises(NotIdentifiable, match="count more records"):
        fitted(statistics.foundation.of([]), 2)
    # every record alike: nothing tells two states apart
    same = ViewBatch(*(view.select(0, 1) for view in drawn.batch.views))
    with pytest.raises(NotIdentifiable, match="correlated in 1 directions, but 2 states need 2"):
        fitted(on_identity(same, halves=False), 2)
    with pytest.raises(InvalidInput, match='by "joint", not by "power"'):
        MultiViewMixture.Options(topics=2, method="power")


def test_more_states_than_words_of_a_view_come_of_the_triples():
    """Where moments refuse, and expectation maximisation of the records gives an answer."""
    drawn = view_records(2_000, sizes=(3, 4, 6), k=4, mean=None, seed=1)
    statistics = on_identity(drawn.batch)
    found, less = fitted(statistics, 4), fitted(statistics, 2)
    assert (found.start, found.bars, found.documents) == ("triples", None, 2_000)
    assert (less.start, found.spectrum.size) == ("moments", 0)
    assert found.triple_score > less.triple_score
    triples = ListedTriples.of_table(triple_table(InMemory((statistics,))))
    truth = Mixture(*drawn.tables, drawn.weights)
    assert found.triple_score > after_rounds(triples, truth, 1)[1]
    assert (np.diff(found.weights) <= 0).all()
    assert "moments identify fewer states" in found.described().sentence
    assert MultiViewMixture.from_parts(*found.parts()).start == "triples"
    passes = MomentViews(4, polish=2).fit([view.to_csr() for view in drawn.batch.views])
    assert passes.model_.polishing.passes == 2
    # numbers of states are tried as far as moments identify them
    with pytest.raises(NotIdentifiable):
        MultiViewMixture.fit_half(
            InMemory((statistics,)), MultiViewMixture.Options(topics=4), odd=True
        )


def test_rounds_never_make_the_triples_less_likely():
    rng = np.random.default_rng(0)
    table = rng.poisson(2, (4, 5, 6))
    start = Mixture(*(rng.dirichlet(np.ones(n), 3).T for n in (4, 5, 6)), np.array([0.5, 0.3, 0.2]))
    triples = ListedTriples.of_table(table)
    mixture, scores = start, []
    for _ in range(30):
        mixture, score = mixture.after_round(triples)
        scores.append(score)
    assert all(np.diff(scores) > -1e-12)
    assert scores[-1] > scores[0] + 0.01
    mixture, _ = after_rounds(triples, start, 2)
    # by the definition: the states of all triples
    joint = np.einsum(
        "mh,lh,rh,h->mlrh", mixture.rows, mixture.left, mixture.right, mixture.weights
    )
    chances = joint.sum(axis=3)
    share = joint * (table / chances)[..., None]
    found, score = after_rounds(triples, start, 3)
    assert score == pytest.approx((table * np.log(chances)).sum() / table.sum())
    sums = share.sum(axis=(1, 2)), share.sum(axis=(0, 2)), share.sum(axis=(0, 1))
    for one, expected in zip(found.tables, (*sums, share.sum(axis=(0, 1, 2))), strict=True):
        assert np.allclose(one, expected / expected.sum(axis=0))


def test_triples_of_one_word_a_view_are_refined_by_their_table():
    drawn = view_records(3_000, mean=None, seed=1)
    statistics = on_identity(drawn.batch)
    plain, refined = (fitted(statistics, 4, refine=rounds) for rounds in (0, 50))
    for name, truth in zip(("rows", "left", "right"), drawn.tables, strict=True):
        assert error(getattr(refined, name), truth) < 0.9 * error(getattr(plain, name), truth)
    assert (plain.refined, plain.triple_score, refined.refined) == (0, None, 50)
    triples = ListedTriples.of_table(triple_table(InMemory((statistics,))))
    truth = Mixture(*drawn.tables, drawn.weights)
    assert refined.triple_score > after_rounds(triples, truth, 1)[1]
    assert (np.diff(refined.weights) <= 0).all()
    assert "refined in 50 rounds by their triples" in refined.described().sentence
    kept = MultiViewMixture.from_parts(*refined.parts())
    assert (kept.refined, kept.triple_score) == (50, refined.triple_score)
    # sketches have no such rounds
    words = statistics.foundation.vocabularies
    rng = np.random.default_rng(0)
    sketched = foundation_of(words, [rng.integers(-60, 61, (own.n_words, 25)) for own in words])
    views = [
        replace(view, vocabulary=own.fingerprint)
        for view, own in zip(drawn.batch.views, words, strict=True)
    ]
    assert fitted(sketched.of_counts(ViewBatch(*views)), 4).refined == 0
    with pytest.raises(InvalidInput, match="refine is -1"):
        MultiViewMixture.Options(topics=4, refine=-1)


def test_rare_words_keep_their_shares_and_records_are_read_better_than_by_these_alone():
    drawn = view_records(5000, sizes=(600, 600, 600), k=3, mean=None, seed=1)
    whole = [view.to_csr() for view in drawn.batch.views]
    seen, new = [view[:4000] for view in whole], [view[4000:] for view in whole]
    estimator = MomentViews(3).fit(seen)
    model = estimator.model_
    shares = [np.asarray(view.mean(axis=0)).ravel() for view in seen]
    np.testing.assert_allclose(model.rows @ model.weights, shares[0], atol=1e-15)
    # shares of states by other views are near those by the rows view
    for columns, own in zip((model.left, model.right), shares[1:], strict=True):
        assert np.abs(columns @ model.weights - own).sum() < 0.05
    assert (np.diff(model.weights) <= 0).all()
    alone = sum(
        float((view @ np.log(0.999 * own + 0.001 / own.size)).mean())
        for view, own in zip(new, shares, strict=True)
    )
    assert estimator.score(new) > alone + 0.1
