"""Names of shards: patterns, signatures, passwords, copies, folders, and what a terminal shows."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import fsspec
import pytest

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.aggregation.bundles import Bundle
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.progress import Silent
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.ledger import CopiesCounted
from streaming_moments.storage.shards import ShardFormat

pytestmark = pytest.mark.usefixtures("few_blocks")
OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)


@pytest.fixture
def folder(tmp_path, planted):
    """Two files of texts whose names are another's pattern."""
    place = tmp_path / "g"
    place.mkdir()
    for number, name in enumerate(("a1.txt", "a[1].txt")):
        (place / name).write_text("\n".join(planted[number * 50 : number * 50 + 50]))
    return place


@pytest.fixture
def store(tmp_path, folder, embedded):
    """An empty one."""
    listed = list_shards([str(folder / "a1.txt")])
    return create(
        str(tmp_path / "store"), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded)
    )


def urls(opened):
    return sorted(record.url for record in opened.latest().ledger())


def names(opened):
    return sorted(Path(url).name for url in urls(opened))


def everything_in(place):
    files = (path for path in Path(place).rglob("*") if path.is_file())
    return b"\n".join(path.read_bytes() + str(path).encode() for path in files)


def test_a_name_that_is_a_pattern_is_counted_and_forgotten_as_that_file(run, store, folder):
    literal = folder / "a[1].txt"
    code, _, err = run("update", store.url, folder / "a1.txt", literal)
    assert (code, names(store)) == (0, ["a1.txt", "a[1].txt"])
    assert "a[1].txt is used as a name; as a pattern it would also match 1 others" in err
    assert run("forget", store.url, literal)[0] == 0
    assert names(store) == ["a1.txt"]


def test_forget_takes_no_other_file_where_the_counted_one_is_gone(run, store, folder):
    literal = folder / "a[1].txt"
    assert run("update", store.url, folder / "a1.txt", literal)[0] == 0
    literal.unlink()
    code, _, err = run("forget", store.url, literal)
    assert (code, names(store)) == (2, ["a1.txt", "a[1].txt"])
    assert "a[1].txt: does not exist; check the path" in err


@pytest.fixture
def bucket(monkeypatch, planted):
    """An S3 server with a shard, and what signs its URL: each time anew."""
    from s3_server import S3Server

    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    fs = fsspec.filesystem("s3", key="AKIAKEY", secret="s", endpoint_url=f"http://{host}:{port}")
    name = uuid.uuid4().hex
    fs.mkdir(name)
    fs.pipe(f"{name}/a.txt", "\n".join(planted[:50]).encode())
    yield lambda seconds, file="a.txt": fs.sign(f"{name}/{file}", expiration=seconds)
    server.stop()


def secrets_of(url):
    """The values in a presigned URL."""
    return [value for value in re.findall(r"=([^&]+)", url) if len(value) > 8]


def test_a_presigned_url_is_counted_once_and_its_signature_kept_nowhere(
    run, tmp_path, store, bucket
):
    first, second = bucket(100), bucket(200)
    secrets = {*secrets_of(first), *secrets_of(second)}
    assert len(secrets) > 2
    counted = json.loads(run("update", store.url, first, "--json")[1])
    assert (counted["counted"], counted["already"]) == (1, 0)
    loud = second.replace("http://127.0.0.1", "HTTP://127.0.0.1") + "#again"
    for again in (second, loud):
        answer = json.loads(run("update", store.url, again, "--json")[1])
        assert (answer["counted"], answer["already"]) == (0, 1)
    assert urls(store) == [first.partition("?")[0]]
    told = ""
    for arguments in (
        ("update", store.url, bucket(100, "gone.txt")),
        ("update", store.url, f"{bucket(100, 'gone.txt')}&more=1", "--skip-bad-shards"),
        ("transform", store.url, first, "--output", tmp_path / "out"),
        ("forget", store.url, second),
    ):
        told += "".join(map(str, run("--debug", *arguments)))
    assert "gone.txt?more=1: does not exist" in told
    assert urls(store) == []
    kept = everything_in(tmp_path).decode(errors="replace") + told
    assert [secret for secret in {*secrets, "X-Amz", "Signature"} if secret in kept] == []


def test_signatures_reach_no_log_of_a_worker(store, bucket, planted):
    class Spoilt(Silent):
        """Listed, and gone when it is read."""

    url = bucket(100)
    [shard] = list_shards([url])
    assert shard.source == url
    assert "?" not in repr(shard)
    spoilt = type(shard)(shard.url, shard.size, None, url.replace("/a.txt?", "/b.txt?"))
    with connect(workers=1) as cluster:
        with pytest.raises(ShardError) as caught:
            update(store, [spoilt], Run(cluster))
        logs = str(cluster.client.get_worker_logs()) + str(cluster.client.get_scheduler_logs())
        logs += str(cluster.client.story(*cluster.client.futures)) + str(caught.value)
        logs += str(cluster.client.get_events())
    assert "release_here" in logs, "they say what ran"
    # by which the arguments of a task that fails are logged
    assert "?" not in repr(Bundle((spoilt,)))
    assert [secret for secret in (*secrets_of(url), "X-Amz") if secret in logs] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("update", "{store}", "http://me:hushhush@host/bad.txt", "--skip-bad-shards"),
        ("update", "{store}", "{folder}/a1.txt", "s3://hushhush@bucket/*"),
        ("update", "{store}", "{folder}", "--replace", "--old", "http://me:hushhush@host/a.txt"),
        ("forget", "{store}", "http://me:hushhush@host/bad.txt"),
        ("transform", "{store}", "{folder}/a1.txt", "--output", "s3://me:hushhush@bucket/out"),
        ("transform", "{store}", "{folder}/a1.txt", "--output", "https://host/o?sig=hushhush"),
        ("status", "https://host/store?sv=2024&sig=hushhush"),
        ("status", "https://host/store?access_token=hushhush"),
        ("create", "s3://me:hushhush@bucket/new", "{folder}/a1.txt"),
        ("plan", "http://me:hushhush@host/a.txt"),
        ("grow", "{store}", "http://me:hushhush@host/a.txt"),
    ],
)
def test_secrets_in_urls_are_refused_unnamed_before_anything_is_read(
    run, tmp_path, store, folder, arguments
):
    before = everything_in(tmp_path)
    filled = [part.format(store=store.url, folder=folder) for part in arguments]
    code, out, err = run("--debug", *filled)
    assert (code, out) == (2, "")
    assert "give credentials in the storage options" in err
    assert "hushhush" not in err
    assert everything_in(tmp_path) == before


def test_a_night_refuses_secrets_in_urls_as_it_is_read():
    good = {"store": "s", "shards": ["*.txt"], "output": "r", "refit": {"topics": 5}}
    assert not config_of(good, "night.toml").update.unique
    assert config_of({**good, "update": {"unique": True}}, "night.toml").update.unique
    for key, value in (
        ("store", "s3://me:hushhush@bucket/store"),
        ("store", "https://host/store?sig=hushhush"),
        ("shards", ["*.txt", "http://me:hushhush@host/*.txt"]),
        ("output", "s3://me:hushhush@bucket/reports"),
        ("cluster", {"scheduler": "tcp://me:hushhush@host:8786"}),
    ):
        with pytest.raises(InvalidInput, match=rf"{key}.*give credentials in the stor") as caught:
            config_of({**good, key: value}, "night.toml")
        assert "hushhush" not in f"{caught.value}{caught.value.__context__}"


def test_a_name_that_is_not_utf_8_is_left_out_and_stops_nobody(run, store, folder):
    bad = os.fsencode(folder) + b"/caf\xe9\n.txt"
    shutil.copy(folder / "a1.txt", bad)
    code, _, err = run("update", store.url, folder / "*.txt")
    assert code == 2
    assert rf"{folder}/caf\xe9\n.txt: has a name that is not UTF-8; rename it" in err
    assert names(store) == []
    code, out, err = run("update", store.url, folder / "*.txt", "--skip-bad-shards", "--json")
    assert (code, json.loads(out)["counted"], names(store)) == (3, 2, ["a1.txt", "a[1].txt"])
    [(url, reason)] = store.latest().commit.skipped
    assert (url, reason) == (f"{folder}/caf\\xe9\n.txt", "has a name that is not UTF-8; rename it")
    assert rf"left out {folder}/caf\xe9\n.txt: has a name" in err


def test_texts_of_a_folder_may_have_names_that_are_not_utf_8(run, store, folder):
    texts = folder / "t"
    texts.mkdir()
    shutil.copy(folder / "a1.txt", os.fsencode(texts) + b"/caf\xe9.txt")
    assert run("update", store.url, texts)[0] == 0
    assert urls(store) == [f"{texts}/"]
    Path(os.fsdecode(os.fsencode(texts) + b"/nai\xef.txt")).write_bytes(b"\xff")
    code, _, err = run("update", store.url, texts, "--replace")
    assert code == 2
    assert r"t/: file nai\xef.txt is not UTF-8" in err


@pytest.fixture
def copies(store, folder, embedded):
    """A store that has counted a file, and links to it and a copy of it."""
    counted = update(store, list_shards([str(folder / "a1.txt")]), Run(embedded)).store
    place = folder.parent / "copies"
    place.mkdir()
    shutil.copy(folder / "a1.txt", place / "copy.txt")
    os.link(folder / "a1.txt", place / "hard.txt")
    (place / "soft.txt").symlink_to(folder / "a1.txt")
    shutil.copy(folder / "a[1].txt", place / "other.txt")
    shutil.copy(folder / "a[1].txt", place / "same.txt")
    return counted, place


def test_shards_of_one_content_are_told_of_in_a_line_that_names_both(run, copies, folder):
    counted, place = copies
    code, out, err = run("update", counted.url, place / "*.txt", "--json")
    found = {(Path(pair["url"]).name, pair["content_of"]) for pair in json.loads(out)["copies"]}
    twins = found - {(f"{name}.txt", str(folder / "a1.txt")) for name in ("copy", "hard", "soft")}
    assert code == 0
    assert len(found) == 4
    assert twins < {("same.txt", f"{place}/other.txt"), ("other.txt", f"{place}/same.txt")}
    assert len(err.splitlines()) == 4
    assert f"{place}/copy.txt has the same content as {folder}/a1.txt; both are counted" in err
    assert json.loads(run("update", counted.url, place / "*.txt", "--json")[1])["copies"] == []


def test_unique_refuses_copies_or_leaves_them_out(run, copies, folder):
    counted, place = copies
    code, _, err = run("update", counted.url, place / "hard.txt", "--unique")
    assert (code, names(counted)) == (2, ["a1.txt"])
    assert f"hard.txt: has the same content as {folder}/a1.txt; leave it out" in err
    given = ("update", counted.url, place / "*.txt", "--unique", "--skip-bad-shards")
    code, _, err = run(*given)
    assert (code, len(names(counted))) == (3, 2)
    assert names(counted)[1] in ("other.txt", "same.txt")
    assert len(err.splitlines()) == 4
    assert len(counted.latest().commit.skipped) == 4


def test_unique_holds_beside_another_writer(copies, embedded):
    counted, place = copies

    class Rival(Silent):
        """Counts the copy while we add up."""

        done = False

        def advance(self, step, done, total):
            if step == "adding up row blocks" and not self.done:
                self.done = True
                update(counted, list_shards([str(place / "other.txt")]), Run(embedded))

    mine = list_shards([str(place / "same.txt")])
    with pytest.raises(ShardError, match=r"same\.txt: has the same content as .*other\.txt"):
        update(counted, mine, Run(embedded, progress=Rival()), unique=True)
    assert names(counted) == ["a1.txt", "other.txt"]
    left_out = update(counted, mine, Run(embedded, progress=Rival()), True, unique=True)
    assert [error.url for error in left_out.bad] == [f"{place}/same.txt"]
    assert left_out.store.verify() == []


def test_unique_holds_for_what_replaces_other_content(copies, folder, embedded):
    counted, place = copies
    counted = update(counted, list_shards([str(place / "other.txt")]), Run(embedded)).store
    old = folder.parent / "old.txt"
    shutil.move(place / "other.txt", old)
    shutil.copy(folder / "a1.txt", place / "other.txt")
    given = list_shards([str(place / "other.txt")])
    with pytest.raises(CopiesCounted, match=r"other\.txt has the same content as .*a1"):
        update(counted, given, Run(embedded), old=list_shards([str(old)]), unique=True)
    assert update(counted, given, Run(embedded), old=list_shards([str(old)])).replaced == 1


def test_a_folder_and_its_files_are_not_both_counted(store, folder, embedded):
    whole, part = list_shards([str(folder)]), list_shards([str(folder / "a1.txt")])
    counted = update(store, whole, Run(embedded)).store
    with pytest.raises(InvalidInput, match=r"a1\.txt lies within .*/g/, which is counted") as told:
        update(counted, part, Run(embedded))
    assert "first remove the counted one by `forget --allow-again`" in str(told.value)
    assert urls(counted) == [f"{folder}/"]
    gone = forget(counted, whole, Run(embedded))
    # a folder that was forgotten does not come back by its files
    assert update(gone, part, Run(embedded)).forgotten == ((f"{folder}/a1.txt", "was forgotten"),)
    bare = update(gone, part, Run(embedded), include_forgotten=True).store
    assert bare.commit.forgotten.names == ()
    with pytest.raises(InvalidInput, match=r"/g/ holds .*/g/a1\.txt, which is counted"):
        update(bare, whole, Run(embedded))
    assert urls(bare) == [f"{folder}/a1.txt"]
    # what was counted so before stays countable
    assert update(bare, part, Run(embedded)).already == 1


HOSTILE = "a\nERROR: all is lost \x1b[31m\x9b2J\u202e.txt"


def test_no_name_draws_on_the_terminal(run, store, folder):
    (folder / HOSTILE).write_bytes(b"\xff")
    for arguments in (
        ("update", store.url, folder / "*.txt"),
        ("--debug", "update", store.url, folder / "*.txt"),
        ("update", store.url, folder / "*.txt", "--skip-bad-shards"),
        ("log", store.url),
        ("forget", store.url, folder / HOSTILE),
        ("status", folder / HOSTILE),
        ("topics", store.url, "--model", HOSTILE),
        ("tag", store.url, HOSTILE, HOSTILE),
        ("rollback", store.url, "0", "--message", HOSTILE),
        ("status", store.url),
        ("diff", store.url, "0", "1"),
    ):
        _, out, err = run(*arguments)
        told = out + err
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", told), arguments
        assert not re.search("^ERROR", told, re.MULTILINE), arguments


def test_a_store_with_the_signs_of_markup_is_shown_as_it_is_called(run, store, tmp_path):
    place = tmp_path / "[red]x[/b]:smile:"
    shutil.copytree(tmp_path / "store", place)
    code, out, _ = run("status", place)
    assert code == 0
    assert str(place) in out


def test_no_value_in_the_log_of_a_night_draws_on_the_terminal():
    script = (
        "import sys; from streaming_moments.pipelines.terminal import event_logger; "
        "event_logger().bind(store=sys.argv[1])"
        ".info('list', shards=1, bad=[sys.argv[1]], x=sys.argv[1])"
    )
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", script, HOSTILE], stderr=theirs, check=True)
    os.close(theirs)
    told = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert told.count("ERROR: all is lost") == 3
    # what colours the line is structlog's
    assert not re.search("[\x9b\u202e]|\x1b\\[31m\x9b|\nERROR", told)


def test_no_value_in_the_line_of_a_step_draws_on_the_terminal():
    script = (
        "import sys; from streaming_moments.pipelines.command_line.nightly import _line_of; "
        "from streaming_moments.pipelines.reports.page import StepReport; "
        "from streaming_moments.pipelines.terminal import tell; "
        "tell(_line_of(StepReport(sys.argv[1], 1.0, {'outcome': sys.argv[1], sys.argv[1]: 3})))"
    )
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", script, HOSTILE], stderr=theirs, check=True)
    os.close(theirs)
    told = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert told.count("ERROR: all is lost") == 3
    assert not re.search("[\x9b\u202e]|\x1b\\[31m\x9b|\nERROR", told)
