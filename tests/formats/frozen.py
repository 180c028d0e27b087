"""Archives of stores and inboxes as version 0.2.0 wrote them, and what is asked of them.

An archive holds the files of `memory://frozen/NAME`, so that the names of its shards, which a
ledger keeps, are the same on every machine. What 0.2.0 read of it, and what it got by writing on,
lies beside it as JSON.
"""

import hashlib
import io
import json
import tarfile
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import MappingProxyType

import fsspec
import numpy as np

from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.outputs.memberships import write_memberships
from streaming_moments.pipelines.jobs.outputs.registry import OUTPUTS
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputOptions
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.operations.lineages import store_for
from streaming_moments.storage.store.store import MomentStore

ARCHIVES = Path(__file__).parent / "v0_2"


def place_of(name):
    """URL of the folder that an archive holds."""
    return f"memory://frozen/{name}"


def put(name, path, content):
    """Write a file beside a store, such as a shard; its URL."""
    url = f"{place_of(name)}/{path}"
    # to open a file for writing takes twice as long
    fsspec.filesystem("memory").pipe_file(url, content)
    return url


def content_of(name):
    """The files under a place, by their path in it, in the order in which they were written."""
    files, root = fsspec.filesystem("memory"), f"/frozen/{name}/"
    paths = sorted(files.find(root), key=files.modified)
    return {path.removeprefix(root): files.cat_file(path) for path in paths}


def pack(name):
    """Write the archive of a place."""
    with tarfile.open(ARCHIVES / f"{name}.tar.xz", "w:xz", preset=9) as archive:
        for path, content in content_of(name).items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@cache
def files_in(name):
    """Content of an archive, by path; read once, as many tests ask for each."""
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        return MappingProxyType({one.name: archive.extractfile(one).read() for one in archive})


def unpack(name):
    """Put the files of an archive at its place."""
    for path, content in files_in(name).items():
        put(name, path, content)


def unpack_into(folder, name):
    """Put the store of an archive into a local folder, and its shards at their place."""
    for path, content in files_in(name).items():
        if not path.startswith("store/"):
            put(name, path, content)
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def expected(name):
    """What 0.2.0 said of an archive."""
    return json.loads((ARCHIVES / f"{name}.json").read_text())


def expect(name, told):
    """Write down what this version says of an archive."""
    text = json.dumps(plain(told), indent=1, sort_keys=True)
    (ARCHIVES / f"{name}.json").write_text(f"{text}\n")


def plain(value):
    """As JSON gives it back."""
    return json.loads(json.dumps(value, default=str))


def digest(array):
    """Hash of an array's type, shape and bytes."""
    array = np.ascontiguousarray(array)
    told = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(told + array.tobytes()).hexdigest()


def sums_of(store):
    """Hashes of all arrays that a version holds, with its totals."""
    return {
        "arrays": {name: digest(array) for name, array in store.load().arrays().items()},
        "documents": store.commit.documents,
        "tokens": store.commit.tokens,
        "shards": store.commit.shards,
    }


def store_told(store):
    """What is read of a store: log, ledger, each version's sums, models."""
    log, form = store.log(), store.format
    told = {"versions": {}, "models": {}}
    for one in log:
        opened = MomentStore.open(store.url, one.version)
        told["versions"][str(one.version)] = sums_of(opened)
    for name in store.models:
        model = store.load_any_model(name)
        arrays, attributes = model.parts()
        told["models"][name] = {
            "model": model.name,
            "fitted on": store.models[name].version,
            "labels": {str(topic): text for topic, text in store.models[name].labels.items()},
            "arrays": {part: digest(array) for part, array in arrays.items()},
            "attributes": plain(attributes),
        }
    return {
        **told,
        "kind": store.kind,
        "format": [form.format, form.min_reader, form.min_writer],
        "version": store.version,
        "foundation": store.foundation.fingerprint,
        "tags": dict(store.commit.tags),
        "log": [[one.version, one.operation, one.message, one.time] for one in log],
        "ledger": [plain(asdict(one)) for one in store.ledger()],
    }


def shards_at(name, pattern):
    """Shards of an archive."""
    return list_shards([f"{place_of(name)}/shards/{pattern}"])


def written_on(name, store, run):
    """Count one more shard, forget one, sum up and go back; the sums after each step."""
    before, told = store.version, {}
    later = update(store, shards_at(name, "later*"), run).store
    told["update"] = sums_of(later)
    [first, *_] = sorted(one.url for one in later.ledger() if "later" not in one.url)
    known = list_shards([first.partition("#")[0]], None, store.form.kind)
    less = forget(later, known, run)
    told["forget"] = sums_of(less)
    told["compact"] = sums_of(compact(less, run, "all"))
    told["rollback"] = sums_of(rollback(less.latest(), before))
    return told


def read_by(name, store, model_name, run, output):
    """Files that a model of a store writes of the shards of its archive, or of its nodes."""
    model = store.load_any_model(model_name)
    held = store_for(store, model_name, model)
    if model.name not in OUTPUTS:
        folder = OutputFolder(Folder.at(output))
        return [write_memberships(model, held.foundation.nodes, folder)]
    made = OUTPUTS[model.name]
    options = OutputOptions(method=next(iter(made.methods), ""), name=model_name)
    shards = shards_at(name, "later*")
    return made.write(held, model, shards, output, run, options).files


def within(part, whole, where=""):
    """What of some JSON is missing in another or differs there; a later one may say more."""
    if isinstance(part, dict) and isinstance(whole, dict):
        for key, value in part.items():
            if key not in whole:
                yield f"{where}/{key} is missing"
            else:
                yield from within(value, whole[key], f"{where}/{key}")
    elif isinstance(part, list) and isinstance(whole, list) and len(part) == len(whole):
        for place, (one, other) in enumerate(zip(part, whole, strict=True)):
            yield from within(one, other, f"{where}/{place}")
    elif part != whole:
        yield f"{where} was {part!r}, is {whole!r}"
