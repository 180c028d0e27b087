"""What long computations report: to the log always, to the screen where it is asked for."""

import logging
from types import SimpleNamespace

import pytest

from streaming_moments import MomentGaussianMixture, MomentTopics, fit, polished
from streaming_moments.errors import InvalidInput
from streaming_moments.progress import ROOT, has_reader, reporter
from streaming_moments.synthetic import lda_corpus
from streaming_moments.synthetic.mixtures import mixture_rows


@pytest.fixture(scope="module")
def corpus():
    return lda_corpus(600, n_words=40, n_topics=2, alpha0=0.3, mean_length=30, seed=2).batch


def lines_of(text):
    return [line.rpartition(" (")[0] for line in text.splitlines()]


def test_an_estimator_prints_a_line_for_each_step(corpus, capsys):
    MomentTopics(2, polish=2, verbose=1).fit(corpus.to_csr())
    assert lines_of(capsys.readouterr().out) == [
        "[MomentTopics] counted documents",
        "[MomentTopics] fitted 2 topics to 600 documents",
        "[MomentTopics] pass 1 of at most 2: 600 records",
        "[MomentTopics] pass 2 of at most 2: 600 records",
    ]


def test_an_estimator_is_silent_by_default_and_its_log_is_not(corpus, capsys, caplog):
    caplog.set_level(logging.INFO, ROOT)
    MomentTopics(2).partial_fit(corpus.to_csr())
    assert capsys.readouterr() == ("", "")
    assert {one.name for one in caplog.records} == {"streaming_moments.sklearn"}
    assert [one.levelname for one in caplog.records] == ["INFO", "INFO"]
    assert "MomentTopics: fitted 2 topics to 600 documents" in caplog.text


def test_a_search_reports_each_trial_and_what_it_chose(capsys):
    rows = mixture_rows(600, 4, 2, separation=6.0, seed=1).rows
    model = MomentGaussianMixture("auto", polish=1, verbose=True).fit(rows)
    lines = lines_of(capsys.readouterr().out)
    tried = [line for line in lines if "] tried " in line]
    assert tried[0].startswith("[MomentGaussianMixture] tried 1 component: held-out log-likel")
    assert len(tried) >= len(model.number_search_.curve) > 1
    [chosen] = [line for line in lines if "] chose " in line.lower()]
    assert f"chose {len(model.weights_)} components" in chosen.lower()
    assert lines[-2:] == [
        "[MomentGaussianMixture] fitted 2 components to 600 rows",
        "[MomentGaussianMixture] pass 1 of at most 1: 600 records",
    ]


def test_functions_print_where_they_are_asked_to(corpus, capsys):
    statistics = MomentTopics(2).fit(corpus.to_csr()).statistics_
    quiet = fit(statistics, 2)
    assert capsys.readouterr().out == ""
    model = fit(statistics, 2, verbose=1)
    assert (model.topics == quiet.topics).all()
    polished(model, corpus, 1, verbose=1)
    assert lines_of(capsys.readouterr().out) == [
        "[fit] fitted 2 topics to 600 documents",
        "[polished] pass 1 of at most 1: 600 records",
    ]


def test_a_line_has_the_seconds_since_the_one_before(monkeypatch, capsys):
    times = iter([10.0, 12.5, 12.5, 13.0])
    # of this module alone, because threads of a cluster in this process ask for the time, too
    clock = SimpleNamespace(perf_counter=lambda: next(times))
    monkeypatch.setattr("streaming_moments.progress.time", clock)
    report = reporter("job", verbose=2)
    for line in ("one", "two", "three"):
        report(line)
    expected = "[job] one (2.5 s)\n[job] two (0.0 s)\n[job] three (0.5 s)\n"
    assert capsys.readouterr().out == expected


def test_a_line_that_a_handler_shows_is_not_printed_again(capsys, caplog, tmp_path):
    logger = logging.getLogger(f"{ROOT}.once")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    # the screen does not show what goes to a file, or is below the level of a handler
    hidden = (logging.FileHandler(tmp_path / "log"), logging.StreamHandler())
    hidden[1].setLevel(logging.WARNING)
    for one in hidden:
        logger.addHandler(one)
    reporter("job", 1, "once")("counted")
    assert "[job] counted" in capsys.readouterr().out
    logger.addHandler(caplog.handler)
    reporter("job", 1, "once")("counted")
    assert capsys.readouterr().out == ""
    assert "job: counted" in caplog.text
    logger.handlers.clear()
    hidden[0].close()


@pytest.mark.parametrize("verbose", ["yes", None, 0.5])
def test_verbose_is_a_number(verbose, corpus):
    with pytest.raises(InvalidInput, match="verbose is "):
        MomentTopics(2, verbose=verbose).fit(corpus.to_csr())


def test_a_log_of_the_package_alone_has_no_reader():
    logger = logging.Logger("alone")
    logger.addHandler(logging.NullHandler())
    assert not has_reader(logger)
    child = logging.Logger("alone.child")
    child.parent = logger
    logger.addHandler(logging.StreamHandler())
    assert has_reader(child)
    child.propagate = False
    assert not has_reader(child)
    assert any(isinstance(one, logging.NullHandler) for one in logging.getLogger(ROOT).handlers)
