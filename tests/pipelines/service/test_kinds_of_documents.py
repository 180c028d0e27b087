"""Documents of every kind of store by HTTP: counted as a file of them is, fitted, read, deleted."""

import json
import shutil
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import numpy as np
import openapi_spec_validator
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from service_answers import due

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions, create
from streaming_moments.pipelines.jobs.kinds.create_kinds import KindOptions, create_kind
from streaming_moments.pipelines.jobs.outputs.registry import output_of
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputOptions
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.pipelines.service.limits import LimitsSection
from streaming_moments.pipelines.service.record_schema import shape_of
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.corpora import lda_corpus
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.hidden import markov_sequences
from streaming_moments.synthetic.mixtures import mixture_rows
from streaming_moments.synthetic.sets import feature_sets
from streaming_moments.synthetic.tables import latent_tree_table

TEXTS, PLAIN = KindOptions(), CountingOptions(date_pattern="none")


@dataclass(frozen=True)
class Kind:
    """Documents of a kind as they are sent, and a store of them.

    `columns` are names that they have in a shard, where these are others; `said` is what of an
    answer of `transform` the column of a file of the model's output is; `bad` are documents that
    are refused, by the field.
    """

    records: Any
    refit: str
    said: tuple[str, str] | None = None
    shape: KindOptions = TEXTS
    counting: CountingOptions = PLAIN
    columns: dict = field(default_factory=dict)
    bad: tuple = ()


def of_ids():
    batch = lda_corpus(150, n_words=40, n_topics=2, mean_length=30, seed=1).batch
    for one, stop in zip(batch.indptr, batch.indptr[1:], strict=False):
        yield {"ids": batch.words[one:stop].tolist(), "counts": batch.counts[one:stop].tolist()}


def of_rows():
    codes = latent_tree_table(300, n_columns=4, n_states=2, n_categories=3, seed=4).codes
    for place, row in enumerate(codes.tolist()):
        known = {f"c{column}": f"v{code}" for column, code in enumerate(row)}
        yield {**known, "c1": None} if place % 50 == 7 else known


def of_views():
    for row in latent_tree_table(300, n_columns=3, n_states=2, n_categories=3, seed=4).codes:
        one, other, third = (int(code) for code in row)
        word = ("sea", "law", "tax")[one]
        yield {"title": f"{word} {word}", "author": [f"v{other}", f"v{third}"], "year": third}


def of_symbols():
    drawn = markov_sequences(90, length=30, n_symbols=6, k=2, seed=1).batch.symbols
    yield from ({"steps": row} for row in drawn.reshape(90, 30).tolist())


def of_letters():
    yield from ({"text": "".join("abcdef"[one] for one in row["steps"])} for row in of_symbols())


def of_vectors():
    rows = mixture_rows(300, 3, 2, separation=5.0, variances="spherical", seed=1).rows
    yield from ({"vector": row} for row in rows.tolist())


def of_numbers():
    yield from (dict(zip("xyz", row["vector"], strict=True)) for row in of_vectors())


def of_edges():
    edges = community_graph(60, 2, 0.6, 0.05, 0.0, seed=0).edges
    yield from ({"source": f"n{one}", "target": f"n{other}"} for one, other in edges.tolist())


def of_sets():
    batch = feature_sets(300, 8, 2, mean=0.3, seed=2).batch
    for one, stop in zip(batch.indptr, batch.indptr[1:], strict=False):
        yield {"codes": [f"c{feature}" for feature in batch.words[one:stop]]}


def of_columns():
    for row in of_sets():
        yield {f"c{feature}": f"c{feature}" in row["codes"] for feature in range(8)}


IDS = CountingOptions(ids_column="words", counts_column="times", date_pattern="none")
KINDS = {
    "ids": Kind(
        of_ids,
        "topics = 2",
        ("proportions", "proportions"),
        counting=IDS,
        columns={"ids": "words", "counts": "times"},
        bad=(
            ({"ids": [1, 2], "counts": [1]}, "counts"),
            ({"ids": [-1]}, "ids"),
            ({"ids": [1.0]}, "ids"),
            ({"ids": [2**63]}, "ids"),
            ({"ids": [1], "counts": [2**31]}, "counts"),
            # its triples would spoil the shard of all
            ({"ids": [3], "counts": [10**7]}, "ids"),
            ({"text": "sea"}, "text"),
        ),
    ),
    "tables": Kind(
        of_rows,
        'model = "latent_tree"\ntopics = 2',
        counting=CountingOptions(categories=("c0,c1,c2,c3",), date_pattern="none"),
        bad=(({"c0": "v0", "c1": "v1", "c2": "v2", "c3": ["v1"]}, "c3"), ({"c0": "v0"}, "c1")),
    ),
    "views": Kind(
        of_views,
        'model = "views"\ntopics = 2',
        ("proportions", "proportions"),
        KindOptions("views", "title:text,author,year"),
        bad=(({"title": 5, "author": "a", "year": 1}, "title"),),
    ),
    "lists of symbols": Kind(
        of_symbols,
        'model = "hmm"\ntopics = 2\nrefine = 3',
        ("states", "states"),
        KindOptions("sequences", "steps"),
        bad=(({"steps": "abc"}, "steps"), ({"steps": [1, None]}, "steps")),
    ),
    "texts of symbols": Kind(
        of_letters,
        'model = "hmm"\ntopics = 2\nrefine = 3',
        ("states", "states"),
        KindOptions("sequences"),
        bad=(({"text": 5}, "text"),),
    ),
    "vectors": Kind(
        of_vectors,
        'model = "gaussian_mixture"\ntopics = 2',
        ("proportions", "proportions"),
        KindOptions("vectors"),
        bad=(
            ({"vector": [1.0, 2.0]}, "vector"),
            ({"vector": [1.0, 2.0, "3"]}, "vector"),
            ({"vector": [1.0, 2.0, 10**400]}, "vector"),
        ),
    ),
    "numbers": Kind(
        of_numbers,
        'model = "gaussian_mixture"\ntopics = 2',
        ("proportions", "proportions"),
        KindOptions("vectors", "x,y,z"),
        bad=(({"x": 1, "y": None, "z": 2}, "y"),),
    ),
    "sets": Kind(
        of_sets,
        'model = "bernoulli_mixture"\ntopics = 2',
        ("proportions", "proportions"),
        KindOptions("sets", "codes"),
        bad=(({"codes": {"c1": 1}}, "codes"), ({"codes": [["c1"]]}, "codes")),
    ),
    "columns of sets": Kind(
        of_columns,
        'model = "bernoulli_mixture"\ntopics = 2',
        ("proportions", "proportions"),
        KindOptions("sets", ",".join(f"c{feature}" for feature in range(8))),
        bad=(({f"c{feature}": 2 for feature in range(8)}, "c0"),),
    ),
    "edges": Kind(
        of_edges,
        'model = "blockmodel"\ntopics = 2',
        shape=KindOptions("edges"),
        bad=(({"source": "n1", "target": ""}, "target"), ({"source": "n1"}, "target")),
    ),
}
FEW = PilotOptions(min_documents=1, max_topics=2, max_document_fraction=1.0)


def lines_of(records, kind):
    """Lines as a user's own file has them."""
    named = [{kind.columns.get(key, key): one[key] for key in one} for one in records]
    return "".join(json.dumps(one) + "\n" for one in named)


def written(path, records, kind, even=None):
    """A file of records; blank lines are none, so that its size may be even or odd."""
    content = lines_of(records, kind)
    path.write_text(content + "\n" * (even is not None and (len(content) % 2 == 0) != even))
    return list_shards([str(path)])


def created(place, name, kind, run):
    """A store made from its documents in a file."""
    shards = written(place / f"{name}.jsonl", kind.records(), kind)
    url, counting = str(place / "store"), kind.counting
    if kind.shape.kind == "counts":
        policy = None if counting.ids_column or counting.categories else counting.policy
        told = shards, counting.form, policy, FEW, run
        return create(url, *told, codocuments=False, dates=counting.dates)
    return create_kind(url, shards, kind.shape, counting, FEW, run)


def same_as_file(store, place, records, kind, run):
    """Whether a store holds, bit for bit, what an update counts of a file of these records."""
    inbox = place / "store-inbox" / "sealed"
    (sealed,) = inbox.rglob("*.jsonl")
    shutil.rmtree(place / "twin", ignore_errors=True)
    shutil.copytree(place / "empty", place / "twin")
    shards = written(place / "own.jsonl", records, kind, sealed.stat().st_size % 2 == 0)
    twin = update(MomentStore.open(str(place / "twin")), shards, run).store
    mine = store.latest()
    assert (mine.commit.documents, mine.commit.tokens) == (len(records), twin.commit.tokens)
    return mine.load() == twin.load() and mine.verify() == []


def asked(client, records):
    answer = client("POST", "/v1/transform", json={"documents": records})
    assert answer.status_code == 200, answer.text
    return answer.json()["documents"]


@pytest.mark.parametrize("name", KINDS)
def test_documents_of_a_kind_come_by_http_and_are_counted_fitted_read_and_deleted(
    name, tmp_path, embedded, few_blocks, start
):
    kind, run = KINDS[name], Run(embedded)
    records = list(kind.records())
    store = created(tmp_path, "pilot", kind, run)
    shutil.copytree(tmp_path / "store", tmp_path / "empty")
    (tmp_path / "night.toml").write_text(
        f'store = "{tmp_path}/store"\nshards = "{tmp_path}/store-inbox/sealed/**/*.jsonl"\n'
        f'output = "{tmp_path}/out"\n[refit]\n{kind.refit}\n'
    )
    rules = {"seal_after": "10ms", "night": str(tmp_path / "night.toml"), "refit_documents": 1}
    content = {"store": str(tmp_path / "store"), "accumulate": rules}
    accumulator = Accumulator.of(service_of(content, "service.toml"), run, lambda line: None)
    with start({"store": str(tmp_path / "store")}) as client:
        for bad, where in kind.bad:
            answer = client.send([records[0], bad])
            assert (answer.status_code, answer.json()["document"]) == (422, 1), answer.text
            assert answer.json()["field"] == where
        # once by a key, and once without
        half = len(records) // 2
        named = [{**one, "id": place} for place, one in enumerate(records)]
        first = client.send(named[:half], "k").json()["receipt"]
        assert client.send(named[:half], "k").json()["receipt"] == first
        second = client.send(named[half:]).json()["receipt"]
        assert due(accumulator).counted == len(records)
        client.service.current.look()
        told = [client("GET", f"/v1/receipts/{one}").json() for one in (first, second)]
        assert [one["state"] for one in told] == ["counted", "counted"]
        assert same_as_file(store, tmp_path, records, kind, run)
        # fitted by a night, published, and asked
        assert accumulator.refit_if_due() == "published"
        client.service.current.look()
        assert client("GET", "/v1/models").json()["answering"].startswith("night-v")
        found = asked(client, named[:20])
        assert len(found) == 20
        if kind.said is not None:
            sent, column = kind.said
            model = store.latest().load_any_model("published")
            output, shards = output_of(model.name), list_shards([str(tmp_path / "own.jsonl")])
            how = OutputOptions(method=next(iter(output.methods), ""))
            files = output.write(store.latest(), model, shards, str(tmp_path / "read"), run, how)
            rows = pq.read_table(files.files[0])[column].to_pylist()[:20]
            assert np.allclose([one[sent] for one in found], rows, atol=1e-6)
        for path in ("/", "/versions", "/health", "/docs", "/v1/topics", "/v1/status"):
            assert client("GET", path).status_code == 200, path
        for path in ("/try", "/v1/shares"):
            assert client("GET", path).status_code in (200, 422), path
        answer = client("POST", "/v1/transform", json={"texts": ["sea"]})
        assert (answer.status_code, "documents" in answer.json()["detail"]) == (422, True)
        # forgotten by receipt and by id, exactly
        for by, value in (("receipt", first), ("id", str(half))):
            location = client("DELETE", "/v1/documents", params={by: value}).headers["Location"]
            due(accumulator)
            assert client("GET", location).json()["state"] == "done"
        assert same_as_file(store, tmp_path, records[half + 1 :], kind, run)


def test_what_a_tree_and_a_graph_say_of_documents(tmp_path, embedded, few_blocks, start):
    for name in ("tables", "edges"):
        place, kind, run = tmp_path / name, KINDS[name], Run(embedded)
        place.mkdir()
        store = created(place, "pilot", kind, run)
        store = update(store, list_shards([str(place / "pilot.jsonl")]), run).store
        records = list(kind.records())
        (place / "night.toml").write_text(
            f'store = "{place}/store"\nshards = "{place}/*.jsonl"\noutput = "{place}/out"\n'
            f"[refit]\n{kind.refit}\n"
        )
        rules = {"night": str(place / "night.toml"), "refit_documents": 1}
        content = {"store": str(place / "store"), "accumulate": rules}
        accumulator = Accumulator.of(service_of(content, "service.toml"), run, lambda line: None)
        accumulator._since = 1
        assert accumulator.refit_if_due() == "published"
        with start({"store": str(place / "store")}) as client:
            if name == "tables":
                (one,) = asked(client, [records[7]])
                known = {key: value for key, value in records[7].items() if value is not None}
                assert known.items() <= one["completed"].items()
                assert one["completed"]["c1"] in ("v0", "v1", "v2")
                assert [part == 1 for part in one["probabilities"]] == [True, False, True, True]
                continue
            (one,) = asked(client, [{"source": records[0]["source"], "target": "new"}])
            assert one["memberships"]["new"] is None
            assert sum(one["memberships"][records[0]["source"]]) == pytest.approx(1)


@pytest.mark.parametrize("name", ["ids", "views", "vectors"])
def test_rows_of_arrow_are_the_same_documents(name, tmp_path, embedded, start):
    kind = KINDS[name]
    store = created(tmp_path, "pilot", kind, Run(embedded))
    rows = list(kind.records())[:10]
    with start({"store": str(tmp_path / "store")}) as client:
        sink = pa.BufferOutputStream()
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        answer = client(
            "POST",
            "/v1/documents",
            data=sink.getvalue().to_pybytes(),
            headers={
                "Content-Type": "application/vnd.apache.arrow.stream",
                "Idempotency-Key": "k",
            },
        )
        assert answer.status_code == 202, answer.text
        # what is sent again as JSON is the same, or would be refused
        assert client.send(rows, "k").json()["receipt"] == answer.json()["receipt"]
        document = client("GET", "/v1/openapi.json").json()
        openapi_spec_validator.validate(document)
        shown = document["components"]["schemas"]["DocumentSent"]
        for row in rows:
            jsonschema.validate(row, shown)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**rows[0], "other": 1}, shown)
        assert set(rows[0]) <= shown["properties"].keys()
        assert set(shown["required"]) == set(rows[0]) - {"counts"}
        sent = document["paths"]["/v1/documents"]["post"]["requestBody"]["content"]
        assert client.send(sent["application/json"]["example"]).status_code == 202
        asked = document["paths"]["/v1/transform"]["post"]["requestBody"]["content"]
        assert asked["application/json"]["schema"]["$ref"].endswith("/DocumentsToRead")
    assert shape_of(store, LimitsSection()).required == tuple(shown["required"])


def test_records_that_go_on_and_stores_of_lda_c_are_refused_at_the_start(tmp_path, embedded):
    run = Run(embedded)
    rows = [{"walk": f"w{n // 9}", "at": n % 9, "step": "ab"[n % 2]} for n in range(90)]
    kind = Kind(lambda: rows, "", shape=KindOptions("sequences", "walk,at,step"))
    with pytest.raises(InvalidInput, match="continue from record to record"):
        shape_of(created(tmp_path, "pilot", kind, run), LimitsSection())
    lines = (
        " ".join([str(len(one["ids"])), *map("{}:{}".format, one["ids"], one["counts"])])
        for one in of_ids()
    )
    (tmp_path / "ap.dat").write_text("\n".join(lines))
    listed, form = list_shards([str(tmp_path / "ap.dat")]), CountingOptions().form
    store = create(str(tmp_path / "of-ids"), listed, form, None, FEW, run)
    with pytest.raises(InvalidInput, match="--ids-column"):
        shape_of(store, LimitsSection())
