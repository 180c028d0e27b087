"""What models write of records and answer stays what it was, to its columns, types and metadata."""

import io
import json

import pyarrow.parquet as pq
import pytest
from frozen import ARCHIVES, expected, files_in, plain, put
from written_outputs import ASKED, CASES, RECORDED, answers_of, told_of

from streaming_moments.models.doors import ABSENT
from streaming_moments.models.registry import MODELS
from streaming_moments.pipelines.service.answering import ANSWERS
from streaming_moments.storage.proportions import frame_of

STORES = [path.stem for path in sorted(ARCHIVES.glob("*.json"))]
HELD = json.loads(RECORDED.read_text())

DOCUMENTS = ["id", "source", "row", "length", "unknown", "foreign", "topic", "label", "proportions"]
COLUMNS = {
    "views": ["source", "row", "length", "topic", "proportions"],
    "gaussian_mixture": ["source", "row", "topic", "log_likelihood", "proportions"],
    "factors": ["source", "row", "factors"],
    "hmm": [
        "sequence",
        "name",
        "from",
        "first",
        "length",
        "log_likelihood",
        "states",
        "probabilities",
    ],
    "latent_tree": [
        "c0",
        "c1",
        "c2",
        "c3",
        "_document",
        "_missing",
        "_probabilities",
        "_log_probability",
        "_chow_liu_log_probability",
    ],
    "blockmodel": ["node", "edges", "community", "memberships", "error"],
}


def alike(old, new, where=""):
    """Refuse another value; floats may differ by rounding, as processors do."""
    if isinstance(old, dict):
        assert list(old) == list(new), where
        for key, value in old.items():
            alike(value, new[key], f"{where}/{key}")
    elif isinstance(old, list):
        assert len(old) == len(new), where
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            alike(one, other, f"{where}/{place}")
    elif isinstance(old, float) and isinstance(new, float):
        assert new == pytest.approx(old, rel=1e-7, abs=1e-9), where
    else:
        assert (type(old), old) == (type(new), new), where


@pytest.mark.parametrize("case", CASES)
def test_files_and_what_is_said_of_them_are_as_they_were(case, embedded_run):
    alike(HELD["files"][case], told_of(case, embedded_run))


@pytest.mark.parametrize("case", ASKED)
def test_answers_of_the_service_are_as_they_were(case, embedded_run):
    alike(HELD["answers"][case], answers_of(case, embedded_run))


def test_an_answer_on_a_sequence_in_pieces_is_as_it_was(embedded_run):
    alike(HELD["answers in pieces"]["hmm"], answers_of("hmm", embedded_run, piece=8))


def test_every_model_has_a_case():
    models = {
        expected(name)["models"][called]["model"]
        for name, called, *_ in CASES.values()
        if name != "passages"
    }
    asked = {expected(name)["models"][called]["model"] for name, called, _ in ASKED.values()}
    assert models >= {*MODELS} - {*ABSENT["transform"]}
    assert asked >= {*ANSWERS} - {"independent"}, "which answers as poisson does"


@pytest.mark.parametrize("name", [name for name in STORES if "outputs" in expected(name)])
def test_columns_are_those_of_0_2_0(name):
    told, files = expected(name), files_in(name)
    for called, [path] in told["outputs"].items():
        schema = pq.read_schema(io.BytesIO(files[path]))
        columns = [[one.name, str(one.type), one.nullable] for one in schema]
        for case in [case for case, how in CASES.items() if how[:3] == (name, called, {})]:
            assert HELD["files"][case]["files"][0]["columns"] == columns
        kind = told["models"][called]["model"]
        assert [one for one, *_ in columns] == COLUMNS.get(kind, DOCUMENTS)


def test_files_of_0_2_0_are_read_as_frames():
    for name in ("counts_1", "counts_ids", "neighbours"):
        files = files_in(name)
        for called, [path] in expected(name)["outputs"].items():
            frame = frame_of([put(name, path, files[path])])
            assert list(frame.columns) == [*DOCUMENTS[1:-1], "share_0", "share_1"], called
            shares = pq.read_table(io.BytesIO(files[path]))["proportions"].to_pylist()
            assert frame[["share_0", "share_1"]].to_numpy().tolist() == plain(shares)
