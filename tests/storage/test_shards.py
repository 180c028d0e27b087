"""Formats, listing and fingerprints of shards."""

import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from s3_server import S3Server

from streaming_moments.errors import BoundExceeded, InvalidInput, ShardError
from streaming_moments.storage.files.patterns import names_among
from streaming_moments.storage.formats import FORMATS
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard, ShardFormat, files_of, fingerprint


def write(path: Path, content: bytes = b"law and sea\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def urls(shards: list[Shard]) -> list[str]:
    return [shard.url for shard in shards]


@pytest.fixture
def memory() -> Iterator[str]:
    folder = f"/{uuid.uuid4().hex}"
    yield f"memory:/{folder}"
    fs = fsspec.filesystem("memory")
    if fs.exists(folder):
        fs.rm(folder, recursive=True)


@pytest.mark.parametrize("compression", ["", ".gz", ".zst", ".bz2", ".GZ"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.parquet", "parquet"),
        ("a.PQ", "parquet"),
        ("a.b.txt", "text"),
        ("a.jsonl", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.ldac", "lda-c"),
        ("a.lda-c", "lda-c"),
        ("a.dat", "lda-c"),
    ],
)
def test_the_kind_follows_from_the_suffix(name: str, kind: str, compression: str) -> None:
    assert ShardFormat().kind_of(f"s3://corpus/{name}{compression}") == kind


def test_the_query_of_an_http_url_is_no_suffix() -> None:
    assert ShardFormat().kind_of("https://host/a.jsonl.gz?as=b.txt") == "jsonl"


@pytest.mark.parametrize("url", ["/corpus/a.orc", "/corpus/txt", "/corpus/a.gz", "/a.txt/b"])
def test_an_unknown_suffix_names_the_option(url: str) -> None:
    with pytest.raises(ShardError, match=f"{', '.join(FORMATS)} to `create --format`"):
        ShardFormat().kind_of(url)


def test_a_kind_that_is_given_overrules_the_suffix() -> None:
    assert ShardFormat("text").kind_of("/corpus/a.log") == "text"
    assert ShardFormat("directory").kind_of("/corpus/") == "directory"
    with pytest.raises(ShardError, match="is a folder, but the format is text"):
        ShardFormat("text").kind_of("/corpus/")
    with pytest.raises(ShardError, match="is a file, but the format is directory"):
        ShardFormat("directory").kind_of("/corpus/a.txt")


def test_ids_are_in_lda_c_and_in_parquet_and_json_lines_with_a_column_of_ids() -> None:
    form = ShardFormat(ids_column="ids", counts_column="counts")
    assert form.holds("/a.parquet") == "ids"
    assert form.holds("/a.jsonl") == "ids"
    assert form.holds("/a.dat") == "ids"
    assert form.holds("/a.txt") == "texts"
    assert ShardFormat().holds("/a.parquet") == "texts"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "orc"}, "no format 'orc'; choose one of parquet, text"),
        (
            {"kind": "csv", "ids_column": "ids"},
            "token ids needs parquet or jsonl, but the format is csv",
        ),
        ({"counts_column": "counts"}, "counts column 'counts' needs an ids column"),
    ],
)
def test_bad_formats(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ShardFormat(**arguments)


def test_a_format_survives_json() -> None:
    form = ShardFormat("parquet", "body", "ids", "counts")
    assert ShardFormat.from_json(json.loads(json.dumps(form.to_json()))) == form
    with pytest.raises(InvalidInput, match="has the fields"):
        ShardFormat.from_json({"kind": "text"})


def test_every_spelling_of_a_local_file_is_one_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "sub" / "x.txt")
    monkeypatch.chdir(tmp_path)
    spellings = [
        "sub/x.txt",
        "./sub/x.txt",
        "sub/../sub//x.txt",
        str(path),
        f"file://{path}",
        f"local://{path}",
        "sub/*.txt",
        "**/x.txt",
    ]
    assert list_shards(spellings) == [Shard(str(path), 12)]
    for spelling in spellings:
        assert list_shards([spelling]) == [Shard(str(path), 12)]


def test_every_spelling_of_a_memory_file_is_one_shard(memory: str) -> None:
    fsspec.filesystem("memory").pipe(f"{memory}/x.txt", b"sea")
    bare = memory.removeprefix("memory://")
    shards = list_shards([f"memory:///{bare}/x.txt", f"memory://{bare}/x.txt", f"{memory}/*"])
    assert shards == [Shard(f"memory:///{bare}/x.txt", 3)]


def test_patterns_are_sorted_and_leave_hidden_files_out(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", ".c.txt", "sub/d.txt"):
        write(tmp_path / name)
    found = list_shards([f"{tmp_path}/b*", f"{tmp_path}/*.txt"])
    assert urls(found) == [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"]
    assert urls(list_shards([f"{tmp_path}/.*.txt"])) == [f"{tmp_path}/.c.txt"]
    assert len(list_shards([f"{tmp_path}/**"])) == 3


def test_a_name_with_pattern_signs_is_found_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "a[1].txt")
    assert urls(list_shards([str(path)])) == [str(path)]


@pytest.fixture(params=["local", "memory", "s3"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path, memory: str) -> Iterator[tuple]:
    """URL of a folder, and storage options."""
    if request.param != "s3":
        yield (str(tmp_path) if request.param == "local" else memory), None
        return
    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "k", "secret": "very-secret", "endpoint_url": f"http://{host}:{port}"}
    bucket = uuid.uuid4().hex  # all servers of a process have the same buckets
    fsspec.filesystem("s3", **options).mkdir(bucket)
    yield f"s3://{bucket}/g", options
    server.stop()


@pytest.mark.parametrize("name", ["a[1].txt", "a?.txt", "a*.txt", "[a]1.txt"])
def test_a_name_comes_before_what_it_matches_as_a_pattern(
    anywhere: tuple[str, dict[str, str] | None], name: str
) -> None:
    folder, options = anywhere
    fs, path = fsspec.url_to_fs(folder, **(options or {}))
    for other in (name, "a1.txt"):
        fs.pipe(f"{path}/{other}", b"law")
    told: list[str] = []
    [shard] = list_shards([f"{folder}/{name}"], options, tell=told.append)
    assert shard.url.endswith(f"/{name}")
    assert len(told) == 1
    assert f"{name} is used as a name; as a pattern it would also match 1 others" in told[0]
    assert "a1.txt" in told[0]
    both = list_shards([f"{folder}/a1.txt", f"{folder}/{name}"], options)
    assert len(both) == 2
    assert [state.size for state in files_of(shard, options)] == [3]
    fs.rm_file(f"{path}/{name}")
    [matched] = list_shards([f"{folder}/{name}"], options, tell=told.append)
    assert matched.url.endswith("/a1.txt")
    assert len(told) == 1
    with pytest.raises(ShardError, match="does not exist"):
        list_shards([f"{folder}/{name}"], options, counted=lambda url: url == shard.url)


def test_a_folder_with_pattern_signs_is_that_folder(tmp_path: Path) -> None:
    for name in ("t[1]/a.txt", "t1/b.txt"):
        write(tmp_path / name)
    assert urls(list_shards([f"{tmp_path}/t[1]"])) == [f"{tmp_path}/t[1]/"]
    assert urls(list_shards([f"{tmp_path}/t[1]/*.txt"])) == [f"{tmp_path}/t[1]/a.txt"]


@pytest.mark.parametrize("pattern", ["x.txt/*", "[x]" * 90, "a\0*"])
def test_a_pattern_that_no_name_can_be(tmp_path: Path, pattern: str) -> None:
    write(tmp_path / "x.txt")
    told: list[str] = []
    assert (
        list_shards([f"{tmp_path}/{pattern}"], missing=lambda error: told.append(str(error))) == []
    )
    assert [line.endswith("matches nothing; check the pattern") for line in told] == [True]
    with pytest.raises(ShardError, match="is not a valid pattern"):
        list_shards([f"{tmp_path}/x**t"])


def test_a_name_that_is_not_utf_8_is_a_bad_shard_among_good_ones(tmp_path: Path) -> None:
    good = write(tmp_path / "a.txt")
    os.link(good, os.fsencode(tmp_path) + b"/caf\xe9.txt")
    write(tmp_path / "caf\\xe9.txt")
    for text in (str(tmp_path / "*.txt"), str(tmp_path)):
        listed = list_shards([text], kind="text")
        assert urls(listed) == [str(good), *[f"{tmp_path}/caf\\xe9.txt"] * 2]
        for shard in listed:
            bad = not shard.source.isprintable()
            for look in (fingerprint, files_of):
                if bad:
                    with pytest.raises(ShardError, match="name that is not UTF-8; rename it"):
                        look(shard)
                else:
                    look(shard)
        assert sum(not shard.source.isprintable() for shard in listed) == 1
    [named] = list_shards([os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")])
    assert named.url == f"{tmp_path}/caf\\xe9.txt"


def test_a_folder_of_texts_may_have_names_that_are_not_utf_8(tmp_path: Path) -> None:
    write(tmp_path / "t" / "a.txt")
    os.link(tmp_path / "t" / "a.txt", os.fsencode(tmp_path) + b"/t/caf\xe9.txt")
    [shard] = list_shards([f"{tmp_path}/t"])
    assert shard == Shard(f"{tmp_path}/t/", 24)
    assert fingerprint(shard).startswith("sha256:")


@pytest.mark.parametrize("url", ["http://me:hushhush@host/a.txt", "s3://hushhush@bucket/*"])
def test_users_in_urls_are_refused_before_any_is_listed(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput, match="give credentials in the storage options") as caught:
        list_shards([f"{tmp_path}/absent.txt", url])
    assert "hushhush" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_folder_of_shards_stands_for_them(tmp_path: Path, slash: str) -> None:
    for name in ("p/a.parquet", "p/q/b.jsonl.gz", "p/readme", "p/.hidden/c.parquet"):
        write(tmp_path / name)
    found = list_shards([f"{tmp_path}/p{slash}"])
    assert urls(found) == [f"{tmp_path}/p/a.parquet", f"{tmp_path}/p/q/b.jsonl.gz"]
    write(tmp_path / "p" / "readme.txt")
    with pytest.raises(ShardError, match=r"2 shard files and 1 text files, such as .*readme"):
        list_shards([f"{tmp_path}/p{slash}"])


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_folder_of_texts_is_one_shard(tmp_path: Path, slash: str) -> None:
    for name in ("t/a.txt", "t/sub/b", "t/.DS_Store"):
        write(tmp_path / name, b"12345")
    assert list_shards([f"{tmp_path}/t{slash}"]) == [Shard(f"{tmp_path}/t/", 10)]
    assert list_shards([f"{tmp_path}/*"]) == [Shard(f"{tmp_path}/t/", 10)]


def test_the_kind_decides_what_a_folder_stands_for(tmp_path: Path) -> None:
    for name in ("a.dat", "b.log"):
        write(tmp_path / name)
    folder = str(tmp_path)
    assert urls(list_shards([folder])) == [f"{folder}/a.dat"]
    assert urls(list_shards([folder], kind="directory")) == [f"{folder}/"]
    assert urls(list_shards([folder], kind="text")) == [f"{folder}/a.dat", f"{folder}/b.log"]
    with pytest.raises(InvalidInput, match="no format 'orc'"):
        list_shards([folder], kind="orc")


def test_links_are_followed_to_files_and_refused_to_folders(tmp_path: Path) -> None:
    target = write(tmp_path / "real" / "x.txt", b"123")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "link.txt").symlink_to(target)
    assert list_shards([f"{tmp_path}/t"]) == [Shard(f"{tmp_path}/t/", 3)]
    assert list_shards([f"{tmp_path}/t/*.txt"]) == [Shard(f"{tmp_path}/t/link.txt", 3)]
    (tmp_path / "t" / "more").symlink_to(target.parent)
    with pytest.raises(
        ShardError, match="has a link to a folder, more; replace the link by the folder"
    ):
        list_shards([f"{tmp_path}/t"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.txt", "does not exist; check the path"),
        ("absent/", "does not exist; check the path"),
        ("*.parquet", "matches nothing; check the pattern"),
        ("empty", "holds no files; check the path"),
        ("pipe", "is neither a file nor a folder"),
    ],
)
def test_a_url_that_names_nothing(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ShardError, match=message) as caught:
        list_shards([f"{tmp_path}/{name}"])
    assert caught.value.url.rstrip("/") == f"{tmp_path}/{name}".rstrip("/")


@pytest.mark.parametrize("pattern", ["*/*.jsonl", "", "sub/*", "**"])
def test_more_shards_than_are_compared_at_once_are_refused(tmp_path: Path, pattern: str) -> None:
    for number in range(4):
        write(tmp_path / "sub" / f"{number}.jsonl")
    assert len(list_shards([f"{tmp_path}/{pattern}"], most=4)) == 4
    with pytest.raises(BoundExceeded) as caught:
        list_shards([f"{tmp_path}/{pattern}"], most=3)
    assert str(caught.value).startswith("more than 3 shards are named")
    assert f"{tmp_path}/sub/, or join" in str(caught.value)
    with pytest.raises(BoundExceeded, match="in separate commands"):
        list_shards([f"{tmp_path}/sub/{number}.jsonl" for number in range(4)], most=3)


def test_all_problems_are_named_together(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt")
    with pytest.raises(InvalidInput) as caught:
        list_shards([f"{tmp_path}/a.txt", str(path), f"{tmp_path}/b*", "nowhere://c"])
    message = str(caught.value)
    assert message.startswith("there are 3 problems: ")
    assert f"{tmp_path}/a.txt: does not exist" in message
    assert f"{tmp_path}/b*: matches nothing" in message
    assert "nowhere://c: cannot be opened" in message
    assert "x.txt" not in message
    with pytest.raises(InvalidInput, match=r"^there are 1,200 problems: .*; and 1,195 more$"):
        list_shards([f"{tmp_path}/{number}.txt" for number in range(1200)])


def test_a_shard_within_another_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t" / "x.txt")
    with pytest.raises(ShardError, match=r"is within the shard .*/t/; give only one of the two"):
        list_shards([str(path), f"{tmp_path}/t"])


@pytest.mark.parametrize("wrong", [[], "a.txt"])
def test_no_list_of_urls(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="give a list of at least one"):
        list_shards(wrong)  # type: ignore[arg-type]


def test_chained_and_uninstalled_file_systems() -> None:
    with pytest.raises(
        ShardError, match="chains several file systems; give the URL of the file itself"
    ):
        list_shards(["simplecache::memory://a.txt"])
    with pytest.raises(ShardError, match="check the protocol and that its package is installed"):
        list_shards(["nowhere://a.txt"])


@pytest.mark.parametrize(
    ("protocol", "package", "extra"),
    [
        ("s3", "s3fs", "s3"),
        ("gs", "gcsfs", "gcs"),
        ("az", "adlfs", "azure"),
        ("abfs", "adlfs", "azure"),
    ],
)
def test_a_missing_client_is_named_with_its_extra(
    protocol: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"Install {package}")

    monkeypatch.setattr("fsspec.core.get_filesystem_class", missing)
    with pytest.raises(ShardError) as caught:
        list_shards([f"{protocol}://bucket/a.txt"])
    told = f"{protocol}:// needs {package}, which is not installed; run `pip install "
    assert f"{told}'streaming-moments[{extra}]'` (" in str(caught.value)


def test_fingerprints_are_of_the_content(tmp_path: Path, memory: str) -> None:
    content = bytes(range(256)) * 9000
    path = write(tmp_path / "x.txt", content)
    fsspec.filesystem("memory").pipe(f"{memory}/y.txt", content)
    expected = f"sha256:{hashlib.sha256(content).hexdigest()}"
    [here] = list_shards([str(path)])
    [there] = list_shards([f"{memory}/y.txt"])
    assert fingerprint(here) == fingerprint(there) == expected
    write(path, content[:-1])
    assert fingerprint(here) != expected


def test_the_fingerprint_of_a_folder_tells_names_and_contents(tmp_path: Path) -> None:
    def mark(*files: tuple[str, bytes]) -> str:
        folder = tmp_path / uuid.uuid4().hex
        for name, content in files:
            write(folder / name, content)
        [shard] = list_shards([f"{folder}/"])
        return fingerprint(shard)

    base = mark(("a", b"1"), ("b", b"2"))
    assert base.startswith("sha256:")
    assert mark(("b", b"2"), ("a", b"1"), (".hidden", b"3")) == base
    others = [mark(("a", b"1")), mark(("a", b"2"), ("b", b"1")), mark(("a", b"1"), ("c", b"2"))]
    assert base not in others


def test_a_vanished_shard_has_no_fingerprint(tmp_path: Path) -> None:
    with pytest.raises(ShardError, match="does not exist"):
        fingerprint(Shard(f"{tmp_path}/x.txt", 3))


def test_the_state_of_files_tells_a_rewrite_of_the_same_size(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", b"123")
    [shard] = list_shards([str(path)])
    before = files_of(shard)
    os.utime(path, ns=(1, 1))
    assert files_of(shard) != before


def test_a_local_file_has_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.txt", b"123")
    monkeypatch.chdir(tmp_path)
    spelled = ("x.txt", "./x.txt", f"file://{path}", f"file:{path}", f"/{path}", f"{tmp_path}//x*")
    for one in spelled:
        assert list_shards([one])[0].url == str(path)
        assert names_among(one, {str(path)}) == (str(path),)


def test_freshly_written_objects_of_s3_are_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = S3Server()
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {
            "key": "access-key",
            "secret": "very-secret",
            "endpoint_url": f"http://{host}:{port}",
        }
        fs = fsspec.filesystem("s3", **options)
        # a name that no other test uses, because buckets of all servers in a process are shared
        fs.mkdir("written")
        fs.pipe("s3://written/p/a.txt", b"law")
        [first] = list_shards(["s3://written/p/*.txt"], options)
        assert first.url == "s3://written/p/a.txt"
        assert first == list_shards(["s3a://written/p/a.txt"], options)[0]
        for spelled in ("s3://written//p/a.txt", "s3://written/p//a.txt", "s3://written//p/*.txt"):
            assert list_shards([spelled], options) == [first]
        # a key of its own is another shard
        fs.pipe("s3://written/p//a.txt", b"ship")
        assert list_shards(["s3://written/p//a.txt"], options)[0].url == "s3://written/p//a.txt"
        fs.rm("s3://written/p//a.txt")
        etag = hashlib.md5(b"law").hexdigest()
        assert fingerprint(first, options) == f"etag:{etag}"
        assert files_of(first, options)[0].etag == first.etag == etag
        fs.pipe("s3://written/p/b.txt", b"sea")
        fs.pipe("s3://written/p/a.txt", b"art")
        assert [s.size for s in list_shards(["s3://written/p/*.txt"], options)] == [3, 3]
        assert files_of(first, options)[0].etag != etag
        with pytest.raises(ShardError, match=r"matches nothing|does not exist") as caught:
            list_shards(["s3://written/none*"], options)
    finally:
        server.stop()
    for secret in options.values():
        assert secret not in str(caught.value)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    refused = {**options, "config_kwargs": {"connect_timeout": 1, "retries": {"max_attempts": 0}}}
    with pytest.raises(ShardError, match="cannot be read") as caught:
        list_shards(["s3://written/p/a.txt"], {**refused, "endpoint_url": "http://127.0.0.1:9"})
    assert "very-secret" not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)
