"""Bad input of many kinds: one line that names it and the remedy, and a store as it was."""

import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_runs import exit_code_of

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.storage.store.store import MomentStore

WORDS = ("law", "sea", "ship", "tax", "gold", "harbour", "court", "treaty")
OPTIONS = ("--max-topics", "2", "--min-documents", "2", "--max-document-fraction", "1")


def texts(seed, documents=40):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 12)) for _ in range(documents)]


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)


@pytest.fixture(scope="module")
def address():
    """Of one cluster for all commands."""
    with connect() as cluster:
        yield cluster.address


@pytest.fixture(scope="module")
def ground(tmp_path_factory, address):
    """A store of texts with a model, a store of token ids, and shards good and bad."""
    root = tmp_path_factory.mktemp("bad")
    joined = ("--scheduler", address)
    (root / "one.txt").write_text("\n".join(texts(0)))
    (root / "two.txt").write_text("\n".join(texts(1)))
    (root / "changed.txt").write_text("\n".join(texts(2)))
    good = (root / "one.txt", root / "two.txt", root / "changed.txt")
    lines = [f"3 {i % 5}:2 {i % 5 + 1}:1 {i % 5 + 2}:3" for i in range(40)]
    (root / "ids.dat").write_text("\n".join(lines))
    for store, shards in (("store", good), ("numbers", (root / "ids.dat",))):
        assert exit_code_of("create", root / store, *shards, *OPTIONS, *joined) == 0
        assert exit_code_of("update", root / store, *shards, *joined) == 0
    assert exit_code_of("refit", root / "store", "--topics", "2", "--name", "first", *joined) == 0
    assert exit_code_of("tag", root / "store", "live", "first") == 0
    (root / "changed.txt").write_text("\n".join(texts(3)))
    plant(root)
    return root


def plant(root):
    """Shards that cannot be read, or not by these stores."""
    text = "\n".join(json.dumps({"text": line}) for line in texts(4)).encode()
    noise = np.random.default_rng(0).bytes(4000)
    parquet(root / "whole.parquet", text=texts(5))
    whole = (root / "whole.parquet").read_bytes()
    damaged = bytearray(pa.compress(text, "zstd", asbytes=True))
    damaged[len(damaged) // 2] ^= 0x5A
    files = {
        "empty.txt": b"",
        "noise.parquet": noise,
        "cut.parquet": whole[: len(whole) * 2 // 3],
        "half.jsonl": rb'{"text": "law \ud800 sea"}',
        "z.txt": b"law sea\n" * 50 + b"\xff",
        "latin.txt": b"law\nhar\xe9bour\n",
        "list.jsonl": b'["law", "sea"]\n',
        "broken.jsonl": b'{"text": "law"\n',
        "number.jsonl": b'{"text": 7}\n',
        "other.jsonl": b'{"body": "law"}\n',
        "cut.jsonl.gz": gzip.compress(text)[:-60],
        "magic.jsonl.gz": text,
        "damaged.jsonl.zst": bytes(damaged),
        "count.dat": b"2 1:1\n",
        "words.dat": b"law sea\n",
        "above.dat": b"1 99999:1\n",
        "huge.dat": b"1 99999999999999999999:1\n",
        "minus.dat": b"1 1:-3\n",
        "overflow.dat": b"1 1:99999999999999999999\n",
        "sum.dat": b"2 1:2000000000 2:2000000000\n",
        "long.txt": b"law " * 4000 + b"\n",
        "strange.txt": "\n".join(["zzz yyy xxx"] * 20).encode(),
        "nosuffix": b"law\n",
        "note.txt": b"no folder",
    }
    for name, content in files.items():
        (root / name).write_bytes(content)
    parquet(root / "column.parquet", body=texts(5))
    parquet(root / "type.parquet", text=list(range(9)))
    (root / "hollow").mkdir()
    (root / "mixed").mkdir()
    shutil.copy(root / "one.txt", root / "mixed" / "a.txt")
    shutil.copy(root / "whole.parquet", root / "mixed" / "b.parquet")
    (root / "no-store").mkdir()
    (root / "no-store" / "letter.txt").write_text("not a store")


# what is wrong: the command, of which {x} is x in the folder; what it must name; the remedy
CASES = {
    "missing shard": ("update {store} {absent.txt}", "absent.txt", "check the path"),
    "missing shard among others": ("update {store} {one.txt} {gone.txt}", "gone.txt", "check"),
    "empty shard": ("update {store} {empty.txt}", "empty.txt: is empty", "leave it out"),
    "binary garbage as Parquet": (
        "update {store} {noise.parquet}",
        "noise.parquet",
        "write it again",
    ),
    "truncated Parquet": ("update {store} {cut.parquet}", "cut.parquet", "write it again"),
    "wrong column name": ("update {store} {column.parquet}", "body", "choose|give|name"),
    "wrong column type": ("update {store} {type.parquet}", "int64", "give|choose|name"),
    "half a surrogate pair": ("update {store} {half.jsonl}", "line 1", "correct or delete it"),
    "invalid UTF-8": ("update {store} {latin.txt}", "line 2 is not UTF-8", "convert|mend|write"),
    "JSON list": ("update {store} {list.jsonl}", "line 1 is not a JSON object", "write an object"),
    "no JSON": ("update {store} {broken.jsonl}", "line 1 is not JSON", "correct or delete it"),
    "number as text": ("update {store} {number.jsonl}", "line 1", "expected a string"),
    "wrong JSON field": ("update {store} {other.jsonl}", "body", "choose|give|name"),
    "truncated gzip": ("update {store} {cut.jsonl.gz}", "cut.jsonl.gz", "its end is missing"),
    "gzip of another magic": ("update {store} {magic.jsonl.gz}", "magic.jsonl.gz", "check"),
    "damaged zstd": ("update {store} {damaged.jsonl.zst}", "damaged.jsonl.zst", "check"),
    "fewer pairs than said": ("update {numbers} {count.dat}", "line 1", "mend|write"),
    "words as LDA-C": ("update {numbers} {words.dat}", "'law'", "expected the number of its ids"),
    "ids of no word": ("update {numbers} {above.dat}", "above.dat", "check|create a store"),
    "id too large": ("update {numbers} {huge.dat}", "line 1 has id 9999999", "at most 18 digits"),
    "negative count": ("update {numbers} {minus.dat}", "line 1", "must be whole numbers"),
    "count too large": ("update {numbers} {overflow.dat}", "line 1", "must|mend"),
    "counts too large together": ("update {numbers} {sum.dat}", "4000000000", "at most"),
    "line above the limit": (
        "update {store} {long.txt} --max-document-bytes 8kB",
        "long.txt: line 1",
        "--max-document-bytes|cut|split",
    ),
    "no known word": ("update {store} {strange.txt}", "strange.txt", "check its language"),
    "changed shard": ("update {store} {changed.txt}", "was counted as sha256:", "--replace"),
    "token ids for texts": (
        "update {store} {ids.dat}",
        "ids.dat: contains token ids",
        "give shards",
    ),
    "texts for token ids": ("update {numbers} {one.txt}", "one.txt: contains texts", "give|name"),
    "no known suffix": ("update {store} {nosuffix}", "nosuffix", "--format"),
    "folder of nothing": ("update {store} {hollow}", "hollow", "check|holds no"),
    "folder of texts and others": ("update {store} {mixed}", "mixed", "give|--format|name"),
    "pattern of nothing": ("update {store} {*.absent}", "*.absent", "check"),
    "bad shard after a good one": ("update {store} {whole.parquet} {z.txt}", "z.txt", "UTF-8"),
    "two bad shards": ("update {store} {latin.txt} {noise.parquet}", "latin.txt", "noise.parquet"),
    "forget what is not counted": ("forget {store} {whole.parquet}", "whole.parquet", "give"),
    "forget what has changed": ("forget {store} {changed.txt}", "changed.txt", "put the old"),
    "replace with wrong old content": (
        "update {store} {changed.txt} --replace --old {two.txt}",
        "changed.txt was counted as sha256:",
        "give copies of it with `update --old`",
    ),
    "old without replace": ("update {store} {one.txt} --old {two.txt}", "--old", "give both"),
    "unknown model": ("topics {store} --model nobody", "nobody", "it has first, live"),
    "model to transform": (
        "transform {store} {one.txt} --output {out} --model nobody",
        "nobody",
        "it has first, live",
    ),
    "more topics than columns": ("refit {store} --topics 99", "99", "basis has"),
    "no topics": ("refit {store} --topics 0", "0 topics", "at least 1|give"),
    "negative alpha0": ("refit {store} --topics 2 --alpha0 -1", "-1", "give 0 to"),
    "alpha0 that is no number": ("refit {store} --topics 2 --alpha0 nan", "nan", "give 0 to"),
    "infinite alpha0": ("refit {store} --topics 2 --alpha0 inf", "inf", "give 0 to"),
    "model name taken": ("refit {store} --topics 2 --name first", "first", "choose a new name"),
    "model name that leaves": ("refit {store} --topics 2 --name ../x", "../x", "use up to 100"),
    "no such version": ("status {store} --version 77", "77", "it has 0 to"),
    "rollback to no version": ("rollback {store} 77", "77", "it has 0 to"),
    "tag of a bad name": ("tag {store} a/b first", "a/b", "use up to 100"),
    "tag of no model": ("tag {store} next nobody", "nobody", "it has first, live"),
    "tag with a model's name": ("tag {store} first live", "first", "choose another name"),
    "label of no topic": ("label {store} 7 ships", "7", "has topics 0 to 1"),
    "label with an escape": ("label {store} 0 a\x1bb", "a\\x1bb", "on one line"),
    "label of nothing": ("label {store} 0", "TEXT", "--remove"),
    "ids of texts": (
        "transform {store} {one.txt} --output {out} --id-column who",
        "who",
        "leave out `transform --id-column`",
    ),
    "versions not there": ("diff {store} 0 77", "77", "it has 0 to"),
    "little memory": ("update {store} {whole.parquet} --memory 1MB", "MiB", "--memory"),
    "memory without sense": ("update {store} {one.txt} --memory 5parsec", "5parsec", "write for"),
    "no duration": ("gc {store} --grace soon", "soon", "write for example 7d"),
    "options not JSON": ("status {store} --storage-options {{a", "storage-options", "write for"),
    "unknown protocol": ("status nosuch://bucket/store", "nosuch", "check|install|known"),
    "shard of unknown protocol": ("update {store} nosuch://a.txt", "nosuch", "check|install|known"),
    "password in the URL": ("status ftp://me:hushhush@host/s", "password", "storage options"),
    "no store": ("update {no-store} {one.txt}", "no-store", "check the path, or create one"),
    "file as store": ("status {note.txt}", "note.txt is not a folder", "check the path"),
    "store there already": ("create {store} {one.txt}", "is already a store", "at another URL"),
    "file as output": ("transform {store} {one.txt} --output {note.txt}", "note.txt", "check"),
    "compaction after less than none": (
        "update {store} {one.txt} --compact-after -1",
        "-1",
        "give at least 0",
    ),
    "no scheduler": ("update {store} {one.txt} --scheduler pigeon://loft:1", "loft:1", "start one"),
    "unknown option": ("update {store} {one.txt} --quickly", "--quickly", "--help"),
    "Gibbs without seed": (
        "transform {store} {one.txt} --output {out} --method gibbs",
        "seed",
        "give --seed",
    ),
}


def arguments_of(command, root, address):
    parts = [
        str(root / part[1:-1]) if re.fullmatch(r"\{[^{}]+\}", part) else part.replace("{{", "{")
        for part in command.split()
    ]
    joins = parts[0] in ("create", "update", "refit", "forget", "transform")
    return [*parts, *(["--scheduler", address] if joins and "--scheduler" not in parts else [])]


def hashes(folder):
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line_with_the_remedy_and_changes_nothing(ground, address, capsys, case):
    command, value, remedy = CASES[case]
    before = hashes(ground)
    capsys.readouterr()
    code = exit_code_of(*arguments_of(command, ground, address))
    printed = capsys.readouterr()
    assert code == 2, printed
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    assert value in printed.err
    assert re.search(remedy, printed.err), printed.err
    assert "hushhush" not in printed.err
    # nothing of the stores, the shards or any output
    assert hashes(ground) == before


def test_bad_shards_left_out_are_told_of_and_only_in_the_log(ground, address, capsys, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(ground / "store", store)
    before, state = hashes(store), MomentStore.open(str(store)).load()
    bad = [ground / name for name in ("latin.txt", "noise.parquet", "cut.jsonl.gz")]
    code = exit_code_of("update", store, *bad, "--skip-bad-shards", "--scheduler", address)
    printed = capsys.readouterr()
    assert code == 3
    assert printed.err.count("\n") == len(bad)
    for line, path in zip(sorted(printed.err.splitlines()), sorted(map(str, bad)), strict=True):
        assert line.startswith(f"left out {path}: ")
    after = hashes(store)
    changed = {path for path in after if before.get(path) != after[path]}
    assert before.keys() <= after.keys()
    assert {Path(path).relative_to(store).parts[0] for path in changed} == {
        "commits",
        "reached.json",
    }
    assert len(changed) == 2
    opened = MomentStore.open(str(store))
    assert sorted(url for url, _ in opened.commit.skipped) == sorted(map(str, bad))
    assert opened.load() == state


def test_a_shard_given_twice_is_counted_once(ground, address, capsys, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(ground / "store", store)
    shard = ground / "whole.parquet"
    again = (shard, shard, f"{ground}/whole.*")
    assert exit_code_of("update", store, *again, "--json", "--scheduler", address) == 0
    assert json.loads(capsys.readouterr().out)["counted"] == 1
    before = hashes(store)
    assert exit_code_of("update", store, *again, "--scheduler", address) == 0
    assert hashes(store) == before
    assert MomentStore.open(str(store)).verify() == []
