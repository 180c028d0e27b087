"""How the stores in `v0_2` were made, once, by version 0.2.0; they are never made again.

They were written by `PYTHONPATH=.:tests/formats:tests/faults python
tests/formats/make_v0_2_stores.py`, a store of each format, kind and model.
"""

import csv
import io
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaigns import few_row_blocks
from frozen import (
    expect,
    pack,
    place_of,
    put,
    read_by,
    shards_at,
    store_told,
    written_on,
)

from streaming_moments.models.registry import MODELS
from streaming_moments.models.states import states_of
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs import polish as polishing
from streaming_moments.pipelines.jobs import rebase as rebasing
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.grow import grow
from streaming_moments.pipelines.jobs.kinds.create_kinds import KindOptions, create_kind
from streaming_moments.pipelines.jobs.outputs.neighbours import neighbours
from streaming_moments.pipelines.jobs.polish import polish
from streaming_moments.pipelines.jobs.purge import purge
from streaming_moments.pipelines.jobs.rebase import rebase
from streaming_moments.pipelines.jobs.refit import refit_by, with_coherence
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.locks import Lock
from streaming_moments.storage.operations.history import tag
from streaming_moments.storage.operations.labels import label
from streaming_moments.synthetic.corpora import lda_corpus
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.hidden import markov_sequences, view_records
from streaming_moments.synthetic.mixtures import factor_rows, mixture_rows
from streaming_moments.synthetic.tables import latent_tree_table

PLAIN = CountingOptions(date_pattern="none")
DOCUMENTS = KindOptions()
FEW = PilotOptions(min_documents=1, max_topics=2, max_document_fraction=1.0)


def texts(number, seed=3, words=24):
    """Documents of spelled words."""
    batch = lda_corpus(
        number, words, 2, mean_length=16, concentration=8, seed=seed, spread=0.9
    ).batch
    for one, stop in zip(batch.indptr, batch.indptr[1:], strict=False):
        found = np.repeat(batch.words[one:stop], batch.counts[one:stop])
        yield " ".join(f"w{'abcdefghijklmnopqrstuvwxyz'[word]}" for word in found)


def jsonl(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def csv_of(header, rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue().encode()


def parquet(columns):
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def cut(items, suffix, write):
    """Three shards and one that comes later."""
    names = ("a", "b", "c", "later")
    parts = np.array_split(np.arange(len(items)), 4)
    return {
        f"{name}.{suffix}": write([items[place] for place in part])
        for name, part in zip(names, parts, strict=True)
    }


def as_texts():
    return cut(list(texts(160)), "txt", lambda part: ("\n".join(part) + "\n").encode())


def as_ids():
    batch = lda_corpus(160, n_words=24, n_topics=2, mean_length=14, seed=1).batch
    rows = [
        {"ids": batch.words[one:stop].tolist(), "counts": batch.counts[one:stop].tolist()}
        for one, stop in zip(batch.indptr, batch.indptr[1:], strict=False)
    ]
    return cut(rows, "jsonl", jsonl)


def as_tables():
    codes = latent_tree_table(600, n_columns=4, n_states=2, n_categories=3, seed=4).codes.tolist()
    rows = [[f"v{code}" if code >= 0 else "" for code in row] for row in codes]
    return cut(rows, "csv", lambda part: csv_of(["c0", "c1", "c2", "c3"], part))


def as_views(sizes=(8, 7, 6)):
    views = [
        view.to_csr().indices
        for view in view_records(800, sizes=sizes, k=2, mean=None, seed=5).batch.views
    ]
    rows = [[f"a{one}", f"b{two}", f"c{three}"] for one, two, three in zip(*views, strict=True)]
    return cut(rows, "csv", lambda part: csv_of(["a", "b", "c"], part))


def symbols(alphabet=6):
    drawn = markov_sequences(80, length=30, n_symbols=alphabet, k=2, seed=1).batch.symbols
    return drawn.reshape(80, 30).tolist()


def as_letters(alphabet=6):
    letters = "abcdefghijklmnopqrstuvwxyz"
    lines = ["".join(letters[one] for one in row) for row in symbols(alphabet)]
    return cut(lines, "txt", lambda part: ("\n".join(part) + "\n").encode())


def as_pieces():
    """Each shard goes on with the sequences of the one before; a gap, and one that is new."""
    rows = symbols()[:20]
    spans = {"a.csv": (0, 8), "b.csv": (8, 15), "c.csv": (16, 22), "later.csv": (22, 30)}
    return {
        name: csv_of(
            ["name", "time", "symbol"],
            [
                [f"s{number}", time, "abcdef"[row[time]]]
                for number, row in enumerate(rows)
                for time in range(*span)
            ],
        )
        for name, span in spans.items()
    }


def as_vectors():
    rows = mixture_rows(400, 3, 2, separation=6.0, variances="diag", seed=1).rows.tolist()
    return cut(rows, "parquet", lambda part: parquet({"vector": part}))


def as_factors():
    rows = factor_rows(800, 4, 2, seed=2).rows.tolist()
    return cut(rows, "csv", lambda part: csv_of(["x", "y", "z", "u"], part))


def as_edges(nodes=40, prefix="n"):
    edges = community_graph(nodes, 2, 0.6, 0.05, 0.0, seed=0).edges
    mixed = np.random.default_rng(0).permutation(edges)
    rows = [[f"{prefix}{one}", f"{prefix}{other}"] for one, other in mixed]
    return cut(rows, "csv", lambda part: csv_of(["source", "target"], part))


@dataclass(frozen=True)
class Made:
    """A store: its shards, how it is counted, and models by name with their options."""

    shards: Callable[[], dict[str, bytes]]
    models: dict[str, tuple[str, dict[str, Any]]]
    counting: CountingOptions = PLAIN
    shape: KindOptions = DOCUMENTS
    pilot: PilotOptions = FEW


MADE = {
    "counts_1": Made(
        as_texts,
        {
            "topics": ("topics", {"alpha0": 0.3}),
            "poisson": ("poisson", {}),
            "independent": ("independent", {"max_alpha0": 10**6}),
        },
        CountingOptions(date_pattern="none", halves=False),
        pilot=PilotOptions(
            min_documents=1, max_topics=2, max_document_fraction=1.0, length_weights="pooled"
        ),
    ),
    "counts_2": Made(
        as_texts,
        {"topics": ("topics", {"alpha0": 0.0})},
        CountingOptions(date_pattern="none", halves=False),
    ),
    "counts_3": Made(
        as_texts,
        {
            "topics": ("topics", {"alpha0": 0.3}),
            "mean": ("topics", {"alpha0": 0.3, "rows": "mean", "alpha": "auto"}),
        },
    ),
    "counts_ids": Made(
        as_ids,
        {"topics": ("topics", {"alpha0": 0.3})},
        CountingOptions(ids_column="ids", counts_column="counts", date_pattern="none"),
    ),
    "tables_4": Made(
        as_tables,
        {"tree": ("latent_tree", {})},
        CountingOptions(categories=("c0,c1,c2,c3",), date_pattern="none"),
    ),
    "views": Made(as_views, {"views": ("views", {})}, shape=KindOptions("views", "a,b,c")),
    "views_sketched": Made(
        lambda: as_views((40, 30, 24)),
        {"views": ("views", {})},
        shape=KindOptions("views", "a,b,c", sketch_columns=6),
    ),
    "sequences": Made(as_letters, {"hmm": ("hmm", {"refine": 5})}, shape=KindOptions("sequences")),
    "sequences_sketched": Made(
        lambda: as_letters(26),
        {"hmm": ("hmm", {"refine": 5})},
        shape=KindOptions("sequences", sketch_columns=6),
    ),
    "sequences_named": Made(
        as_pieces,
        {"hmm": ("hmm", {"refine": 5})},
        shape=KindOptions("sequences", "name,time,symbol"),
    ),
    "vectors": Made(
        as_vectors,
        {
            "spherical": ("gaussian_mixture", {}),
            "diag": ("gaussian_mixture", {"covariance": "diag"}),
        },
        shape=KindOptions("vectors", squares=True),
    ),
    "vectors_fourth": Made(
        as_factors,
        {
            "third": ("factors", {}),
            "fourth": ("factors", {"order": "fourth", "noise": "full", "weak": "keep"}),
        },
        shape=KindOptions("vectors", "x,y,z,u", fourth=True),
    ),
    "edges": Made(as_edges, {"blocks": ("blockmodel", {})}, shape=KindOptions("edges")),
    "edges_sketched": Made(
        as_edges,
        {"blocks": ("blockmodel", {})},
        shape=KindOptions("edges", sketch_columns=6, directed=True),
    ),
}


def created(name, made, run):
    url, listed = f"{place_of(name)}/store", shards_at(name, "[abc].*")
    counting = made.counting
    if made.shape.kind != "counts":
        return create_kind(url, listed, made.shape, counting, made.pilot, run)
    policy = None if counting.ids_column or counting.categories else counting.policy
    return create(
        url,
        listed,
        counting.form,
        policy,
        made.pilot,
        run,
        dates=counting.dates,
        halves=counting.halves,
    )


def fitted(store, name, model, given, run):
    family = MODELS[model]
    found = refit_by(store, family, family.Options(topics=2, **given), run)
    if model == "topics":
        found = with_coherence(store, found, run)
    return store.latest().save_model(name, found)


def make(name, made, run):
    """Create, count in two commits, fit, tag, label, forget one and count it again."""
    for path, content in made.shards().items():
        put(name, f"shards/{path}", content)
    store = created(name, made, run)
    store = update(store, shards_at(name, "[ab].*"), run).store
    store = update(store, shards_at(name, "c.*"), run).store
    for called, (model, given) in made.models.items():
        store = fitted(store, called, model, given, run)
    store = tag(store, "published", next(iter(made.models)))
    if states_of(store.load_any_model("published")) is not None:
        store = label(store, 1, "law & <sea>", "published")
    store = forget(store, shards_at(name, "b.*"), run)
    return update(store, shards_at(name, "b.*"), run).store


def finish(name, store, run):
    """Write what models say of a shard, the archive, and what this version reads of it."""
    told = store_told(store)
    told["outputs"] = {}
    for one in store.models:
        files = read_by(name, store, one, run, f"{place_of(name)}/out/{one}")
        told["outputs"][one] = [path.removeprefix(place_of(name) + "/") for path in files]
    pack(name)
    told["written on"] = written_on(name, store.latest(), run)
    assert store.latest().verify() == []
    expect(name, told)


def make_neighbours(run):
    """Lists of neighbours, and communities on them."""
    name, graph = "neighbours", as_edges(60, "")
    for path, content in graph.items():
        put(name, f"edges/{path}", content)
    listed = list_shards([f"{place_of(name)}/edges"])
    neighbours(listed, f"{place_of(name)}/shards", run, parts=4)
    files = sorted(fsspec.filesystem("memory").glob(f"/frozen/{name}/shards/*.parquet"))
    for path, called in zip(files, ("a", "b", "c", "later"), strict=True):
        fsspec.filesystem("memory").mv(path, f"/frozen/{name}/shards/{called}.parquet")
    counting = CountingOptions(ids_column="neighbours", date_pattern="none")
    made = Made(dict, {"communities": ("communities", {"refine": 0})}, counting)
    finish(name, make(name, made, run), run)


def make_history(run):
    """All that a log may hold: a purge, growth, parts of files, what was left out or polished."""
    name = "history"
    lines = list(texts(240, seed=5))
    days = {
        f"shards/2026-11-0{day}.txt": "\n".join(lines[60 * day - 60 : 60 * day]) + "\n"
        for day in (1, 2, 3)
    }
    for path, text in days.items():
        put(name, path, text.encode())
    put(name, "shards/later 2026-11-04.txt", ("\n".join(lines[180:220]) + "\n").encode())
    url, listed = f"{place_of(name)}/store", shards_at(name, "2026*")
    counting = CountingOptions()
    store = create(url, listed, counting.form, counting.policy, FEW, run, dates=counting.dates)
    store = update(store, listed, run).store
    purge(
        store, [f"{place_of(name)}/shards/2026-11-01.txt".replace("memory://", "memory:///")], run
    )
    store = fitted(store.latest(), "first", "topics", {"alpha0": 0.3}, run)
    put(name, "shards/2026-11-04.txt", b"wa wb steam\nsteam wc wd\n" * 5)
    store = grow(store, shards_at(name, "2026-11-04.txt"), run).store
    store = update(store, shards_at(name, "2026-11-04.txt"), run).store
    # a file that grew, and a bad one
    grown = "shards/2026-11-03.txt"
    put(name, grown, (days[grown] + "\n".join(lines[220:]) + "\n").encode())
    put(name, "shards/2026-11-05.txt", b"\xff\xfe no text\n")
    some = [*shards_at(name, "2026-11-03.txt"), *shards_at(name, "2026-11-05.txt")]
    store = update(store, some, run, skip_bad_shards=True).store
    store = fitted(store, "second", "topics", {"alpha0": 0.3}, run)
    done = polish(store, store.load_model("second"), run, passes=1, parent="second")
    store = store.save_model("polished", done.model)
    done.work.delete()
    store = compact(tag(store, "published", "polished"), run, "all")
    finish(name, store, run)


class Cut(RuntimeError):
    """A job that ends here."""


def make_begun(run):
    """A polishing and a rebase that were cut off, and files that no version names."""
    name, made = "begun", MADE["counts_3"]
    store = make(name, made, run)
    real = polishing._add_up

    def once(work, number, *given):
        if number == 2:
            raise Cut
        return real(work, number, *given)

    def never(*given):
        raise Cut

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polishing, "_add_up", once)
        patch.setattr(rebasing, "adopt", never)
        with suppress(Cut):
            polish(store, store.load_model("topics"), run, passes=2, parent="topics")
        with suppress(Cut):
            rebase(store, run)
    store = store.latest()
    assert store.commit.staged is not None
    # of a process that died long ago
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "clock", lambda folder: datetime(2024, 1, 1, tzinfo=UTC))
        Lock.acquire(store.folder, timedelta(minutes=5))
    # gathered, and never committed
    store.write_segment(store.load(), list(store.ledger()))
    finish(name, store, run)


def main(asked):
    with few_row_blocks(), connect() as cluster:
        run = Run(cluster)
        for name, made in MADE.items():
            if not asked or name in asked:
                finish(name, make(name, made, run), run)
        for one in (make_neighbours, make_history, make_begun):
            if not asked or one.__name__.removeprefix("make_") in asked:
                one(run)


if __name__ == "__main__":
    main(sys.argv[1:])
