"""What `create` without `--kind` takes shards for, and that it refuses those of several kinds."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.command_line.every_command import cli
from streaming_moments.pipelines.jobs.create import CountingOptions
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.kinds.recognise import recognised
from streaming_moments.storage.listing import list_shards

TEXT = "the sea and a ship in a storm"
TABLES = {
    "text": ({"id": [1, 2], "text": [TEXT, "law"]}, "--kind counts"),
    "short": ({"id": ["a", "b"], "text": ["sea", "law"]}, "--kind counts"),
    "text and vector": ({"text": [TEXT], "vector": [[0.5, 1.0]]}, "--kind counts"),
    "body": ({"id": ["a", "b"], "body": [TEXT, TEXT]}, "--kind counts --text-column body"),
    "vector": ({"vector": [[0.5, 1.0], [0.1, 2.0]]}, "--kind vectors"),
    "embedding": ({"id": [7], "embedding": [[0.5, 1.0]]}, "--kind vectors --columns embedding"),
    "numbers": ({"a": [0.5, 1.5], "b": [3, 4]}, "--kind vectors --columns a,b"),
    "edges": ({"source": [1, 2], "target": [2, 3], "weight": [0.1, 1.0]}, "--kind edges"),
    "names": ({"from": ["a", "b"], "to": ["b", "c"]}, "--kind edges --columns from,to"),
    "features": ({"features": [["a", "b"], ["b"]]}, "--kind sets"),
    "long": (
        {"sequence": ["a", "a"], "time": [1, 2], "symbol": ["x", "y"]},
        "--kind sequences --columns sequence,time,symbol",
    ),
}
SEVERAL = {
    "lists": ({"tags": [["a", "b"], ["b"]]}, ["--kind sets", "--kind sequences"]),
    "ids": ({"words": [[1, 2], [2]]}, ["--ids-column words", "--kind sets", "--kind sequences"]),
    "bits": ({"a": [0, 1], "b": [1, 0]}, ["--kind vectors", "--kind sets"]),
    "words": ({"a": ["x"], "b": ["y"], "c": ["z"]}, ["--categories a,b,c", "--kind views"]),
    "whole": ({"a": [7, 8], "b": [9, 2]}, ["--kind vectors", "--kind edges"]),
}


def found(path, given=frozenset(), shape=KindOptions(), counting=CountingOptions()):
    return recognised(list_shards([str(path)]), shape, counting, given)


def written(folder, columns):
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("name", TABLES)
def test_columns_say_what_shards_hold(name, tmp_path):
    columns, options = TABLES[name]
    one = found(written(tmp_path, columns))
    assert one.options == options
    assert one.shape.kind == options.split()[1]
    lines = "".join(
        json.dumps(dict(zip(columns, row, strict=True))) + "\n"
        for row in zip(*columns.values(), strict=True)
    )
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    assert found(tmp_path / "b.jsonl.gz") == one


@pytest.mark.parametrize("name", SEVERAL)
def test_shards_of_several_kinds_are_refused_with_the_options_that_decide(name, tmp_path):
    columns, options = SEVERAL[name]
    path = written(tmp_path, columns)
    with pytest.raises(InvalidInput, match="can be read in several ways: give `--kind") as refused:
        found(path)
    assert all(one in str(refused.value) for one in options)
    assert str(refused.value).count("`--kind") == len(options)


def test_csv_and_formats_without_columns_are_recognised(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2.5\n,3\n")
    assert found(tmp_path / "a.csv").options == "--kind vectors --columns x,y"
    (tmp_path / "b.tsv").write_text(f"id\tbody\n1\t{TEXT}\n")
    assert found(tmp_path / "b.tsv").counting.text_column == "body"
    (tmp_path / "c.txt").write_text("sea ship\n")
    assert found(tmp_path / "c.txt").options == "--kind counts"
    np.save(tmp_path / "d.npy", np.zeros((3, 2)))
    assert found(tmp_path / "d.npy").options == "--kind vectors"
    # the readers of the kind say what is wrong with it
    (tmp_path / "e.parquet").write_bytes(b"PAR1 no more")
    assert found(tmp_path / "e.parquet").options == "--kind counts"


TITLES = ("deep belief networks", "hidden markov models for speech", "a court and the law")


def warned(path):
    """The warning of shards, or why they are refused."""
    try:
        return found(path).warning
    except InvalidInput as refused:
        return str(refused)


@pytest.mark.parametrize(
    ("name", "content", "value"),
    [
        ("one.csv", "\n".join(TITLES), "deep belief networks"),
        (
            "three.tsv",
            "\n".join(f"{one}\ttrain\t{at % 2}" for at, one in enumerate(TITLES)),
            "train",
        ),
        ("numbers.csv", "0.5,1.25\n0.1,2.0\n", "0.5"),
        ("long.csv", f"{'a' * 90}\n{'b' * 90}\n", f"{'a' * 60}…"),
    ],
)
def test_a_first_line_that_looks_like_a_record_is_warned_of(tmp_path, name, content, value):
    (tmp_path / name).write_text(content)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        warning = warned(path)
        told = "seems to have no header line: its first line would name the columns, but "
        assert f"{told}{value!r} looks like a value. Add a line of names" in warning
        assert warning.endswith("--format text")


@pytest.mark.parametrize(
    "content",
    [
        "title\n" + "\n".join(TITLES),
        "the title of the paper,text\nsea,ship\n",  # a usual name
        "label\ttitle\n" + "\n".join(f"{at}\t{one}" for at, one in enumerate(TITLES)),
        "0\t1\n1\t1\n0\t0\n",  # as pandas numbers columns
        "a,b\n1,2\na,b\n3,4\n",  # files with a header, one after another
    ],
)
def test_a_header_line_is_no_record(tmp_path, content):
    path = tmp_path / ("a.tsv" if "\t" in content else "a.csv")
    path.write_text(content)
    assert "no header line" not in warned(path)


def test_options_are_quoted_and_the_warning_is_printed(tmp_path):
    (tmp_path / "a b.tsv").write_text("\n".join(["the sea and a ship\ttrain\t1"] * 40))
    store = tmp_path / "my store"
    shards = str(tmp_path / "a b.tsv")
    ran = CliRunner().invoke(cli, ["create", str(store), shards, "--max-document-fraction", "1"])
    assert ran.exit_code == 0, ran.output
    assert ran.stderr.startswith(f"warning: {shards} seems to have no header line: ")
    assert "'the sea and a ship' looks like a value" in ran.stderr
    assert "(`--kind counts --text-column 'the sea and a ship'`)" in ran.stderr
    assert f"Next: streaming-moments update '{store}' SHARDS..." in ran.stdout
    path = written(tmp_path, {"my tags": [["a", "b"], ["b"]]})
    with pytest.raises(InvalidInput, match="--columns 'my tags'` for"):
        found(path)


def test_options_that_one_kind_takes_decide(tmp_path):
    path = written(tmp_path, SEVERAL["lists"][0])
    assert found(path, {"symbols"}).options == "--kind sequences --columns tags"
    assert found(path, {"ids_column"}).options == "--kind counts"
    assert found(path, {"text_column"}).options == "--kind counts"
    named = KindOptions(columns="tags")
    with pytest.raises(InvalidInput, match="give `--kind sequences` for .*, or `--kind sets` for"):
        found(path, {"columns"}, named)
    (tmp_path / "a.txt").write_text("sea ship\n")
    with pytest.raises(InvalidInput, match="or `--kind views` for views"):
        found(tmp_path / "a.txt", {"columns"}, named)
    assert found(path, {"columns", "directed"}, named).shape == KindOptions("edges", "tags")
    # that no kind takes all of them is said later, of the default
    assert found(path, {"directed", "squares"}).options == "--kind counts"


def test_create_prints_what_it_takes_shards_for(tmp_path):
    path = written(tmp_path, {"x": [*map(float, range(40))], "y": [1.5, 2.5] * 20})
    ran = CliRunner().invoke(cli, ["create", str(tmp_path / "store"), str(path)])
    assert ran.exit_code == 0, ran.output
    assert "SHARDS are read as rows of numbers in columns x,y" in ran.stderr
    assert "(`--kind vectors --columns x,y`)" in ran.stderr
    assert "of kind vectors" in ran.stdout
    path = written(tmp_path, SEVERAL["bits"][0])
    ran = CliRunner().invoke(cli, ["create", str(tmp_path / "other"), str(path)])
    assert isinstance(ran.exception, InvalidInput)
    assert not (tmp_path / "other").exists()
