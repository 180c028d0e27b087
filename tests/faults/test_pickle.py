"""No pickle is ever read from a store or a shard: it could run anything."""

import ast
import io
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forgery import planted, resealed

from streaming_moments.errors import StreamingMomentsError
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.layout import model_folder, segment_folder
from streaming_moments.storage.log.manifests import FileRecord
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import append, create, model_of

ROOT = Path(__file__).parents[2]
PICKLERS = {"pickle", "cloudpickle", "joblib", "dill", "shelve", "marshal", "_pickle"}


class Trap:
    """Pickled, it makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def sprung(tmp_path):
    return tmp_path / "sprung"


@pytest.fixture
def store(tmp_path):
    made = append(create(tmp_path / "store"), {"a": 1}).save_model("m", model_of(0))
    assert made.verify() == []
    return made


def object_array(path):
    buffer = io.BytesIO()
    array = np.empty(4, dtype=object)
    array[:] = [Trap(path)] * 4
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def test_the_trap_springs_where_pickles_are_read(sprung):
    np.load(io.BytesIO(object_array(sprung)), allow_pickle=True)
    assert sprung.exists()


def test_a_basis_of_objects_is_refused(store, sprung):
    folder = Path(store.url) / "basis" / store.basis.fingerprint
    content = object_array(sprung)
    (folder / "Q.npy").write_bytes(content)
    record = FileRecord.of("Q.npy", content)
    files = {"Q.npy": [record.size, record.sha256]}
    resealed(folder / "basis.json", lambda described: {**described, "files": files})
    with pytest.raises(StreamingMomentsError, match=r"basis\.json is not a valid basis .*objects"):
        MomentStore.open(store.url)
    assert not sprung.exists()


def as_objects(described):
    described["data_type"] = "object"
    described["codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}]


def as_python_objects(described):
    described["data_type"] = {"name": "numpy.object", "configuration": {}}
    described["fill_value"] = None


def through_pickle(described):
    described["codecs"] = [{"name": "pickle", "configuration": {"protocol": 5}}]


def through_numcodecs(described):
    described["codecs"] = [{"name": "numcodecs.pickle", "configuration": {"protocol": 5}}]


def of_format_2(described):
    described.clear()
    described.update(
        zarr_format=2,
        shape=[4],
        chunks=[4],
        dtype="|O",
        compressor=None,
        fill_value=None,
        order="C",
        filters=[{"id": "pickle", "protocol": 5}],
    )


@pytest.mark.parametrize(
    "change", [as_objects, as_python_objects, through_pickle, through_numcodecs, of_format_2]
)
@pytest.mark.parametrize("part", ["segment", "model"])
def test_arrays_of_pickles_are_refused_though_their_hashes_fit(store, sprung, part, change):
    root = Path(store.url)
    if part == "segment":
        folder, array = segment_folder(store.commit.segments[0].id), "word_counts"
    else:
        folder, array = model_folder("m", store.models["m"].id), "weights"
    described = json.loads((root / folder / array / "zarr.json").read_bytes())
    change(described)
    planted(root, folder, f"{array}/zarr.json", json.dumps(described).encode())
    for chunk in sorted((root / folder / array).glob("c*")):
        content = pickle.dumps(Trap(sprung))
        planted(root, folder, f"{array}/{chunk.name}", content)
    opened = MomentStore.open(store.url)
    if part == "segment":
        with pytest.raises(StreamingMomentsError):
            opened.load()
        assert opened.verify()
    else:
        with pytest.raises(StreamingMomentsError):
            opened.load_model("m")
    assert not sprung.exists()


def test_files_of_pickles_instead_of_chunks_are_refused(store, sprung):
    folder = segment_folder(store.commit.segments[0].id)
    for name in ("word_counts/c.0", "shards.parquet", "length_histogram/c.0.0"):
        shutil.copytree(store.url, f"{store.url}-{name.split('/')[0]}")
        root = Path(f"{store.url}-{name.split('/')[0]}")
        [path] = root.glob(f"{folder}/{name}*")
        planted(root, folder, str(path.relative_to(root / folder)), object_array(sprung))
        opened = MomentStore.open(str(root))
        assert opened.verify()
        with pytest.raises(StreamingMomentsError):
            opened.ledger() if name == "shards.parquet" else opened.load()
    assert not sprung.exists()


@pytest.mark.parametrize("name", ["arrow.py_extension_type", "arrow.extension"])
def test_parquet_whose_types_are_pickles_runs_nothing(tmp_path, sprung, name):
    hints = {
        b"ARROW:extension:name": name.encode(),
        b"ARROW:extension:metadata": pickle.dumps(Trap(sprung)),
    }
    schema = pa.schema([pa.field("text", pa.string(), metadata=hints)])
    table = pa.Table.from_arrays([pa.array(["law sea", "sea"])], schema=schema)
    pq.write_table(table, tmp_path / "shard.parquet")
    policy = TokenPolicy()
    vocabulary = Vocabulary(("law", "sea"), 2, policy.fingerprint)
    [shard] = list_shards([str(tmp_path / "shard.parquet")])
    try:
        read = list(read_shard(shard, ShardFormat(), vocabulary, policy))
    except StreamingMomentsError:
        read = []
    assert not sprung.exists()
    assert all(part.batch.to_csr().toarray().tolist() == [[1, 1], [0, 1]] for part in read)


def test_a_shard_that_is_a_pickle_is_refused(tmp_path, sprung):
    policy = TokenPolicy()
    vocabulary = Vocabulary(("law", "sea"), 2, policy.fingerprint)
    for name in ("a.parquet", "a.jsonl", "a.txt", "a.jsonl.gz"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap(sprung)) + b"\xff")
        [shard] = list_shards([str(tmp_path / name)])
        with pytest.raises(StreamingMomentsError):
            list(read_shard(shard, ShardFormat(), vocabulary, policy))
    assert not sprung.exists()


def faults_in(source):
    """Lines that import a pickler, or allow NumPy or pandas to unpickle."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            # `builder.load` is an instruction of LLVM, and reads a register
            loads = called.endswith(".load") and called != "builder.load"
            given = {word.arg: word.value for word in node.keywords}
            refused = getattr(given.get("allow_pickle"), "value", None) is False
            if ("allow_pickle" in given or loads) and not refused:
                found.append(node.lineno)
        parts = {part for name in names for part in name.split(".")}
        if parts & (PICKLERS | {"read_pickle"}):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "import cloudpickle as c",
        "x = np.load(f)",
        "x = np.load(f, allow_pickle=True)",
        "x = np.load(f, allow_pickle=may)",
        "x = pandas.read_pickle(f)",
        "x = distributed.protocol.pickle.loads(f)",
    ],
)
def test_the_audit_finds_picklers(source):
    assert faults_in(source) == [1]


def test_the_audit_lets_safe_loads_pass():
    assert faults_in("x = np.load(f, allow_pickle=False)\ny = builder.load(place, align=8)") == []


def test_neither_storage_nor_the_mathematics_can_unpickle():
    files = [
        path
        for folder in ("storage", "streaming_moments")
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    assert len(files) > 50
    found = {path.name: lines for path in files if (lines := faults_in(path.read_text()))}
    # the only writer of .npy asks for no pickle either
    assert found == {}
