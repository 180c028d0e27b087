"""A page with something in each of its parts, and text that looks like HTML in all of them."""

import numpy as np

from streaming_moments.pipelines.jobs.candidates import Candidate
from streaming_moments.pipelines.reports.page import (
    Gate,
    LedgerRow,
    ReportPage,
    RunPoint,
    SampleDocument,
    ShareOverTime,
    StepReport,
    TopicChange,
    TopicReport,
)
from streaming_moments.quality.drift import Drift
from streaming_moments.quality.topic_map import topic_distances
from streaming_moments.synthetic.corpora import lda_corpus

TOPICS, WORDS, NIGHTS = 9, 400, 7
LETTERS = "bcdfghjklm"
NASTY = '</script><img src=x onerror="console.error(1)">&amp;'


def spelled(word):
    return "o".join(LETTERS[int(digit)] for digit in f"{word:03d}") + "o"


def full_page():
    """A page with something in each of its parts, and text that looks like HTML in all of them."""
    corpus = lda_corpus(10, n_words=WORDS, n_topics=TOPICS, concentration=30, seed=5)
    topics, rng = corpus.topics, np.random.default_rng(0)
    weights = rng.dirichlet(np.full(TOPICS, 3.0))
    overall = topics @ weights
    names = [NASTY if word == 0 else spelled(word) for word in range(WORDS)]
    order = np.argsort(-topics, axis=0)[:30]
    listed = [
        tuple((names[w], float(topics[w, topic]), float(overall[w])) for w in order[:, topic])
        for topic in range(TOPICS)
    ]
    nights = [f"2026-05-{1 + night:02d}" for night in range(NIGHTS)]
    days = ["2025-11-01", "2025-12-01", "2026-04-01"]
    spectrum = np.sort(rng.uniform(0.3, 1.0, TOPICS))[::-1]
    captured = np.linspace(0.95, 0.4, TOPICS)
    return ReportPage(
        title="Topics of the night",
        store="s3://bucket/a-rather-long-prefix-that-does-not-break/" + "store-" * 12,
        time="2026-05-07T03:15:00Z",
        outcome="rejected",
        facts={
            "documents": 1_234_567,
            "captured": 0.93,
            "model": "k9-a0.1-joint-v12",
            "published": "v9",
            "x": NASTY,
        },
        reasons=(f"coherence fell by 0.031, more than 0.020 {NASTY}",),
        topics=tuple(
            TopicReport(
                topic,
                float(weights[topic]),
                None if topic == 2 else 0.1 + topic / 50,
                (),
                listed[topic],
                label=f"the sea {NASTY}" if topic == 5 else None,
                told={"words a document": 30.0 + topic},
                sample=None if topic == 2 else SampleDocument(f"s3://{NASTY}", 7, 0.8, NASTY),
            )
            for topic in range(TOPICS)
        ),
        notes={4: "split from 3"},
        version=12,
        changes=(
            TopicChange(0, "sea ship", 0.1, float(weights[0]), 0.05, "moved", bar=0.01),
            TopicChange(4, NASTY, None, float(weights[4]), None, "split from 3"),
            TopicChange(None, "law", 0.2, None, None, "gone"),
        ),
        since="2026-05-06",
        links=(("the night before", "night-20260506.html"), ("all nights", "index.html")),
        distances=tuple(map(tuple, topic_distances(topics).tolist())),
        correlations=tuple(
            tuple(
                1.0 if one == other else 0.2 if {one, other} == {1, 4} else -0.1
                for other in range(TOPICS)
            )
            for one in range(TOPICS)
        ),
        shares=ShareOverTime(
            tuple(nights),
            tuple(tuple(rng.dirichlet(200 * weights).tolist()) for _ in nights),
        ),
        periods=ShareOverTime(
            tuple(days),
            tuple(tuple(rng.dirichlet(200 * weights).tolist()) for _ in days),
            bars=tuple(tuple((np.sqrt(weights) / 20).tolist()) for _ in days),
        ),
        tried=tuple(
            Candidate(k, a, 0.115 + k / 10_000 + a / 10_000)
            for k in (5, 7, 9, 11)
            for a in (0.0, 0.1)
        ),
        chosen=(9, 0.1),
        spectrum=tuple((spectrum * captured).tolist()),
        exact_spectrum=tuple(spectrum.tolist()),
        runs=tuple(
            RunPoint(
                night,
                drift=Drift(
                    captured=None if index == 3 else 0.9 - index / 50,
                    outside_share=0.1 + index / 100,
                    effective_documents=2000.0 + 10 * index,
                    pair_distance=None if index == 0 else 0.02 + index / 1000,
                ),
                documents=1000 * index,
                outcome="published",
            )
            for index, night in enumerate(nights)
        ),
        gates=(
            Gate("max_coherence_drop", 0.031, 0.02, False),
            Gate("min_documents", 1_234_567.0, 2000.0, True),
            Gate("min_captured", None, 0.5, True),
        ),
        ledger=(
            LedgerRow("s3://bucket/" + "a" * 70 + ".parquet", 10_000, 1_500_000, 120_000),
            LedgerRow(f"s3://bucket/{NASTY}", 0, 0, None, f"is not Parquet {NASTY}"),
        ),
        steps=(StepReport("update", 61.5), StepReport("refit", 4.2), StepReport("publish", 0.01)),
    )
