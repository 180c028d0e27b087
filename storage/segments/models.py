"""Models in a store: writes and reads their files, which never change.

Each stored model has the name of its class in the registry of models.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import numpy as np
from pydantic import Field, StrictFloat, TypeAdapter

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.base import Model
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.provenance import Polishing, SecondStart
from streaming_moments.models.registry import DEFAULT_MODEL, model_named
from streaming_moments.models.topics import TopicModel
from streaming_moments.storage.files.arrays import (
    ArraySpec,
    encode_chunks,
    encode_metadata,
    read_whole,
)
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.log.commits import Commit, ModelReference
from streaming_moments.storage.log.layout import model_folder
from streaming_moments.storage.log.manifests import (
    MANIFEST,
    FileRecord,
    files_from_json,
    files_to_json,
    read_files,
    read_manifests,
)
from streaming_moments.storage.log.schema import Count, checked
from streaming_moments.storage.log.uncommitted import Uncommitted

_MODEL = "model"
LATEST = "latest"


@dataclass(frozen=True)
class _Attributes:
    """Attributes that are stored with a topic model, as in `TopicModel.attributes`.

    Earlier versions of the package wrote only some of these attributes.
    """

    alpha0: Annotated[StrictFloat, Field(ge=0, allow_inf_nan=False)]
    rotation: str
    documents: Count
    vocabulary: str = ""
    basis: str = ""
    since: str | None = None
    until: str | None = None
    half_life: Annotated[StrictFloat, Field(gt=0)] | None = None
    refined: Count = 0
    polishing: Polishing | None = None
    held_out: HeldOut | None = None
    second_start: SecondStart | None = None


_ATTRIBUTES = TypeAdapter(_Attributes)


def model_called(commit: Commit, name: str | None = None) -> str:
    """Return the name of the model that has this name or tag.

    The default is "latest", which means the last model.
    """
    if not commit.models:
        asked = f" {name!r}" if name not in (None, LATEST) else ""
        other = ", nor any other" if asked else ""
        raise StoreError(
            f"there is no model{asked} at version {commit.version}{other}",
            "fit one by {refit}",
        )
    chosen = commit.tags.get(name or LATEST, name or LATEST)
    if chosen == LATEST and chosen not in commit.models:
        return [*commit.models][-1]
    if chosen not in commit.models:
        raise StoreError(
            f"version {commit.version} has no model {name!r}; it has "
            f"{', '.join([*commit.models, *commit.tags])}"
        )
    return chosen


def write_model(
    folder: Folder, name: str, model: Model, version: int
) -> tuple[ModelReference, Uncommitted]:
    """Write the files of a model.

    The model becomes visible when a commit names it. Its files must still exist at that time.

    Raises StoreError if a file cannot be written.

    name : name of the model
    model : each array is stored as a Zarr array of one chunk. The attributes of the model become
        those of the Zarr group. Unless the model is a topic model, the registered name of its class
        is stored, too.
    version : version of the store that the model was fitted to
    """
    identity, begun = uuid.uuid4().hex, folder.clock()
    arrays, attributes = model.parts()
    if model.name != DEFAULT_MODEL:
        attributes = {**attributes, _MODEL: model.name}
    specs = {key: ArraySpec.whole(array, key) for key, array in arrays.items()}
    files = {**encode_metadata(specs, attributes), **encode_chunks(specs, arrays)}
    place = model_folder(name, identity)
    for path, content in files.items():
        folder.write(f"{place}/{path}", content)
    manifest = seal(
        {
            "name": name,
            "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "version": version,
            "files": files_to_json(FileRecord.of(*file) for file in files.items()),
        }
    )
    folder.write(f"{place}/{MANIFEST}", manifest)
    folder.sync(place)
    sizes = {path: len(content) for path, content in files.items()}
    written = Uncommitted(place, {**sizes, MANIFEST: len(manifest)}, begun)
    return ModelReference(identity, hashlib.sha256(manifest).hexdigest(), version), written


def model_files(folder: Folder, name: str, reference: ModelReference) -> dict[str, FileRecord]:
    """Return the sizes and hashes of the files of a model, by path, from its manifest.

    Raises StoreError for an invalid manifest.
    """
    place = model_folder(name, reference.id)
    [content] = read_manifests(folder, {place: reference.manifest})
    return files_from_json(content.get("files"), f"{folder.url}/{place}/{MANIFEST}")


def read_model(folder: Folder, name: str, reference: ModelReference) -> Any:
    """Read a model of any class in the registry.

    Raises StoreError if a file is missing or damaged, or this version of the package lacks the
    class of the model.
    """
    place = model_folder(name, reference.id)
    where = f"{folder.url}/{place}"
    files = model_files(folder, name, reference)
    stored, attributes = read_whole(read_files(folder, place, files, files), where)
    try:
        arrays = {key: np.array(array, dtype=np.float64) for key, array in stored.items()}
    except ValueError as error:
        raise StoreError(f"{where} cannot be decoded ({error}); restore it from a copy") from error
    try:
        model = model_named(str(attributes.pop(_MODEL, DEFAULT_MODEL)))
    except InvalidInput as error:
        raise StoreError(
            f"{where} cannot be read ({error}); install the version of the package that fitted it, "
            "or refit"
        ) from error
    if issubclass(model, TopicModel):
        scalars = asdict(checked(_ATTRIBUTES, attributes, f"{where} is not a valid model"))
        # ignore other attributes, which a later version of the package may have written
        attributes = {name: value for name, value in scalars.items() if name in attributes}
    return model.from_parts(arrays, attributes)
