"""The doors from Python: every kind of documents counts the same, once, wherever it lies."""

import os
import signal
from dataclasses import replace
from datetime import date
from functools import partial
from typing import get_args

import dask
import dask.bag
import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from distributed import Client, LocalCluster
from forking import forking

from streaming_moments import METHODS, MomentStatistics, create_store, fit, open_store
from streaming_moments.errors import InvalidInput, ShardError, StoreError, StreamingMomentsError
from streaming_moments.models import halves
from streaming_moments.models.numbers import number_search
from streaming_moments.pipelines import PilotOptions
from streaming_moments.pipelines.cluster.worker_loss import WorkersLost
from streaming_moments.pipelines.interface import partitions
from streaming_moments.pipelines.interface.store import Method
from streaming_moments.pipelines.jobs.create import CountingOptions
from streaming_moments.storage.counting.reading import count_texts

pytestmark = pytest.mark.usefixtures("few_blocks")
PILOT = PilotOptions(vocabulary_size=120, core=100, min_documents=2)


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


@pytest.fixture
def empty(tmp_path, planted, client):
    """A store in which nothing is counted."""
    return create_store(
        str(tmp_path / "store"), planted, source="pilot", client=client, max_topics=4, pilot=PILOT
    )


@pytest.fixture
def small_cuts(monkeypatch):
    monkeypatch.setattr(partitions, "_CUT_BYTES", 20_000)


def statistics(store):
    """But for the halves: which a document is of begins with the parity of its shard's bytes."""
    found = store.snapshot.load()
    assert (found.even_pair_counts <= found.pair_counts).all()
    return replace(found, even_pair_counts=None)


def all_of(texts, store):
    """The statistics of the texts, in memory."""
    words = store.snapshot.vocabulary, store.snapshot.policy
    counted = count_texts(texts, *words).batch
    return MomentStatistics.of(counted, store.snapshot.basis, halves=False)


def tables(texts):
    return pa.table({"text": texts, "n": list(range(len(texts)))})


KINDS = {
    "texts": lambda texts: texts,
    "an iterator": iter,
    "a function": lambda texts: lambda: iter(texts),
    "pairs": lambda texts: list(enumerate(texts)),
    "mappings": lambda texts: [{"text": text} for text in texts],
    "a series": pd.Series,
    "a frame": lambda texts: pd.DataFrame({"text": texts}),
    "a table": tables,
    "a reader": lambda texts: tables(texts).to_reader(100),
    "a bag": lambda texts: dask.bag.from_sequence(texts, npartitions=5),
    "a bag with empty partitions": lambda texts: dask.bag.concat(
        [
            dask.bag.from_sequence(texts, npartitions=2),
            dask.bag.from_sequence(texts, npartitions=2).filter(lambda text: False),
        ]
    ),
    "a dataframe": lambda texts: dask.dataframe.from_pandas(
        pd.DataFrame({"text": texts}), npartitions=4
    ),
    "a dask series": lambda texts: dask.dataframe.from_pandas(pd.Series(texts), npartitions=4),
    "delayed": lambda texts: [dask.delayed(part) for part in (texts[:400], texts[400:])],
    "futures": lambda texts: None,
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_documents_count_the_same_and_once(kind, empty, planted, client, small_cuts):
    if kind == "futures":
        documents = client.scatter([planted[:300], planted[300:]])
    else:
        documents = KINDS[kind](planted)
    store = empty.update(documents, source="all", client=client)
    assert store.documents == len(planted)
    assert statistics(store) == all_of(planted, store)
    records = list(store.snapshot.ledger())
    assert all(record.url.startswith("partition://all/0") for record in records)
    assert sum(record.documents for record in records) == len(planted)
    if kind not in ("an iterator", "a reader"):
        assert store.update(documents, source="all", client=client).version == store.version
        assert store.forget(documents, source="all", client=client).documents == 0


def test_a_collection_counts_what_its_texts_in_files_count(empty, planted, client, tmp_path):
    (tmp_path / "all.txt").write_text("\n".join(planted))
    files = empty.update(str(tmp_path / "all.txt"))
    counted = statistics(files)
    nothing = files.forget([str(tmp_path / "all.txt")])
    bag = dask.bag.from_sequence(planted, npartitions=3)
    assert statistics(nothing.update(bag, source="bag", client=client)) == counted


def test_paths_are_read_as_urls_and_a_store_needs_documents(planted, tmp_path):
    path = tmp_path / "all.txt"
    path.write_text("\n".join(planted))
    store = create_store(tmp_path / "store", path, max_topics=2).update([path])
    assert store.documents == len(planted)
    assert open_store(tmp_path / "store").forget(path).documents == 0
    with pytest.raises(InvalidInput, match="no documents to sample; give some, or use the found"):
        create_store(tmp_path / "other")
    with pytest.raises(StoreError, match=r"fit one by `store.refit\(..., name='first'\)`"):
        store.topics()


def test_partitions_that_changed_are_refused_and_nothing_is_counted(empty, planted, client):
    store = empty.update(
        dask.bag.from_sequence(planted[:90], npartitions=3), source="a", client=client
    )
    other = dask.bag.from_sequence(planted[:60] + planted[200:230], npartitions=3)
    with pytest.raises(InvalidInput, match="1 partition was counted with other content: part"):
        store.update(other, source="a", client=client)
    with pytest.raises(InvalidInput, match="is now sha256:.*put the old content back"):
        store.forget(other, source="a", client=client)
    with pytest.raises(InvalidInput, match="^'a' is the source of counted documents.*source='a'$"):
        store.forget("a", client=client)
    assert open_store(store.url).version == store.version
    assert store.update(other, source="b", client=client).documents == 180


@pytest.mark.parametrize("lazy", [False, True])
def test_partitions_that_are_gone_are_named(lazy, empty, planted, client, monkeypatch):
    monkeypatch.setattr(partitions, "_CUT_BYTES", 1)  # each text is a partition

    def given(number):
        return (
            dask.bag.from_sequence(planted[:number], npartitions=number)
            if lazy
            else planted[:number]
        )

    update = partial(empty.update, client=client if lazy else None)
    store = update(given(8), source="a")
    update(given(3), source="ab")
    with pytest.raises(InvalidInput) as caught:
        update(given(2), source="a")
    assert str(caught.value) == (
        "6 counted partitions are missing: "
        + ", ".join(f"partition://a/{number:05d}.jsonl" for number in range(2, 7))
        + ", .... Give all counted partitions, or first forget the missing ones, or use a new "
        "source name for the new documents"
    )
    with pytest.raises(InvalidInput, match="8 counted partitions are missing"):
        update([], source="a")
    assert len(store.snapshot.latest().ledger()) == 11
    left = store.forget(given(8), source="a", allow_again=True)
    assert update(given(2), source="a").documents == left.documents + 2


def test_what_fits_no_memory_is_made_twice_and_counted_once(empty, planted, client, monkeypatch):
    bag = dask.bag.from_sequence(planted, npartitions=5)
    monkeypatch.setattr(partitions, "_KEPT_SHARE", 1 << 62)
    store = empty.update(bag, source="all", client=client)
    monkeypatch.undo()
    again = empty.forget(bag, source="all", client=client, allow_again=True)
    assert statistics(store) == statistics(again.update(bag, source="all", client=client))


def test_a_worker_that_dies_of_a_partition_once_costs_nothing(empty, planted, client, tmp_path):
    mark = tmp_path / "died"

    def part(texts):
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return texts

    parts = [dask.delayed(part)(planted[at : at + 300]) for at in range(0, 900, 300)]
    store = empty.update(parts, source="all", client=client)
    assert mark.exists()
    assert statistics(store) == all_of(planted, store)


def test_a_partition_that_kills_its_workers_is_named(empty, client):
    def part():
        os.abort()

    def allow(number, dask_scheduler):
        before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, number
        return before

    allowed = client.run_on_scheduler(allow, 0)
    try:
        with pytest.raises(WorkersLost, match=r"computed partition://all/00000\.jsonl, "):
            empty.update([dask.delayed(part)()], source="all", client=client)
    finally:
        client.run_on_scheduler(allow, allowed)


def killed_by_its_documents(url, path):
    partitions._CUT_BYTES, partitions._WINDOW_BYTES = 20_000, 80_000

    def texts():
        with open(path) as lines:
            for number, line in enumerate(lines):
                if number == 700:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield line.rstrip("\n")

    open_store(url).update(texts, source="all")


def test_a_process_that_dies_in_the_middle_is_completed_by_the_same_call(
    empty, planted, tmp_path, small_cuts, monkeypatch, capsys
):
    """The documents of a second window kill it, once the first is committed."""
    (tmp_path / "texts").write_text("\n".join(planted))
    process = forking().Process(
        target=killed_by_its_documents, args=(empty.url, str(tmp_path / "texts"))
    )
    process.start()
    process.join(300)
    assert process.exitcode == -signal.SIGKILL
    half = open_store(empty.url)
    assert 0 < half.documents < 700
    monkeypatch.setattr(partitions, "_WINDOW_BYTES", 80_000)
    whole = half.update(planted, source="all", verbose=1)
    assert "reading shards of part 2: " in capsys.readouterr().out
    assert statistics(whole) == all_of(planted, whole)
    assert whole.snapshot.verify() == []


def test_days_of_documents_are_kept(tmp_path, planted, client):
    counting = CountingOptions(date_column="day")
    records = [
        {"text": text, "day": date(2026, 11, 1 + place // 300)}
        for place, text in enumerate(planted)
    ]
    bag = dask.bag.from_sequence(records, npartitions=3)
    known = {"client": client, "source": "days"}
    store = create_store(
        str(tmp_path / "store"), bag, max_topics=3, counting=counting, pilot=PILOT, **known
    ).update(bag, **known)
    days = sorted(str(part.dates) for part in store.snapshot.commit.segments)
    assert days == ["2026-11-01", "2026-11-02", "2026-11-03"]


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ([None], "document 1 is missing; leave it out"),
        (["a", b"b"], "document 2 is of type bytes"),
        ([(1, b"b")], "the text is of type bytes, not a str; decode it"),
        ([(1, None)], "document 1: the text is missing; leave it out"),
        ([{"body": "x"}], "document 1 has no 'text'; it has \\['body'\\]"),
        (
            pd.Series(["a", None]),
            "document 2 is missing; leave it out, in pandas by dropna",
        ),
        (pd.DataFrame({"body": ["x"]}), "no column 'text'"),
        (["\ud800"], "half of a surrogate pair"),
        (7, "the documents are of type int"),
        ("one text", "the documents are of type str"),
        ({"a": 1}, "the documents are of type dict"),
    ],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_documents_that_are_none_are_named(documents, said, lazy, empty, client):
    given = [dask.delayed(documents)] if lazy else documents
    with pytest.raises(ShardError, match=said):
        empty.update(given, source="bad", client=client if lazy else None)
    assert empty.snapshot.latest().version == empty.version


def test_bad_partitions_are_left_out_and_recorded(empty, planted, client):
    bag = dask.bag.from_delayed([dask.delayed(planted[:100]), dask.delayed([None])])
    store = empty.update(bag, source="some", client=client, skip_bad_shards=True)
    assert store.documents == 100
    [(url, reason)] = store.snapshot.commit.skipped
    assert url == "partition://some/00001.jsonl"
    assert reason.startswith("document 1 is missing")


@pytest.mark.parametrize("lazy", [False, True])
def test_ids_that_repeat_are_refused(lazy, empty, client):
    pairs = [(1, "sea"), (2, "law"), (1, "ship")]
    documents = dask.bag.from_sequence(pairs, npartitions=3) if lazy else pairs
    with pytest.raises(InvalidInput, match="1 document of partition://twice has the id of"):
        empty.update(documents, source="twice", client=client if lazy else None)


def test_five_lines_from_a_bag_to_topics(tmp_path, planted, client):
    bag = dask.bag.from_sequence(planted, npartitions=4)
    store = create_store(str(tmp_path / "s"), bag, client=client, max_topics=4, pilot=PILOT)
    store = store.update(bag, source="planted", client=client)
    topics = store.refit("auto", client=client, name="first")
    assert topics.to_frame()["share"].sum() == pytest.approx(1)
    kept = store.topics()
    assert kept.top_words(3) == topics.top_words(3)
    assert np.allclose(kept.transform(planted[:5]).sum(axis=1), 1)
    written = store.transform(bag, str(tmp_path / "out"), source="planted", client=client)
    assert (len(written.files), written.documents) == (4, 900)
    shares = written.to_frame().filter(regex=r"^share_\d+$").to_numpy()
    assert np.allclose(shares, kept.transform(planted), atol=1e-6)
    best = store.select([2, 3], client=client).best
    assert best.n_topics in (2, 3)


NAMED = {
    "pairs": lambda texts: list(zip("abcdef", texts, strict=True)),
    "mappings": lambda texts: [{"text": t, "n": n} for n, t in zip("abcdef", texts, strict=True)],
    "a series": lambda texts: pd.Series(texts, index=list("abcdef")),
    "a frame": lambda texts: pd.DataFrame({"text": texts}, index=list("abcdef")),
    "a frame with a column": lambda texts: pd.DataFrame({"text": texts, "n": list("abcdef")}),
    "a table": lambda texts: pa.table({"text": texts, "n": list("abcdef")}),
    "a dask series": lambda texts: dask.dataframe.from_pandas(
        pd.Series(texts, index=list("abcdef")), npartitions=2
    ),
    "a bag of pairs": lambda texts: dask.bag.from_sequence(
        list(zip("abcdef", texts, strict=True)), npartitions=2
    ),
    "texts": lambda texts: texts,
}
BY_COLUMN = ("mappings", "a frame with a column", "a table")


def test_transform_gives_back_what_documents_are_called(
    empty, planted, client, tmp_path, small_cuts
):
    store = empty.update(planted, source="all", client=client)
    store.refit(2, client=client, name="first")
    texts = [*planted[:5], "unheard of"]
    expected = store.topics().transform(texts)
    for kind, made in NAMED.items():
        column = "n" if kind in BY_COLUMN else None
        result = store.transform(
            made(texts), str(tmp_path / kind), source="some", client=client, id_column=column
        )
        frame = result.to_frame()
        names = [*"abcdef"]
        if kind == "texts":
            names = [f"partition://some/00000.jsonl#{row}" for row in range(6)]
        assert list(frame.index) == names, kind
        np.testing.assert_allclose(frame[["share_0", "share_1"]], expected, atol=1e-9)
        assert list(frame["foreign"]) == [False] * 5 + [True]
    assert store.topics().known_shares(texts)[-1] == 0


def test_labels_and_what_came_since_are_told_with_the_topics(empty, planted, client):
    store = empty.update(planted[:450], source="one", client=client)
    first = store.refit(2, client=client, name="first")
    assert (first.labels, store.topics().stale.is_stale) == ({}, False)
    store = store.label(1, "ships")
    assert store.topics().labels == {1: "ships"}
    assert list(store.topics().to_frame()["label"]) == ["", "ships"]
    store = store.update(planted[450:], source="two", client=client)
    stale = store.topics().stale
    assert (stale.model, stale.counted, stale.forgotten) == ("first", 450, 0)
    assert "450 documents counted since then are not in it" in store.topics()._repr_html_()
    with pytest.raises(InvalidInput, match="has topics 0 to 1, not 2"):
        store.label(2, "none")
    with pytest.warns(UserWarning, match="topic 1 has the label 'ships', too; give each topic its"):
        store.label(0, "ships")
    store.label(0, "")
    # the topic that is matched takes the label over
    again = store.refit(2, client=client, name="second")
    [number] = again.labels
    assert again.labels[number] == "ships"
    assert len({*again.top_words(9)[number]} & {*first.top_words(9)[1]}) > 5


def test_a_function_is_a_method_of_a_refit(empty, planted, client):
    def by_last_slice(tensor):
        return np.linalg.eigh(tensor[-1])[1]

    store = empty.update(planted, source="one", client=client)
    store.refit(2, 0.1, method=by_last_slice, client=client, name="own")
    assert store.topics("own").model.method == "by_last_slice"
    with pytest.raises(InvalidInput, match="method is of type int; .* or 'als' or a function$"):
        store.refit(2, method=3)


def test_topics_rounds_and_alpha_are_found_by_halves(tmp_path, planted, monkeypatch):
    monkeypatch.setattr(number_search, "TRIED_TOPICS", (2, 4))
    monkeypatch.setattr(halves, "TRIED_ROUNDS", (1, 2))
    store = create_store(str(tmp_path / "s"), planted, source="p", max_topics=4, pilot=PILOT)
    store = store.update(planted, source="p")
    found = store.refit("auto", refine="auto", alpha="auto").model
    assert found.n_topics == store.select((2, 4)).likely[0].n_topics
    rounds = store.select([found.n_topics], refine="auto").candidates[0].refined
    assert found.refined == rounds
    expected = fit(store.snapshot.load(), found.n_topics, refine=rounds, alpha="auto")
    assert found.alpha_sum == expected.alpha_sum
    assert found.alpha0_search is not None
    assert found.alpha0_search == expected.alpha0_search


def test_without_halves_the_most_coherent_number_is_taken_and_rounds_are_asked_for(
    tmp_path, planted
):
    options = {"max_topics": 4, "pilot": PILOT, "counting": CountingOptions(halves=False)}
    store = create_store(str(tmp_path / "s"), planted, source="p", **options)
    store = store.update(planted, source="p")
    best = store.select(range(2, 5), refine=1).best
    assert store.refit("auto", refine=1).model.n_topics == best.n_topics
    with pytest.raises(InvalidInput, match="has no halves .* number to n_topics and refine"):
        store.refit("auto", refine="auto")


def test_texts_without_a_source_are_told_of_it(empty, tmp_path):
    texts = [f"the law of the sea {number} " * 20 for number in range(40)]
    for call in (empty.update, lambda given: create_store(str(tmp_path / "none"), given)):
        for given in (texts, texts[0]):
            with pytest.raises(InvalidInput, match="name documents with source='NAME'") as caught:
                call(given)
            assert len(str(caught.value)) < 400
    with pytest.raises(InvalidInput, match="a source cannot be named 'a/b'"):
        empty.update(texts, source="a/b")


WRONG = [None, 3, 2.5, b"x", object(), [], {}, [1], ("a", 1), lambda: 3, True]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: type(value).__name__)
def test_the_wrong_type_anywhere_is_an_error_of_ours(wrong, empty, tmp_path):
    calls = [
        lambda: open_store(wrong),
        lambda: create_store(wrong, ["a"], source="a"),
        lambda: create_store(str(tmp_path / "none"), wrong),
        lambda: empty.update(wrong),
        lambda: empty.forget(wrong),
        lambda: empty.transform(wrong, str(tmp_path / "out")),
        lambda: empty.refit("many" if wrong is True else wrong if wrong != 3 else "x"),
    ]
    if wrong is not None:
        calls += [
            lambda: create_store(str(tmp_path / "none"), ["a"], source="a", client=wrong),
            lambda: create_store(str(tmp_path / "none"), ["a"], source="a", pilot=wrong),
            lambda: empty.update(["a"], source="a", client=wrong),
            lambda: empty.update(["a"], source=wrong),
        ]
    for number, call in enumerate(calls):
        with pytest.raises(StreamingMomentsError) as caught:
            call()
        assert "\n" not in str(caught.value), number
    assert not (tmp_path / "none").exists()


def test_a_store_takes_every_decomposition_there_is():
    assert get_args(Method) == METHODS


@pytest.mark.parametrize("form", ["dia", "coo", "dok", "csr"])
def test_a_sparse_matrix_as_documents_is_refused(form, tmp_path):
    matrix = scipy.sparse.eye_array(4).asformat(form)
    with pytest.raises(ShardError, match="are a sparse matrix of counts, but a store counts texts"):
        create_store(str(tmp_path / "store"), matrix, source="a")
