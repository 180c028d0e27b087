"""Output folders: files beside a store, all written by one model with the same options."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from streaming_moments.errors import StoreError, printable
from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.local_files import PARTIAL
from streaming_moments.storage.files.sealed import seal, unseal

# file that names the model of an output folder; hidden, so that `FOLDER/*` and readers skip it
NOTE = ".provenance.json"
TOP_DOCUMENTS = "_top_documents.json"
MEMBERSHIPS = "memberships.parquet"
_OF_SHARD = re.compile(r".+-[0-9a-f]{8}\.parquet")
# Names of temporary files: those that `local_files` writes, and those that earlier versions wrote.
_UNFINISHED = re.compile(rf"\.(.+)\.[0-9a-f]{{32}}{re.escape(PARTIAL)}|(.+)\.[0-9a-f]{{32}}\.tmp")


class OutputOfAnother(StoreError):
    """The files in an output folder come from another model or other options than this run's."""


@dataclass(frozen=True)
class WrittenBy:
    """The model and the options that wrote all files of an output folder.

    store : URL of the store; only for people, as a store may move
    model : name of the model, for people; empty if it is not stored
    version : version of the store to which the model was fitted, for people
    birth : transaction of the first commit of that store
    kind : name of the model's class in the registry
    digest : SHA-256 of the parameters of the model
    options : options of the run that change the content of a file, as JSON
    """

    store: str
    birth: str
    model: str
    kind: str
    version: int | None
    digest: str
    options: Mapping[str, Any]

    @property
    def described(self) -> str:
        """Description of the model for people."""
        name = f"model {self.model}" if self.model else "a model that is not stored"
        fitted = "" if self.version is None else f", fitted to version {self.version}"
        return f"{name} ({self.kind} of {self.store}{fitted})"

    def differs(self, other: WrittenBy) -> str:
        """Describe for people how another model and options differ; empty if they are equal."""
        mine, others = (
            (one.birth, one.kind, one.digest, json.loads(json.dumps(one.options)))
            for one in (self, other)
        )
        if mine == others:
            return ""
        if mine[:-1] != others[:-1]:
            return f"by {self.described}, and this run uses {other.described}"
        names = [name for name in others[-1] if mine[-1].get(name) != others[-1][name]]
        own, new = (
            ", ".join(f"{name} {json.dumps(one[-1].get(name))}" for name in names)
            for one in (mine, others)
        )
        return f"by {self.described} with {own}, and this run has {new}"


@dataclass(frozen=True)
class OutputNote:
    """Content of the note in an output folder, which names the model that wrote the files there.

    `replacing` says whether files of an earlier model must still be deleted.
    """

    by: WrittenBy
    replacing: bool = False

    def sealed(self) -> bytes:
        """Encode the note as a file."""
        return seal(asdict(self))


_NOTE = TypeAdapter(OutputNote)


@dataclass(frozen=True)
class OutputFolder:
    """Folder for output files.

    `claim_output` returns one for the files of a model. `by` describes the model that has claimed
    the folder. Without such a model, any file may be written.
    """

    folder: Folder
    by: WrittenBy | None = field(default=None, compare=False)

    @property
    def url(self) -> str:
        """URL of the folder."""
        return self.folder.url

    def require_own(self) -> None:
        """Raise OutputOfAnother if another model has claimed the folder meanwhile.

        If the folder has no note that names its model, this method writes one. No earlier step
        does, so that a run that fails before its first file leaves no note.
        """
        if self.by is None:
            return
        note = read_note(self.folder) or create_note(self.folder, OutputNote(self.by))
        if note.replacing or note.by.differs(self.by):
            raise OutputOfAnother(
                f"{note.by.described} claimed {self.url} during this run, so this run stopped. "
                "Give this run another folder, and transform with that model again, because one of "
                "its files may be missing"
            )


def read_note(folder: Folder) -> OutputNote | None:
    """Read the note that names the model of an output folder; None if the folder has no note."""
    content = folder.find(NOTE)
    return None if content is None else _note_in(content, folder)


def create_note(folder: Folder, note: OutputNote) -> OutputNote:
    """Create the note of a folder unless it exists; return the stored note.

    Raises the errors of `read_note`.
    """
    there = create_once(folder, NOTE, note.sealed())
    return note if there is None else _note_in(there, folder)


def files_of_outputs(folder: Folder) -> list[str]:
    """List files in a folder that a model may have written, including temporary files."""
    found = []
    for name in folder.names(""):
        unfinished = _UNFINISHED.fullmatch(name)
        whole = (unfinished[1] or unfinished[2]) if unfinished else name
        if whole in (TOP_DOCUMENTS, MEMBERSHIPS) or _OF_SHARD.fullmatch(whole):
            found.append(name)
    return found


def _note_in(content: bytes, folder: Folder) -> OutputNote:
    where = f"{folder.url}/{NOTE}"
    try:
        return _NOTE.validate_python(unseal(content, where))
    except ValidationError as error:
        raise StoreError(
            f"{printable(where)} does not name the model that wrote the folder; give another "
            "folder, or delete this one"
        ) from error
