"""Hostile names: patterns, control characters, bytes that are no UTF-8; each is that file alone."""

import contextlib
import io
import os
import random
import re
import uuid

import fsspec
import pytest
from command_runs import exit_code_of
from test_bad_input import OPTIONS, texts

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import files_of
from streaming_moments.storage.store.store import MomentStore

# "::" chains file systems in fsspec's grammar, which is refused
PIECES = [
    *(b"a", b"b", b"1", b" ", b"*", b"?", b"[", b"]", b"[a]", b"[!b]", b"[1-2]", b"**", b"{a,b}"),
    *(b"\n", b"\r", b"\t", b"\x1b[31m", b"\x07", b"\x7f", b"\nERROR: lost", b"'", b'"', b"\\"),
    *(b"\xff", b"\xe9", b"\xc3", b"\xed\xa0\x80", "é".encode(), "\u202e".encode(), b"\xc2\x9b"),
    *(b"#", b"@", b"%", b":a", b"&sig=7f", b"~", b"$x", b"[red]"),
]
MEANT = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]|^ERROR", re.MULTILINE)


def hostile(rng):
    """Name of a file, as bytes."""
    drawn = b"".join(rng.choices(PIECES, k=rng.randint(1, 5)))
    return b"x" + drawn + b".txt"


def rivals(rng, name):
    """Names that a name may match as a pattern."""
    plain = re.sub(rb"\[!?(.)[^\]]*\]", rb"\1", name)
    yield from (plain, name.replace(b"*", b"a"), name.replace(b"?", b"1"), hostile(rng))


def decoded(names):
    """Those that are UTF-8."""
    for name in names:
        with contextlib.suppress(UnicodeDecodeError):
            yield name.decode()


def listed_alone(folder, names, options=None):
    """How many of the names, each given as it is, are listed as that file and no other."""
    held = 0
    for name in names:
        [shard] = list_shards([f"{folder}/{os.fsdecode(name)}"], options)
        try:
            [state] = files_of(shard, options)
            held += shard.url == f"{folder}/{name.decode()}" and state.path.endswith(name.decode())
        except ShardError as error:
            with pytest.raises(UnicodeDecodeError):
                name.decode()
            held += "not UTF-8; rename it" in str(error) and str(error).isprintable()
    return held


def test_hostile_names_on_a_local_disk(campaigns, tmp_path):
    rng = random.Random(campaigns.seed)
    tried = held = 0
    for number in range(campaigns.size(30, 1000)):
        name = hostile(rng)
        names = {name, *rivals(rng, name)}
        folder = tmp_path / str(number)
        folder.mkdir()
        for one in names:
            (folder / os.fsdecode(one)).write_bytes(one)
        tried += len(names) + 1
        held += listed_alone(folder, names)
        found = list_shards([str(folder)], kind="text")
        held += sorted(shard.source for shard in found) == sorted(
            f"{folder}/{os.fsdecode(one)}" for one in names
        )
    campaigns.record("hostile names on a local disk: that file, or a bad shard", tried, held)


def test_hostile_names_on_s3(campaigns):
    from s3_server import S3Server

    rng = random.Random(campaigns.seed + 1)
    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "k", "secret": "secret", "endpoint_url": f"http://{host}:{port}"}
    fs, bucket = fsspec.filesystem("s3", **options), uuid.uuid4().hex
    fs.mkdir(bucket)
    tried = held = 0
    # an S3 server's XML has no control characters but white space
    sound = [piece for piece in PIECES if not re.search(rb"[\x00-\x1f\x7f]", piece)]
    for number in range(campaigns.size(4, 60)):
        drawn = (b"".join(rng.choices(sound, k=rng.randint(1, 4))) for _ in range(4))
        names = {name.encode() for name in decoded(b"x" + one + b".txt" for one in drawn)}
        names |= {one for name in set(names) for one in [*rivals(rng, name)][:3]}
        for one in names:
            fs.pipe_file(f"{bucket}/{number}/{one.decode()}", one)
        tried += len(names)
        held += listed_alone(f"s3://{bucket}/{number}", names, options)
    server.stop()
    campaigns.record("hostile names on S3: that file", tried, held)


def test_hostile_names_are_counted_shown_and_forgotten_as_themselves(campaigns, tmp_path):
    rng = random.Random(campaigns.seed + 2)
    tried = held = 0
    (tmp_path / "one.txt").write_text("\n".join(texts(0)))
    with connect() as cluster:
        joined = ("--scheduler", cluster.address)
        assert (
            exit_code_of("create", tmp_path / "store", tmp_path / "one.txt", *OPTIONS, *joined) == 0
        )
        for number in range(campaigns.size(1, 30)):
            name = hostile(rng)
            names = {name, *rivals(rng, name)}
            folder = tmp_path / f"g{number}"
            folder.mkdir()
            for place, one in enumerate(sorted(names)):
                (folder / os.fsdecode(one)).write_text("\n".join(texts(100 * number + place)))
            good = {f"{folder}/{one}" for one in decoded(names)}
            store = MomentStore.open(str(tmp_path / "store"))
            before = {record.url for record in store.ledger()}
            result = update(store, list_shards([str(folder)], kind="text"), Run(cluster), True)
            after = {record.url for record in result.store.ledger()}
            tried, held = tried + 1, held + (after - before == good)
            for gone in sorted(good)[:2]:
                said = io.StringIO()
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                    code = exit_code_of("forget", store.url, gone, *joined)
                    exit_code_of("log", store.url)
                left = {record.url for record in store.latest().ledger()}
                quiet = not MEANT.search(said.getvalue())
                tried, held = tried + 1, held + (code == 0 and left == after - {gone} and quiet)
                after = left
        assert MomentStore.open(store.url).verify() == []
    campaigns.record("hostile names counted, shown and forgotten as themselves", tried, held)
