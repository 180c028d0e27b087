"""Claim an output folder for one model: the first file in it is a note that names the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Model
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputJob
from streaming_moments.printing.remedies import Remedy, remedy
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.output_folders import (
    NOTE,
    OutputFolder,
    OutputNote,
    OutputOfAnother,
    WrittenBy,
    files_of_outputs,
    read_note,
)
from streaming_moments.storage.inbox.owners import Owner
from streaming_moments.storage.log.locks import held
from streaming_moments.storage.proportions import proportions_file
from streaming_moments.storage.store.store import MomentStore

_LOCK = ".replacing"
_EXPIRY = timedelta(hours=1)
_PATIENCE = timedelta(minutes=10)


def claim_output(job: OutputJob, content: Sequence[str] = ()) -> OutputFolder:
    """Claim the folder into which a job writes a file for each shard; errors as in `claimed`.

    `content` names the options of the job on which the content of the files depends. Raises
    InvalidInput if two shards would write the same file.
    """
    options, run = job.options, job.run
    if len({proportions_file(shard.url) for shard in job.shards}) < len(job.shards):
        raise InvalidInput("two shards would write the same file; transform them separately")
    told = {name: getattr(options, name) for name in content}
    by = written_by(job.store, job.model, options.name, told)
    return claimed(Folder.at(job.output, run.storage_options), by, options.replace, run.tell)


def written_by(
    store: MomentStore, model: Model, name: str, options: Mapping[str, Any] = MappingProxyType({})
) -> WrittenBy:
    """Make the note that names the model, store and options whose files a folder holds.

    Raises StoreError if the first commit of the store cannot be read.
    """
    owner, reference = Owner.at(store.url, store.folder.storage_options), store.models.get(name)
    version = None if reference is None else reference.version
    return WrittenBy(
        owner.url, owner.birth, name, model.name, version, _digest(model), dict(options)
    )


def claimed(
    folder: Folder, by: WrittenBy, replace: bool, tell: Callable[[Remedy | str], None]
) -> OutputFolder:
    """Reserve a folder for the files of one model, by a note in the folder that names the model.

    Raises OutputOfAnother, and changes nothing, if the folder holds files of another model or of
    other options. Raises StoreError if the folder cannot be read or written, its bucket is missing,
    or another run has been replacing its files for ten minutes.

    replace : delete files of another model first; otherwise they are an error
    tell : called with a warning if files in the folder do not name the model that wrote them
    """
    note = read_note(folder)
    if note is None:
        folder.require_bucket()
        there = files_of_outputs(folder)
        if there and replace:
            _replace(folder, by, replace)
        elif there:
            tell(
                remedy(
                    "warning: {there} files in {url} do not name the model that wrote them, and "
                    "are not deleted; to separate models, give another folder or "
                    "{transform.replace}",
                    there=len(there),
                    url=folder.url,
                )
            )
        return OutputFolder(folder, by)
    if not replace:
        _require_same(note, by, folder)
    if note.replacing or note.by.differs(by):
        _replace(folder, by, replace)
    return OutputFolder(folder, by)


def _require_same(note: OutputNote, by: WrittenBy, folder: Folder) -> None:
    if difference := note.by.differs(by):
        raise OutputOfAnother(
            f"the files in {folder.url} were written {difference}, but a folder holds outputs "
            "of one model only.",
            "Give another folder as {transform.output}, or {transform.replace} to delete "
            "those files first",
        )


def _replace(folder: Folder, by: WrittenBy, replace: bool) -> None:
    """Delete the files of another model; also finish the deletion that a killed run began."""
    with held(Folder.at(f"{folder.url}/{_LOCK}", folder.storage_options), _EXPIRY, _PATIENCE):
        note = read_note(folder)
        if note is not None and not replace:
            _require_same(note, by, folder)
        if note is None or note.replacing or note.by.differs(by):
            # replace the note first, so that a run of the other model stops writing
            folder.write(NOTE, OutputNote(by, replacing=True).sealed())
            folder.sync("")
            folder.delete(files_of_outputs(folder))
            folder.write(NOTE, OutputNote(by).sealed())
            folder.sync("")


def _digest(model: Model) -> str:
    """Return the SHA-256 of everything that a store would save of a model."""
    arrays, attributes = model.parts()
    digest = hashlib.sha256(json.dumps([model.name, dict(attributes)], sort_keys=True).encode())
    for name in sorted(arrays):
        # hash the array as float64, because a store would also save it in this type
        array = np.ascontiguousarray(arrays[name], dtype=np.float64)
        digest.update(f"{name} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()
