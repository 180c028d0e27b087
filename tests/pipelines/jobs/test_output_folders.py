"""Output folders: all files of one are of one model, however many runs write into it."""

import dataclasses
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from queue import SimpleQueue
from threading import Barrier, Event

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments import fit
from streaming_moments.errors import ShardError, StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.outputs import proportions as module
from streaming_moments.pipelines.jobs.outputs.claiming import claimed, written_by
from streaming_moments.pipelines.jobs.outputs.transform import transform
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files import outputs
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.output_folders import (
    NOTE,
    OutputFolder,
    OutputNote,
    OutputOfAnother,
    read_note,
)
from streaming_moments.storage.files.outputs import put_whole
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.locks import Lock
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
SHARDS = 4


@pytest.fixture(scope="module")
def corpus(planted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(SHARDS):
        (folder / f"{number}.txt").write_text("\n".join(planted[number * 9 : number * 9 + 9]))
    return list_shards([f"{folder}/*.txt"])


@pytest.fixture(scope="module")
def store(planted, tmp_path_factory, embedded):
    place, run = tmp_path_factory.mktemp("two-models"), Run(embedded)
    (place / "all.txt").write_text("\n".join(planted[:200]))
    listed = list_shards([str(place / "all.txt")])
    options = PilotOptions(vocabulary_size=140, core=110, max_topics=4, min_documents=3)
    made = create(str(place / "store"), listed, ShardFormat(), TokenPolicy(), options, run)
    made = update(made, listed, run).store
    for name, topics in (("first", 3), ("second", 4)):
        made = made.save_model(name, fit(made.load(), topics, 1.0))
    return made


@pytest.fixture(params=["memory", "s3"])
def bucket(request):
    """URL and options of a bucket that no process but this one sees."""
    if request.param == "memory":
        yield "memory://output-folders", {}
        fsspec.filesystem("memory").rm("/output-folders", recursive=True)
        return
    from s3_server import S3Server

    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}", "key": "user", "secret": "hidden-secret"}
    try:
        fsspec.filesystem("s3", **options).mkdir("outputs")
        yield "s3://outputs", options
    finally:
        server.stop()


@pytest.fixture
def write(store, corpus, embedded, tmp_path):
    """Transform shards from one number to another by a model."""

    def call(name, first=0, stop=SHARDS, output="out", **how):
        run = Run(embedded, tell=how.pop("tell", lambda line: None))
        shards, place = corpus[first:stop], str(tmp_path / output)
        return transform(store, store.load_model(name), shards, place, run, name=name, **how)

    return call


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def models_of(folder, options=None):
    """Return the model that each file of a folder names."""
    opened = Folder.at(str(folder), options)
    files = [opened.read(name) for name in opened.names("") if name.endswith(".parquet")]
    told = [pq.read_metadata(pa.BufferReader(file)).metadata[b"provenance"] for file in files]
    return [json.loads(one)["model"] for one in told]


def test_a_second_model_is_refused_and_changes_nothing(write, tmp_path, run, store, corpus):
    write("first", 0, 2)
    before = files_in(tmp_path / "out")
    with pytest.raises(OutputOfAnother, match=r"model first \(topics .*model second .*--replace"):
        write("second", 2, 4)
    read = ("transform", store.url, corpus[3].url, "--output", tmp_path / "out")
    code, out, err = run(*read, "--model", "second")
    assert (code, out) == (2, "")
    assert "model first (topics of" in " ".join(err.split())
    assert files_in(tmp_path / "out") == before
    # the same model goes on, whatever it is called
    write("first", 2, 4)
    assert models_of(tmp_path / "out") == ["first"] * 4
    assert run(*read, "--model", "first")[0] == 0
    again = MomentStore.open(store.url).save_model("again", store.load_model("first"))
    assert again.models["again"].id != again.models["first"].id
    assert run(*read, "--model", "again")[0] == 0


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"passages": True}, "with passages false, and this run has passages true"),
        ({"labels": {1: "sea"}}, 'with labels {}, and this run has labels {"1": "sea"}'),
        ({"foreign_below": 0.5}, "foreign_below 0.2, and this run has foreign_below 0.5"),
        ({"method": "gibbs", "seed": 3}, 'seed null, and this run has method "gibbs", seed 3'),
    ],
)
def test_other_options_that_change_the_content_are_refused(write, tmp_path, how, said):
    write("first", 0, 1)
    before = files_in(tmp_path / "out")
    with pytest.raises(OutputOfAnother) as refused:
        write("first", 1, 2, **how)
    assert said in str(refused.value)
    assert files_in(tmp_path / "out") == before
    # of the same content
    write("first", 1, 2, top_documents=2, seed=7)


def test_a_replaced_folder_holds_nothing_of_the_first_model(write, tmp_path):
    write("first", top_documents=2)
    folder = tmp_path / "out"
    (folder / f".{NOTE}.{'a' * 32}.partial").write_text("")
    name = next(folder.glob("*.parquet")).name
    (folder / f".{name}.{'a' * 32}.partial").write_text("")
    (folder / f"{name}.{'b' * 32}.tmp").write_text("")  # of an earlier version
    (folder / "mine.parquet").write_text("of the user")
    write("second", 0, 1, replace=True)
    (folder / "mine.parquet").unlink()
    assert models_of(folder) == ["second"]
    [file] = folder.glob("*.parquet")
    assert files_in(folder).keys() == {NOTE, f".{NOTE}.{'a' * 32}.partial", file.name}
    # it is of that model now, and there is nothing more to replace
    assert write("second", 0, 2, replace=True).kept == 1
    with pytest.raises(OutputOfAnother, match="model second"):
        write("first")
    assert pq.read_table(folder).num_rows == 18


def test_what_a_killed_replacement_left_is_ended_by_the_same_model_alone(write, store, tmp_path):
    write("first")
    folder = Folder.at(str(tmp_path / "out"))
    by = read_note(folder).by
    folder.write(NOTE, OutputNote(dataclasses.replace(by, digest="0" * 64), True).sealed())
    with pytest.raises(OutputOfAnother):
        write("first")
    assert models_of(tmp_path / "out") == ["first"] * SHARDS
    write("second", 0, 1, replace=True)
    folder.write(NOTE, OutputNote(read_note(folder).by, True).sealed())
    write("second", 1, 2)
    assert models_of(tmp_path / "out") == ["second"]


def at_once(*calls):
    """What calls that begin at the same time gave, or the errors they raised."""
    begun = Barrier(len(calls))

    def call(one):
        begun.wait()
        try:
            return one()
        except StoreError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(call, calls))


@pytest.mark.parametrize("replace", [False, True])
def test_of_two_models_at_once_one_has_the_whole_folder(write, tmp_path, replace):
    for attempt in range(4):
        out = f"out-{attempt}"
        found = at_once(
            lambda: write("first", output=out, replace=replace),  # noqa: B023
            lambda: write("second", output=out, replace=replace),  # noqa: B023
        )
        won = [one for one in found if not isinstance(one, StoreError)]
        assert all(isinstance(one, OutputOfAnother) for one in found if one not in won)
        [name] = set(models_of(tmp_path / out))
        note = read_note(Folder.at(str(tmp_path / out)))
        assert (note.by.model, note.replacing) == (name, False)
        if not replace:
            assert len(won) == 1
            assert models_of(tmp_path / out) == [name] * SHARDS
        # what the other left out the last one writes
        assert write(name, output=out).documents == 36
        assert models_of(tmp_path / out) == [name] * SHARDS


def test_runs_of_one_model_at_once_end_with_the_whole_result(write, tmp_path):
    expected = files_in((write("first", output="alone", top_documents=2), tmp_path / "alone")[1])
    found = at_once(*[lambda: write("first", top_documents=2)] * 3)
    assert [one.documents for one in found] == [36] * 3
    assert files_in(tmp_path / "out") == expected


def test_a_run_whose_folder_is_replaced_writes_no_more(write, tmp_path, monkeypatch):
    read, begun, aside = module.read_named, Event(), ThreadPoolExecutor(1)

    def slow(shard, *told):
        if shard.url.endswith("1.txt") and not begun.is_set():
            begun.set()
            replacing.put(aside.submit(write, "second", replace=True))
            while read_note(Folder.at(str(tmp_path / "out"))).by.model == "first":
                pass
        return read(shard, *told)

    write("first", 0, 1)
    replacing = SimpleQueue()
    monkeypatch.setattr(module, "read_named", slow)
    with pytest.raises(OutputOfAnother, match=r"model second .*during this run"):
        write("first")
    assert replacing.get(timeout=60).result(60).documents == 36
    assert models_of(tmp_path / "out") == ["second"] * SHARDS


def test_a_file_on_its_way_into_a_folder_that_is_replaced_is_taken_back(
    write, store, tmp_path, monkeypatch
):
    write("first", 0, 1)
    folder = Folder.at(str(tmp_path / "out"))
    first = OutputFolder(folder, read_note(folder).by)
    (tmp_path / "late").write_bytes(b"of the first")

    copy = outputs.copy_whole

    def late(source, path):
        monkeypatch.setattr(outputs, "copy_whole", copy)
        write("second", 1, 2, replace=True)
        copy(source, path)

    monkeypatch.setattr(outputs, "copy_whole", late)
    with pytest.raises(OutputOfAnother, match="during this run"):
        put_whole(str(tmp_path / "late"), first, "late-00000000.parquet")
    assert models_of(tmp_path / "out") == ["second"]


def test_a_run_that_is_killed_half_way_leaves_whole_files_of_one_model(write, tmp_path):
    write("first", 0, 1)
    code = (
        "import os, sys\n"
        "from streaming_moments.storage.files.folders import Folder\n"
        "from streaming_moments.storage.files.output_folders import OutputFolder, read_note\n"
        "from streaming_moments.storage.files.outputs import put_whole\n"
        "folder = Folder.at(sys.argv[1])\n"
        "os.replace = lambda *paths: os._exit(9)\n"
        "put_whole(sys.argv[2], OutputFolder(folder, read_note(folder).by), sys.argv[3])\n"
    )
    half = tmp_path / "half"
    half.write_bytes(b"PAR1 of which the rest is not there")
    told = [str(tmp_path / "out"), str(half), "1.txt-00000000.parquet"]
    died = subprocess.run([sys.executable, "-c", code, *told], timeout=120)
    assert died.returncode == 9
    left = [path.name for path in (tmp_path / "out").iterdir() if path.suffix == ".partial"]
    assert len(left) == 1, "it died where nothing is left behind"
    assert pq.read_table(tmp_path / "out").num_rows == 9
    with pytest.raises(OutputOfAnother, match="model first"):
        write("second")
    assert write("first").kept == 1
    assert pq.read_table(tmp_path / "out").num_rows == 36


def test_a_folder_of_an_earlier_version_is_accepted_and_said_to_name_no_model(write, tmp_path):
    write("first", 0, 2)
    (tmp_path / "out" / NOTE).unlink()
    told = []
    write("second", 2, 4, tell=told.append)
    [line] = map(str, told)
    assert line.startswith(f"warning: 2 files in {tmp_path}/out do not name the model")
    assert sorted(models_of(tmp_path / "out")) == ["first", "first", "second", "second"]
    with pytest.raises(OutputOfAnother, match="model second"):
        write("first")
    told.clear()
    write("second", 2, 4, tell=told.append)
    write("first", output="new", tell=told.append)
    (tmp_path / "out" / NOTE).unlink()
    write("first", 0, 1, replace=True, tell=told.append)
    assert models_of(tmp_path / "out") == ["first"]
    assert told == []


def test_a_run_that_fails_before_its_first_file_leaves_nothing_and_claims_nothing(write, tmp_path):
    with pytest.raises(ShardError, match="id"):
        write("first", id_column="nobody")
    assert not (tmp_path / "out").exists()
    write("second", 0, 1)
    assert models_of(tmp_path / "out") == ["second"]


def test_a_note_that_is_damaged_is_an_error_that_names_it(write, tmp_path):
    write("first", 0, 1)
    note = tmp_path / "out" / NOTE
    whole = note.read_bytes()
    for content in (whole[:-1] + b"x", b"", b'{"sha256": "'):
        note.write_bytes(content)
        with pytest.raises(StoreError, match=rf"out/{NOTE} is damaged"):
            write("first")
    note.write_bytes(seal({"by": 1}))
    with pytest.raises(StoreError, match=rf"out/{NOTE} does not name the model"):
        write("first")


def test_a_replacement_waits_for_another_one(store, tmp_path):
    folder = Folder.at(str(tmp_path))
    first, second = (
        written_by(store, store.load_model(name), name) for name in ("first", "second")
    )
    claimed(folder, first, False, print).require_own()
    held = Lock.acquire(Folder.at(f"{folder.url}/.replacing"), timedelta(hours=1))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(claimed, folder, second, True, print)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        assert read_note(folder) == OutputNote(first)
        held.release()
        assert waiting.result(timeout=60).by == second
    assert read_note(folder) == OutputNote(second)


def test_folders_of_other_storages_are_of_one_model_too(store, corpus, embedded, bucket):
    url, options = bucket
    run = Run(embedded, storage_options=options)
    models = {name: store.load_model(name) for name in ("first", "second")}

    def write(name, shards, **how):
        return transform(store, models[name], shards, f"{url}/out", run, name=name, **how)

    found = at_once(lambda: write("first", corpus[:2]), lambda: write("second", corpus[:2]))
    [refused] = [one for one in found if isinstance(one, StoreError)]
    assert isinstance(refused, OutputOfAnother)
    folder = Folder.at(f"{url}/out", options)
    name = read_note(folder).by.model
    [other] = {*models} - {name}
    before = folder.sizes("")
    with pytest.raises(OutputOfAnother, match=f"model {name} .*model {other} "):
        write(other, corpus[2:])
    assert folder.sizes("") == before
    result = write(other, corpus[2:], replace=True)
    assert len(result.to_frame()) == 18
    # A task of the refused call may still run. After the replacement it may write its file, because
    # the folder now belongs to its model.
    assert set(models_of(folder.url, options)) == {other}
    assert {file.rsplit("/", 1)[-1] for file in result.files} <= {*folder.names("")}
