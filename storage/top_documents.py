"""Top documents: a file with the documents that have the largest share of each topic.

If the records are rows of numbers, the file has the rows nearest to the mean of each cluster. The
file is stored in the folder with the other results of the model.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from streaming_moments.errors import StoreError
from streaming_moments.quality.representatives import NearRow, Representative, Representatives
from streaming_moments.storage.files.filesystems import one_line, open_file_system
from streaming_moments.storage.files.output_folders import TOP_DOCUMENTS, OutputFolder
from streaming_moments.storage.files.outputs import put_whole
from streaming_moments.storage.proportions import Provenance, unreadable

_SHOWN = 200  # at most this many characters of each document are stored
_MORE = " \N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True)
class ModelRead:
    """Store and name of the model that was applied to documents or rows, and its labels."""

    store: str
    model: str
    labels: Mapping[int, str]


def beginning(text: str) -> str:
    """Return the beginning of a text as one line, cut after a whole word.

    Examples
    --------
    >>> beginning("a law"), len(beginning("sea " * 99)), beginning("the " * 60)[-9:]
    ('a law', 201, 'the the \u2026')
    """
    line = " ".join(text[: 8 * _SHOWN].split())
    if len(line) <= _SHOWN:
        return line
    whole, space, _ = line[: _SHOWN + 1].rpartition(" ")
    return (whole if space else line[:_SHOWN]) + _MORE


def write_top_documents(
    folder: OutputFolder, best: Representatives, provenance: Provenance
) -> None:
    """Write the documents that best represent each topic into a folder of topic proportions.

    Raises the errors of `put_whole`.
    """
    of = ModelRead(provenance.store, provenance.model, provenance.labels)
    _write(folder, of, asdict(best))


def write_near_rows(
    folder: OutputFolder, number: int, rows: Sequence[Sequence[NearRow]], of: ModelRead
) -> None:
    """Write, for each cluster, at most `number` rows of numbers nearest to its mean.

    Raises the errors of `put_whole`.
    """
    nearest = [[asdict(one) for one in some] for some in rows]
    _write(folder, of, {"number": number, "nearest": nearest})


def _write(folder: OutputFolder, of: ModelRead, found: Mapping[str, Any]) -> None:
    content = {"store": of.store, "model": of.model, "labels": dict(of.labels), **found}
    with tempfile.TemporaryDirectory(prefix="streaming-moments-") as scratch:
        local = os.path.join(scratch, TOP_DOCUMENTS)
        with open(local, "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False)
        put_whole(local, folder, TOP_DOCUMENTS)


def read_top_documents(
    folder: str, storage_options: Mapping[str, object] | None = None
) -> tuple[str, Representatives]:
    """Read the documents of each topic that `transform --top-documents` wrote.

    Returns the name of the model, and these documents.
    """
    model, number, topics = _read(folder, "topics", Representative, storage_options)
    return model, Representatives(number, topics)


def read_near_rows(
    folder: str, storage_options: Mapping[str, object] | None = None
) -> tuple[str, tuple[tuple[NearRow, ...], ...]]:
    """Read the rows nearest to each cluster that `transform --top-documents` wrote.

    Returns the name of the model, and these rows.
    """
    model, _, rows = _read(folder, "nearest", NearRow, storage_options)
    return model, rows


def _read(
    folder: str,
    key: str,
    kind: Callable[..., Any],
    storage_options: Mapping[str, object] | None,
) -> tuple[str, int, tuple[tuple[Any, ...], ...]]:
    """Read a file of top documents or rows.

    Returns the name of the model, the requested number of entries, and the entries of each topic or
    cluster.
    """
    url = f"{folder.rstrip('/')}/{TOP_DOCUMENTS}"
    try:
        fs, path = open_file_system(url, storage_options)
        content = json.loads(fs.cat_file(path))
        found = tuple(tuple(kind(**one) for one in some) for some in content[key])
        return str(content["model"]), int(content["number"]), found
    except unreadable() as error:
        what = "documents of topics" if key == "topics" else "rows nearest to means"
        raise StoreError(
            f"{url} has no {what} ({one_line(error, storage_options)})",
            "write them with {transform.top_documents:5}",
        ) from error
