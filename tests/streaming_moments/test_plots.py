"""Plots: what they draw, by the data and labels of their axes."""

import sys
from datetime import date
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

from streaming_moments import MomentGaussianMixture, MomentHMM, MomentTopics
from streaming_moments.errors import InvalidInput
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.numbers.number_search import NumberSearch
from streaming_moments.models.topics import TopicModel
from streaming_moments.plots import plot_map, plot_shares
from streaming_moments.synthetic import lda_corpus

CURVE = {1: -9.0, 2: -8.6, 3: -8.2, 5: -8.15}
SEARCH = NumberSearch({number: HeldOut(mean, mean - 0.01) for number, mean in CURVE.items()})
WORDS = [f"$word_{word}" for word in range(30)]  # matplotlib would read a formula


def axes():
    return Figure().subplots()


@pytest.fixture(scope="module")
def topics():
    corpus = lda_corpus(600, n_words=30, n_topics=4, alpha0=0.3, mean_length=30, seed=2)
    return MomentTopics(4).fit(corpus.batch.to_csr())


def titles(panels):
    return [panel.get_title() for panel in panels]


def test_topics_have_a_panel_each_with_words_probabilities_and_bars(topics):
    figure = Figure()
    panels = topics.plot(5, WORDS, figure)
    assert len(panels) == 4
    assert sum(axis.get_visible() for axis in figure.axes) == 4
    assert titles(panels)[0] == f"0 ({topics.weights_[0]:.0%})"
    for topic, panel in enumerate(panels):
        words = [label.get_text() for label in panel.get_yticklabels()]
        assert words == topics.top_words(5, WORDS)[topic]
        widths = [patch.get_width() for patch in panel.patches]
        expected = [topics.components_[topic, WORDS.index(word)] for word in words]
        assert np.allclose(widths, expected)
        assert panel.yaxis_inverted()
        [drawn] = [one for one in panel.containers if isinstance(one, BarContainer)]
        lengths = [np.ptp(one[:, 0]) / 2 for one in drawn.errorbar[2][0].get_segments()]
        bars = [topics.model_.word_bars[WORDS.index(word), topic] for word in words]
        assert np.allclose(lengths, bars)
    figure.canvas.draw()  # names are no formulas


def test_the_map_places_topics_by_their_distances(topics):
    axis = topics.plot_map(WORDS, axes())
    [circles] = axis.collections
    assert circles.get_offsets().shape == (4, 2)
    assert np.allclose(circles.get_sizes() / circles.get_sizes().sum(), topics.weights_)
    first, second = topics.top_words(2, WORDS)[3]
    assert axis.texts[3].get_text() == f"3 {first}, {second}"
    plain = topics.plot_map(ax=axes())
    assert plain.texts[0].get_text() == "0"
    places = np.array([[0.0, 1.0], [1.0, 0.0]])
    again = plot_map(places, np.array([0.25, 0.75]), ["a", "b"], axes())
    assert again.collections[0].get_offsets().tolist() == places.tolist()


def test_names_on_the_map_do_not_overlap():
    rng = np.random.default_rng(0)
    names = [f"{place} a name of a topic" for place in range(30)]
    axis = plot_map(rng.normal(size=(30, 2)) / 9, np.full(30, 1 / 30), names, axes())
    axis.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(one) for one in axis.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    crowd = plot_map(
        np.repeat([[0.0, 0.0], [3.0, 1.0]], 4, axis=0), np.full(8, 0.5), names[:8], axes()
    )
    crowd.figure.draw_without_rendering()
    frame = crowd.get_window_extent()
    [circles] = crowd.collections
    reach = np.sqrt(circles.get_sizes())[:, None] / 2 * crowd.figure.dpi / 72
    centres = crowd.transData.transform(circles.get_offsets())
    assert (centres - reach >= frame.min).all()
    assert (centres + reach <= frame.max).all()
    assert all(frame.contains(*one.get_window_extent().max) for one in crowd.texts)
    alone = plot_map(np.eye(2), np.array([0.5, 0.5]), ["a", "b"], axes())
    # above their circles, without a line
    [circles] = alone.collections
    heights = [one.get_position()[1] for one in alone.texts]
    assert (np.array(heights) > np.sqrt(circles.get_sizes()) / 2).all()
    assert not any(one.arrow_patch.get_visible() for one in alone.texts)
    assert any(one.arrow_patch.get_visible() for one in crowd.texts)


def test_a_chain_draws_its_transitions_and_the_symbols_of_its_states():
    rng = np.random.default_rng(0)
    flips = np.cumsum(rng.random((50, 40)) < 0.1, axis=1) % 2
    model = MomentHMM(2, n_features=4).fit([2 * row + (rng.random(40) < 0.3) for row in flips])
    figure = Figure()
    names = [f"$s_{symbol}" for symbol in range(4)]
    moves, *states = model.plot(2, names, figure)
    assert np.allclose(moves.images[0].get_array(), model.transmat_)
    assert moves.texts[0].get_text() == f"{model.transmat_[0, 0]:.2f}"
    for state, panel in enumerate(states):
        top = model.emissionprob_[state].argsort()[::-1][:2]
        assert [one.get_text() for one in panel.get_yticklabels()] == [names[one] for one in top]
        widths = [patch.get_width() for patch in panel.patches]
        assert np.allclose(widths, model.emissionprob_[state, top])
    figure.canvas.draw()
    for wrong, said in (
        ({"names": ["a"]}, "1 name given for 4 symbols"),
        ({"number": 0}, "the number of symbols is 0; give"),
    ):
        with pytest.raises(InvalidInput, match=said):
            model.plot(**wrong, figure=Figure())


def test_mixtures_draw_what_sets_a_component_apart():
    sets = BernoulliMixture(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]), np.array([0.6, 0.4]))
    panels = sets.plot(2, ["law", "sea", "tax"], Figure())
    assert titles(panels) == ["component 0 (60%)", "component 1 (40%)"]
    assert [one.get_text() for one in panels[1].get_yticklabels()] == ["sea", "tax"]
    assert [bar.get_width() for bar in panels[1].patches] == [0.9, 0.5]
    means = np.array([[0.0, 1.0, 5.0], [0.0, 3.0, -5.0]])
    mixture = GaussianMixture(means, np.array([0.6, 0.4]), np.full((2, 1), 4.0))
    panels = mixture.plot(2, figure=Figure())
    assert [one.get_text() for one in panels[0].get_yticklabels()] == ["feature 1", "feature 2"]
    [drawn] = panels[1].containers
    assert drawn[0].get_xdata().tolist() == [3, -5]
    [bars] = drawn[2]
    assert np.ptp(bars.get_segments()[0][:, 0]) == 4
    four = GaussianMixture(np.eye(4), np.full(4, 0.25), np.ones((4, 1))).plot(figure=Figure())
    assert [one.xaxis.get_tick_params()["labelbottom"] for one in four] == [False, True, True, True]
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["age", "pay"])
    panels = MomentGaussianMixture(1).fit(rows).plot(figure=Figure())
    assert [one.get_text() for one in panels[0].get_yticklabels()] == ["age", "pay"]
    for model in (sets, mixture):
        with pytest.raises(InvalidInput, match="2 names given for 3 features; give one name for"):
            model.plot(names=["a", "b"], figure=Figure())
        with pytest.raises(InvalidInput, match="the number of features is 0"):
            model.plot(0, figure=Figure())


def test_a_topic_model_draws_words_by_name():
    topics = TopicModel.from_topics(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.6, 0.4]))
    assert titles(topics.plot(1, ["law", "sea"], Figure())) == ["0 (60%)", "1 (40%)"]
    assert titles(topics.plot(1, None, Figure(), ["a", "b"])) == ["0 a (60%)", "1 b (40%)"]
    with pytest.raises(InvalidInput, match="1 name given for 2 words"):
        topics.plot(names=["law"], figure=Figure())


def test_a_search_draws_its_curve_its_noise_and_the_numbers_to_choose():
    axis = SEARCH.plot(axes())
    curve, *marks = axis.lines
    assert [*curve.get_xdata()] == [*CURVE]
    assert np.allclose(curve.get_ydata(), [mean - 0.005 for mean in CURVE.values()])
    assert [line.get_xdata()[0] for line in marks] == [3, 5]
    assert [line.get_label() for line in marks] == [
        "3 separable",
        "5 predict best, the largest number tried",
    ]
    assert axis.get_xlabel() == "number of topics"
    assert axis.get_ylabel() == "held-out log-likelihood"
    assert axis.get_legend().get_texts()[0].get_text() == "within the noise"
    with pytest.raises(InvalidInput, match="no number of topics could be fitted"):
        NumberSearch({}).plot(axes())


def test_shares_have_a_panel_each_with_bars_in_percent():
    days = [date(2026, month, 1) for month in (1, 2, 3)]
    shares = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    panels = plot_shares(days, shares, np.full((3, 2), 0.01), ["law", "sea"], Figure())
    assert titles(panels) == ["law", "sea"]
    [drawn] = panels[0].containers
    assert drawn[0].get_ydata().tolist() == [25, 50, 100]
    [bars] = drawn[2]
    assert np.allclose(np.ptp(bars.get_segments()[0][:, 1]), 2)
    assert panels[0].figure.get_supylabel() == "share of the tokens, %"


def test_no_share_leaves_its_panel():
    # the first panel has the smallest shares, and all panels have one axis
    days = [date(2026, month, 1) for month in (1, 2, 3)]
    shares = np.array([[0.1, 0.9], [0.2, 0.8], [0.05, 0.95]])
    panels = plot_shares(days, shares, np.full((3, 2), 0.02), ["law", "sea"], Figure())
    assert {panel.get_ylim() for panel in panels} == {(0, 100)}
    panels = plot_shares(days, shares / 10, np.full((3, 2), 0.001), ["law", "sea"], Figure())
    assert 9.6 < panels[1].get_ylim()[1] < 11


def test_many_periods_have_a_band_in_place_of_bars():
    days = [date(2000 + month // 12, 1 + month % 12, 1) for month in range(100)]
    shares = np.full((100, 2), 0.5)
    [first, _] = plot_shares(days, shares, np.full((100, 2), 0.2), ["law", "sea"], Figure())
    [band] = first.collections
    low, high = band.get_paths()[0].vertices[:, 1].min(), band.get_paths()[0].vertices[:, 1].max()
    assert (round(low), round(high)) == (30, 70)


def test_a_search_is_a_table():
    assert SEARCH.to_frame()["topics"].tolist() == [*CURVE]
    assert SEARCH.to_table().column_names == ["topics", "held_out"]
    apart = NumberSearch(SEARCH.curve, {1: 0.0, 2: 0.1, 3: 0.8, 5: 1.2}, "states")
    assert apart.to_frame()["apart"].tolist() == [0.0, 0.1, 0.8, 1.2]
    assert apart.plot(axes()).get_xlabel() == "number of states"


def test_a_plot_without_matplotlib_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.delattr("matplotlib.pyplot", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'streaming-moments\[plot\]'"):
        SEARCH.plot()
