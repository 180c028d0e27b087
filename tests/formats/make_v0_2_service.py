"""How the inbox, the nights and the estimators in `v0_2` were made, once, by version 0.2.0.

They were written by `PYTHONPATH=.:tests/formats:tests/faults python
tests/formats/make_v0_2_service.py`, and are never made again.
"""

import pickle
import sys
import tempfile
from pathlib import Path

import pytest
from campaigns import few_row_blocks
from frozen import expect, pack, place_of, put, store_told
from frozen_service import (
    accumulator_of,
    counted,
    estimator_told,
    history_told,
    inbox_told,
    night_of,
    served,
    third_night,
)
from make_v0_2_stores import FEW, csv_of, fitted, texts

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import CountingOptions, create
from streaming_moments.pipelines.jobs.purge import purge
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.pipelines.service.ingest_worker.selecting import ask_selection
from streaming_moments.pipelines.service.tokens import Role, add_token
from streaming_moments.sklearn import (
    MomentCommunities,
    MomentFactors,
    MomentGaussianMixture,
    MomentHMM,
    MomentLatentTree,
    MomentTopics,
    MomentViews,
)
from streaming_moments.storage.inbox.deletions import Deletions
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.history import tag
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.corpora import lda_corpus
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.hidden import markov_sequences, view_records
from streaming_moments.synthetic.mixtures import factor_rows, mixture_rows
from streaming_moments.synthetic.tables import latent_tree_table


class Cut(RuntimeError):
    """A turn that ends here."""


def dies(*given, **how):
    raise Cut


def make_inbox(run):
    """An inbox in every state in which a process may leave one."""
    name, url, counting = "inbox", f"{place_of('inbox')}/store", CountingOptions()
    lines = list(texts(200))
    documents = [{"text": text, "id": f"d{place}"} for place, text in enumerate(lines)]
    shard = put(name, "shards/a.txt", ("\n".join(lines[:120]) + "\n").encode())
    listed, reading = list_shards([shard]), (counting.form, counting.policy)
    store = create(url, listed, *reading, FEW, run, dates=counting.dates)
    receipts, tokens, deletions = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/tokens.json"
        for who, role in (("reader", Role.READER), ("writer", Role.WRITER), ("admin", Role.ADMIN)):
            tokens[who] = add_token(file, who, role)
        put(name, "tokens.json", Path(file).read_bytes())
    accumulator, again = accumulator_of(name, run), (documents[140:150], "waiting")
    with served(name) as calls:
        bad = {"text": "a", "date": "a day of nobody"}
        receipts["counted"] = calls.send([*documents[:100], bad], "first")
        days = [{**one, "date": f"2026-11-{20 + at % 2}"} for at, one in enumerate(documents)]
        receipts["of two days"] = calls.send(days[100:120])
        counted(accumulator)
        receipts["deleted"] = calls.send(documents[120:124], "deleted")
        receipts["purged"] = calls.send(
            [{**one, "date": "2026-11-18"} for one in documents[124:128]]
        )
        counted(accumulator)
        deletions["by receipt"] = calls.forget(receipt=receipts["deleted"])
        deletions["by id"] = calls.forget(id="d3")
        counted(accumulator)
        gone = [one.url for one in store.latest().ledger() if "2026-11-18" in one.url]
        purge(store.latest(), gone, run)
        store = fitted(store.latest(), "first", "topics", {"alpha0": 0.3}, run)
        tag(store, "published", "first")
        ask_selection(accumulator.seals.inbox, store.latest().version)
        accumulator.compare_if_asked()
        # the old content lies aside, and is counted no more
        deletions["begun"] = calls.forget(id="d7")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Deletions, "finish", dies)
            with pytest.raises(Cut):
                counted(accumulator)
        # sealed, and not counted
        receipts["sealed"] = calls.send(documents[130:140], "sealed")
        assert accumulator.seals.seal_next() is not None
        # what waits
        deletions["waits"] = calls.forget(id="d105")
        receipts["waiting"] = calls.send(*again)
        receipts["waiting, too"] = calls.send(documents[150:160])
    told = {
        "tokens": tokens,
        "receipts": receipts,
        "deletions": deletions,
        "again": again,
        "store": store_told(store.latest()),
    }
    pack(name)
    expect(name, {**told, **inbox_told(name, run, receipts, deletions, again)})


NIGHTS = {
    "night": (
        {"min_documents": 1, "max_topics": 3, "vocabulary_size": 24},
        {"topics": [2, 3], "alpha0": 0.3},
        lambda: {
            f"2026-11-{20 + day}.txt": "\n".join(list(texts(360))[120 * day : 120 * day + 120])
            for day in range(3)
        },
    ),
    "night_vectors": (
        {"kind": "vectors", "columns": "x,y,z"},
        {"model": "gaussian_mixture", "topics": 2},
        lambda: {
            f"2026-11-{20 + day}.csv": csv_of(
                ["x", "y", "z"],
                mixture_rows(600, 3, 2, separation=6.0, variances="spherical", seed=1)
                .rows[200 * day : 200 * day + 200]
                .tolist(),
            ).decode()
            for day in range(3)
        },
    ),
}


def make_night(name, run):
    """Two nights, and the shard of a third."""
    create, refit, shards = NIGHTS[name]
    *days, third = shards().items()
    night = night_of(name, create, refit)
    for path, text in days:
        put(name, f"shards/{path}", text.encode())
        report = nightly(night, run.cluster, lambda step: None)
        assert report.outcome == "published", report
    put(name, f"third/{third[0]}", third[1].encode())
    told = {"create": create, "refit": refit, "store": store_told(MomentStore.open(night.store))}
    told["history"] = history_told(name, night)
    pack(name)
    expect(name, {**told, "third": third_night(name, night, run)})


def estimators():
    """Each estimator, fitted, with what it reads."""
    counts = lda_corpus(300, n_words=20, n_topics=2, mean_length=15, seed=1).batch.to_csr()
    views = [one.to_csr() for one in view_records(800, (6, 5, 4), 2, seed=5).batch.views]
    steps = markov_sequences(80, length=30, n_symbols=6, k=2, seed=1).batch.symbols
    walks = list(steps.reshape(80, 30))
    table = latent_tree_table(600, n_columns=4, n_states=2, n_categories=3, seed=4).codes
    graph = community_graph(60, 2, 0.6, 0.05, 0.0, seed=0).batch.to_csr()
    rows = mixture_rows(400, 3, 2, separation=6.0, variances="spherical", seed=1).rows
    mixed = factor_rows(2000, 4, 2, seed=2).rows
    return {
        "MomentTopics": (MomentTopics(2, alpha0=0.3).fit(counts), counts[:5].toarray()),
        "MomentTopics polished": (
            MomentTopics(2, alpha0=0.3, polish=1).fit(counts),
            counts[:5].toarray(),
        ),
        "MomentTopics added to": (
            MomentTopics(2, alpha0=0.3).partial_fit(counts[:200]).partial_fit(counts[200:]),
            counts[:5].toarray(),
        ),
        "MomentViews": (MomentViews(2).fit(views), [one[:5].toarray() for one in views]),
        "MomentHMM": (MomentHMM(2, 6, refine=5).fit(walks), walks[:3]),
        "MomentLatentTree": (MomentLatentTree(2).fit(table), table[:5]),
        "MomentCommunities": (MomentCommunities(2).fit(graph), graph[:5].toarray()),
        "MomentGaussianMixture": (MomentGaussianMixture(2).fit(rows), rows[:5]),
        "MomentFactors": (MomentFactors(2).fit(mixed), mixed[:5]),
    }


def make_estimators():
    """Pickles of estimators, with what they make of some rows."""
    name, told = "estimators", {}
    for called, (estimator, rows) in estimators().items():
        put(name, f"{called}.pickle", pickle.dumps((estimator, rows), protocol=4))
        told[called] = estimator_told(estimator, rows)
    pack(name)
    expect(name, told)


def main(asked):
    with few_row_blocks(), connect() as cluster:
        run = Run(cluster)
        jobs = {"inbox": lambda: make_inbox(run), "estimators": make_estimators}
        jobs |= {name: lambda name=name: make_night(name, run) for name in NIGHTS}
        for name, job in jobs.items():
            if not asked or name in asked:
                job()
                print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
