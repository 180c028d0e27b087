"""What models write of a few records, and what the service answers: `outputs.json` holds it.

`PYTHONPATH=.:tests/formats:tests/faults python tests/formats/written_outputs.py` records it again,
for a change that means to change it.
"""

import io
import json
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from campaigns import few_row_blocks
from frozen import files_in, place_of, plain, put, unpack

from streaming_moments import fit
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.outputs.memberships import write_memberships
from streaming_moments.pipelines.jobs.outputs.registry import OUTPUTS
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputOptions
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service.answering import Answering
from streaming_moments.storage.counting.symbols import sequences
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.lineages import store_for
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

RECORDED = Path(__file__).parent / "outputs.json"
RECORDS = 5
# of no file, or other each time
_FLEETING = ("state", "package")

WHO = {"id_column": "who"}
TEXTS = [
    {"who": "d0", "text": "wa wb wc wa"},
    {"who": "d1", "text": "steam boats sail far wa away"},
    {"who": None, "text": ""},
    {"who": "d3", "text": "wd we wf zz wd"},
]
ROWS = [[0.5, 1.0, -2.0], None, [3.0, 2.0, 1.0], [1.0], [float("nan"), 0.0, 0.0], [9.0, 9.0, 9.0]]


def jsonl(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def vectors(rows=ROWS):
    sink = io.BytesIO()
    names = [f"r{place}" if place % 2 == 0 else None for place in range(len(rows))]
    pq.write_table(pa.table({"vector": pa.array(rows, pa.list_(pa.float64())), "who": names}), sink)
    return sink.getvalue()


def first_of(name, number=RECORDS, skip=0):
    """The first records of the shard of an archive that comes later, and its suffix."""
    [path] = [one for one in files_in(name) if one.startswith("shards/later")]
    suffix, content = path.rpartition(".")[2], files_in(name)[path]
    if suffix == "parquet":
        sink = io.BytesIO()
        pq.write_table(pq.read_table(io.BytesIO(content)).slice(skip, number), sink)
        return suffix, sink.getvalue()
    header = suffix == "csv"
    lines = content.splitlines(keepends=True)
    return suffix, b"".join([*lines[:header], *lines[header + skip : header + skip + number]])


# By case: archive, model, options, and shards where they are not the records of its later shard.
CASES = {
    "topics": ("counts_3", "topics", {"labels": {1: "law & <sea>"}}, None),
    "topics of a mean": ("counts_3", "mean", {}, None),
    "topics, drawn": ("counts_3", "topics", {"method": "gibbs", "seed": 7}, None),
    "topics, named": (
        "counts_3",
        "topics",
        {**WHO, "top_documents": 2, "foreign_below": 0.5},
        {"a.jsonl": jsonl(TEXTS), "b.jsonl": jsonl(TEXTS[2:])},
    ),
    "topics, in passages": ("passages", "topics", {**WHO, "passages": True}, {}),
    "topics of long documents": ("passages", "topics", {**WHO, "top_documents": 1}, {}),
    "one topic a document": ("counts_2", "topics", {}, None),
    "poisson": ("counts_1", "poisson", {}, None),
    "independent": ("counts_1", "independent", {}, None),
    "topics of ids": ("counts_ids", "topics", {}, None),
    "communities": ("neighbours", "communities", {}, None),
    "tree": ("tables_4", "tree", {}, None),
    "tree, with gaps": (
        "tables_4",
        "tree",
        {},
        {
            "a.csv": b"c0,c1,c2,c3\nv0,,v1,other\n,,,\nv1,v2,v0,v0\n",
            "b.csv": b"c0,c1,c2,c3\n,v1,,\n",
        },
    ),
    "views": ("views", "views", {}, None),
    "views, one alone": (
        "views",
        "views",
        {"views": ("b",)},
        {"a.csv": b"a,b,c\na1,b0,c1\na2,none,c1\n", "b.csv": b"a,b,c\na1,b1,c1\n"},
    ),
    "views of sketches": ("views_sketched", "views", {}, None),
    "hmm": ("sequences", "hmm", {}, None),
    "hmm, each state by itself": ("sequences", "hmm", {"method": "posterior"}, None),
    "hmm in pieces": (
        "sequences",
        "hmm",
        {},
        {"a.txt": b"abcabcffeabcdabcddab\n\nab\n", "b.txt": b"zzz\nabc\n"},
    ),
    "hmm, named": ("sequences_named", "hmm", {}, None),
    "hmm of sketches": ("sequences_sketched", "hmm", {}, None),
    "components": ("vectors", "spherical", {}, None),
    "components by coordinate": ("vectors", "diag", {}, None),
    "components, named": (
        "vectors",
        "spherical",
        {**WHO, "top_documents": 2, "labels": {0: "a", 1: "b"}},
        {"a.parquet": vectors(), "b.parquet": vectors(ROWS[:1])},
    ),
    "no rows of numbers": ("vectors", "spherical", {}, {"a.parquet": vectors([None, [1.0]])}),
    "factors": ("vectors_fourth", "third", {}, None),
    "factors of the fourth": ("vectors_fourth", "fourth", {}, None),
    "factors, named": (
        "vectors_fourth",
        "third",
        WHO,
        {
            "a.jsonl": jsonl({**dict.fromkeys("xyzu", n - 0.5), "who": f"r{n}"} for n in range(3))
            + jsonl([{"x": 1.0, "y": None, "z": 0.0, "u": 0.0, "who": "none"}])
        },
    ),
    "memberships": ("edges", "blocks", {}, None),
    "memberships of sketches": ("edges_sketched", "blocks", {}, None),
}
# By case: archive, model, lines as the service seals them.
ASKED = {
    "poisson": ("counts_1", "poisson", jsonl(TEXTS)),
    "topics": (
        "counts_ids",
        "topics",
        jsonl(
            [
                {"ids": [0, 1, 3], "counts": [1, 1, 2]},
                {"ids": [0, 99], "counts": [1, 9]},
                {"ids": [], "counts": []},
            ]
        ),
    ),
    "communities": ("neighbours", "communities", jsonl([{"neighbours": [1, 2, 5, 99999]}])),
    "tree": (
        "tables_4",
        "tree",
        jsonl(
            [
                {"c0": "v0", "c1": None, "c2": "v1", "c3": "v0"},
                dict.fromkeys(("c0", "c1", "c2", "c3")),
            ]
        ),
    ),
    "views": (
        "views",
        "views",
        jsonl([{"a": "a5", "b": "b0", "c": "c1"}, {"a": "x", "b": "b1", "c": None}]),
    ),
    "hmm": ("sequences", "hmm", jsonl([{"text": "bbbbbfbbbb" * 3}, {"text": ""}, {"text": "f?a"}])),
    "components": ("vectors", "spherical", jsonl([{"vector": row} for row in (ROWS[0], ROWS[2])])),
    "factors": ("vectors_fourth", "third", jsonl([dict.fromkeys("xyzu", 0.25)])),
    "blockmodel": (
        "edges",
        "blocks",
        jsonl([{"source": "n17", "target": "none"}, {"source": "n3", "target": "n4"}]),
    ),
}


def opened(name, run):
    """The store of an archive, or one of documents that are cut into passages."""
    if name != "passages":
        unpack(name)
        return MomentStore.open(f"{place_of(name)}/store")
    memory = fsspec.filesystem("memory")
    if memory.exists(f"/frozen/{name}"):
        memory.rm(f"/frozen/{name}", recursive=True)
    texts = [f"w{one} w{other} w{one}{other}" for one in "abcd" for other in "abcd"]
    records = [
        {"who": f"d{number}", "text": " ".join(texts[number : number + 1 + number % 7])}
        for number in range(len(texts))
    ]
    listed = list_shards([put(name, "shards/later.jsonl", jsonl(records))])
    pilot = PilotOptions(min_documents=1, max_topics=2, max_document_fraction=1.0)
    policy = TokenPolicy(min_length=1, passage_words=6)
    store = create(f"{place_of(name)}/store", listed, ShardFormat(), policy, pilot, run)
    store = update(store, listed, run).store
    return store.save_model("topics", fit(store.load(), 2, 0.5, refine=0))


def told_of(case, run, folder="said"):
    """What a case writes: what is said of it, and its files."""
    with pieces_of(8 if "in pieces" in case else sequences.PIECE):
        return _told_of(case, run, folder)


@contextmanager
def pieces_of(symbols):
    """Cut sequences into pieces of so many symbols."""
    whole, sequences.PIECE = sequences.PIECE, symbols
    try:
        yield
    finally:
        sequences.PIECE = whole


def _told_of(case, run, folder):
    name, called, how, shards = CASES[case]
    store = opened(name, run)
    model, held = (
        store.load_any_model(called),
        store_for(store, called, store.load_any_model(called)),
    )
    root, output = place_of(name), f"{place_of(name)}/{folder}/{case}"
    if model.name not in OUTPUTS:
        files, said = (
            [write_memberships(model, held.foundation.nodes, OutputFolder(Folder.at(output)))],
            {},
        )
    else:
        if shards is None:
            suffix, _ = first_of(name)
            shards = {f"a.{suffix}": first_of(name)[1], f"b.{suffix}": first_of(name, 2, 7)[1]}
        urls = [put(name, f"said/{path}", content) for path, content in shards.items()]
        listed = list_shards(urls or [f"{root}/shards/later*"])
        made = OUTPUTS[model.name]
        options = OutputOptions(**{"method": next(iter(made.methods), ""), "name": called, **how})
        written = made.write(held, model, listed, output, run, options)
        files, said = (
            written.files,
            {"json": [*written.as_json().items()], "lines": written.lines("OUTPUT")},
        )
    return plain({**said, "files": [file_told(file) for file in files], "beside": beside(output)})


def beside(output):
    """What lies beside the files of a folder, but the note that names the store."""
    files = fsspec.filesystem("memory")
    found = files.find(output.removeprefix("memory:/"))
    return {
        one.rpartition("/")[2]: json.loads(files.cat_file(one))
        for one in found
        if one.endswith("_top_documents.json")
    }


def file_told(url):
    """Name, columns with their types, metadata and values of a file."""
    file = pq.ParquetFile(io.BytesIO(fsspec.filesystem("memory").cat_file(url)))
    schema, metadata = file.schema_arrow, {}
    for key, value in (schema.metadata or {}).items():
        metadata[key.decode()] = content = value.decode()
        if content.startswith("{"):
            metadata[key.decode()] = told = json.loads(content)
            for one in _FLEETING:
                told.pop(one, None)
    # the metadata of the file, where a summary is added at its end
    for key, value in (file.metadata.metadata or {}).items():
        if key.decode() not in metadata and key != b"ARROW:schema":
            metadata[key.decode()] = json.loads(value)
    return {
        "name": url.rpartition("/")[2],
        "columns": [[one.name, str(one.type), one.nullable] for one in schema],
        "metadata": metadata,
        "values": file.read().to_pydict(),
    }


def answers_of(case, run, piece=None):
    """What the service answers to lines of a case."""
    name, called, lines = ASKED[case]
    store = opened(name, run)
    model = store.load_any_model(called)
    answering = Answering.of(store_for(store, called, model), model)
    with pieces_of(piece or sequences.PIECE):
        read = [*answering.read(lines)]
    return plain(
        [{name: value for name, value in asdict(one).items() if value is not None} for one in read]
    )


def every(run):
    """All cases."""
    return {
        "files": {case: told_of(case, run) for case in CASES},
        "answers": {case: answers_of(case, run) for case in ASKED},
        "answers in pieces": {"hmm": answers_of("hmm", run, piece=8)},
    }


def recorded(told):
    """As JSON, a line for each case."""
    parts = {
        part: ",\n".join(f"{json.dumps(case)}: {json.dumps(one)}" for case, one in cases.items())
        for part, cases in told.items()
    }
    whole = ",\n".join(f"{json.dumps(part)}: {{\n{lines}\n}}" for part, lines in parts.items())
    return f"{{\n{whole}\n}}\n"


if __name__ == "__main__":
    with few_row_blocks(), connect() as cluster:
        RECORDED.write_text(recorded(every(Run(cluster))))
