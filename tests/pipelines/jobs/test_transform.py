"""Transform: a row for each document, joined to what it is called, marked where little is known."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments import fit
from streaming_moments.errors import BoundExceeded, InvalidInput, ShardError, StoreError
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.outputs import proportions as module
from streaming_moments.pipelines.jobs.outputs.decode import decode
from streaming_moments.pipelines.jobs.outputs.registry import OUTPUTS
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputJob, OutputOptions
from streaming_moments.pipelines.jobs.outputs.transform import transform
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.quality.representatives import share_bounds
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.output_folders import OutputOfAnother
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.top_documents import read_top_documents

pytestmark = pytest.mark.usefixtures("few_blocks")
# words that no vocabulary has, as each is there once or twice
UNHEARD = [f"q{one}{two}{three}" for one in "abcdef" for two in "abcdef" for three in "abcdefghi"]
FOREIGN, NOTHING = " ".join(UNHEARD[:30]), "!!"


@pytest.fixture(scope="module")
def texts(planted):
    """Documents of one passage to four, some of which are foreign or hold nothing."""
    joined = [" ".join(planted[n : n + 1 + n % 4]) for n in range(0, 200, 4)]
    mixed = " ".join([planted[0], *UNHEARD])
    return [*joined[:20], FOREIGN, mixed, NOTHING, *joined[20:], ""]


@pytest.fixture(scope="module")
def corpus(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(3):
        some = slice(number * 18, number * 18 + 18)
        ids = [f"d{row}" for row in range(len(texts))][some]
        pq.write_table(pa.table({"who": ids, "text": texts[some]}), folder / f"{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def store(corpus, tmp_path_factory, embedded):
    listed, run = list_shards([str(corpus)]), Run(embedded)
    options = PilotOptions(vocabulary_size=140, core=110, max_topics=4, min_documents=3)
    place = str(tmp_path_factory.mktemp("joined") / "store")
    policy = TokenPolicy(passage_words=40)
    made = create(place, listed, ShardFormat(), policy, options, run)
    assert not {*UNHEARD} & {*made.vocabulary.terms}
    return update(made, listed, run).store


@pytest.fixture(scope="module")
def model(store):
    return fit(store.load(), 4, 1.0)


@pytest.fixture
def wrote(store, model, corpus, tmp_path, embedded):
    def call(output="out", **how):
        listed = list_shards([str(corpus)])
        return transform(store, model, listed, str(tmp_path / output), Run(embedded), **how)

    return call


def test_a_row_is_a_document_and_its_passages_are_added_up_by_their_tokens(
    wrote, texts, store, model
):
    result = wrote(id_column="who")
    frame = result.to_frame()
    assert list(frame.index) == [f"d{row}" for row in range(len(texts))]
    assert (result.documents, len(result.files)) == (len(texts), 3)
    shares = frame[[f"share_{topic}" for topic in range(4)]].to_numpy()
    passages = wrote("cut", id_column="who", passages=True).to_frame()
    for row, (name, text) in enumerate(zip(frame.index, texts, strict=True)):
        own = passages.loc[[name]]
        cut = list(store.policy.passages(text))
        assert list(own["passage"]) == list(range(len(cut)))
        assert own["length"].sum() == frame["length"].iloc[row]
        assert own["unknown"].sum() == frame["unknown"].iloc[row]
        found = own[[f"share_{topic}" for topic in range(4)]].to_numpy()
        weights = own["length"] if own["length"].sum() else np.ones(len(own))
        np.testing.assert_allclose(np.average(found, axis=0, weights=weights), shares[row])
        if len(cut) == 1:
            assert np.array_equal(found[0], shares[row])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.array_equal(frame["row"], [row % 18 for row in range(len(texts))])
    for place, file in enumerate(result.files):
        part = frame[frame["source"] == pq.read_schema(file).metadata[b"shard"].decode()]
        told = np.average(
            part[[f"share_{topic}" for topic in range(4)]], axis=0, weights=part["length"]
        )
        np.testing.assert_allclose(told, result.weights[place])


def test_documents_of_which_little_is_known_are_marked_and_have_no_topic(wrote, texts):
    result = wrote(id_column="who", labels={0: "ships"})
    frame = result.to_frame()
    foreign = [row for row, text in enumerate(texts) if FOREIGN in text]
    empty = [row for row, text in enumerate(texts) if text in (FOREIGN, NOTHING, "")]
    assert list(np.flatnonzero(frame["foreign"])) == foreign
    assert list(np.flatnonzero(frame["length"] == 0)) == empty
    assert list(np.flatnonzero(frame["topic"].isna())) == sorted({*foreign, *empty})
    assert (result.foreign, result.empty) == (len(foreign), len(empty))
    assert result.tokens == frame["length"].sum()
    assert result.unknown == frame["unknown"].sum() >= 60
    known = frame["topic"].notna()
    shares = frame.loc[known, [f"share_{topic}" for topic in range(4)]].to_numpy()
    assert np.array_equal(frame.loc[known, "topic"].astype(int), shares.argmax(axis=1))
    assert set(frame.loc[frame["topic"] == 0, "label"]) == {"ships"}
    assert frame.loc[frame["topic"] != 0, "label"].isna().all()
    assert wrote("all", foreign_below=0.0).foreign == 0


def test_without_an_id_column_documents_are_known_by_shard_and_row(wrote):
    frame = wrote().to_frame()
    assert list(frame.index) == [
        f"{source}#{row}" for source, row in zip(frame["source"], frame["row"], strict=True)
    ]
    assert frame.index.is_unique


def test_a_call_goes_on_where_one_was_stopped_and_keeps_no_file_of_another(
    wrote, corpus, tmp_path, monkeypatch
):
    first = wrote("one", id_column="who", top_documents=2)
    whole = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    # with the note that says of which model they are
    assert len(whole) == 5

    def stopped(*args):
        if "2.parquet" in args[0].url:
            raise ShardError(args[0].url, "is out of reach")
        return read(*args)

    read = module.read_named
    with monkeypatch.context() as patched:
        patched.setattr(module, "read_named", stopped)
        with pytest.raises(ShardError, match="out of reach"):
            wrote("two", id_column="who", top_documents=2)
    there = {path.name for path in (tmp_path / "two").iterdir()}
    assert there < whole.keys()
    again = wrote("two", id_column="who", top_documents=2)
    assert again.kept == len(there) - 1 > 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()} == whole
    same = dataclasses.replace(again, files=first.files, kept=0)
    assert same == first
    # what is cut off, or of another call, is written again
    [*_, last] = again.files
    Path(last).write_bytes(whole[Path(last).name][:-9])
    assert wrote("two", id_column="who", top_documents=2).kept == 2
    assert Path(last).read_bytes() == whole[Path(last).name]
    assert wrote("two", id_column="who").kept == 0
    for other in ({"labels": {1: "law"}}, {"passages": True}, {"id_column": None}):
        how = {"id_column": "who", "top_documents": 2, **other}
        with pytest.raises(OutputOfAnother):
            wrote("two", **how)
        assert wrote("two", **how, replace=True).kept == 0
    wrote("two", id_column="who", top_documents=2, replace=True)
    shard = corpus / "1.parquet"
    content = shard.read_bytes()
    shard.write_bytes(content)  # at another time
    assert wrote("two", id_column="who", top_documents=2).kept == 2


def test_the_documents_that_speak_most_for_a_topic_are_found_among_all_shards(
    wrote, texts, tmp_path
):
    result = wrote(id_column="who", top_documents=3)
    frame = result.to_frame()
    shares = frame[[f"share_{topic}" for topic in range(4)]].to_numpy()
    bounds = share_bounds(shares, np.where(frame["foreign"], 0, frame["length"]))
    order = frame.assign(place=range(len(frame))).sort_values(["source", "row"])["place"]
    for topic, found in enumerate(result.representatives.topics):
        expected = sorted(order, key=lambda place: -bounds[place, topic])[:3]
        assert [one.id for one in found] == [f"d{place}" for place in expected]
        for one, place in zip(found, expected, strict=True):
            assert (one.source, one.row) == (frame["source"].iloc[place], place % 18)
            assert one.share == shares[place, topic]
            assert one.text == texts[place][:200].rstrip()
    name, read = read_top_documents(str(tmp_path / "out"))
    assert (name, read) == ("", result.representatives)
    # readers of the folder as one table pass the file over
    assert pq.read_table(tmp_path / "out").num_rows == len(texts)
    with pytest.raises(StoreError, match="--top-documents 5"):
        read_top_documents(str(tmp_path))


def test_a_file_says_what_it_was_made_of(wrote, store, model):
    [file, *_] = wrote(id_column="who", name="first", labels={2: "law"}).files
    told = pq.read_metadata(file).metadata
    made = json.loads(told[b"provenance"])
    assert (made["shard"], made["store"]) == (told[b"shard"].decode(), store.url)
    assert (made["model"], made["id_column"], made["method"]) == ("first", "who", "fixed-point")
    assert made["labels"] == {"2": "law"}
    assert len(made["digest"]) == 64
    assert json.loads(told[b"summary"])["documents"] == 18


@pytest.mark.parametrize(
    "how", [{"top_documents": 101}, {"top_documents": -1}, {"foreign_below": 1.5}]
)
def test_what_is_out_of_range_is_refused(wrote, how, tmp_path):
    with pytest.raises(InvalidInput, match="give 0 to 100"):
        wrote(**how)
    assert not (tmp_path / "out").exists()


def test_every_output_names_the_options_that_tell_it_nothing():
    for name, output in OUTPUTS.items():
        assert output.idle(OutputOptions(method="x", name="m", labels={0: "sea"})) == []
        told = output.idle(OutputOptions(seed=1, passages=True))
        assert told == [one for one in ("seed", "passages") if one not in output.takes]
        assert callable(output.write), name


def test_a_model_that_no_worker_holds_is_refused_before_it_is_sent(tmp_path):
    emission = np.full((40_000, 50), 1 / 40_000)
    moves, share = np.full((50, 50), 0.02), np.full(50, 0.02)
    model = HiddenMarkovModel(emission, moves, share, share)
    # holds a process and a task that reads, and no model beside
    small = SimpleNamespace(threads=1, workers=1, memory=600 << 20)
    options = OutputOptions(method="viterbi")
    with pytest.raises(BoundExceeded, match=r"34 MiB for the model, .* for 50 states of symbols"):
        decode(OutputJob(None, model, [], str(tmp_path), Run(small), options))
