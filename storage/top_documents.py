"""Top documents: those that speak most for each topic, as a file beside the proportions."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict

from streaming_moments.errors import StoreError
from streaming_moments.quality.representatives import Representative, Representatives
from streaming_moments.storage.files.filesystems import one_line, open_file_system
from streaming_moments.storage.files.outputs import put_whole
from streaming_moments.storage.proportions import Provenance, unreadable

TOP_DOCUMENTS = "_top_documents.json"  # readers of the folder as one table pass it over


def write_top_documents(
    folder: str,
    best: Representatives,
    provenance: Provenance,
    storage_options: Mapping[str, object] | None = None,
) -> None:
    """Write them into a folder of proportions; errors as `put_whole`."""
    content = {
        "store": provenance.store,
        "model": provenance.model,
        "labels": provenance.labels,
        **asdict(best),
    }
    with tempfile.TemporaryDirectory(prefix="streaming-moments-") as scratch:
        local = os.path.join(scratch, TOP_DOCUMENTS)
        with open(local, "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False)
        put_whole(local, folder, f"{folder.rstrip('/')}/{TOP_DOCUMENTS}", storage_options)


def read_top_documents(
    folder: str, storage_options: Mapping[str, object] | None = None
) -> tuple[str, Representatives]:
    """The model, and the documents that `transform --top-documents` found in a folder.

    Raises
    ------
    StoreError
        There are none, or the file is of something else.
    """
    url = f"{folder.rstrip('/')}/{TOP_DOCUMENTS}"
    try:
        fs, path = open_file_system(url, storage_options)
        content = json.loads(fs.cat_file(path))
        topics = tuple(
            tuple(Representative(**one) for one in documents) for documents in content["topics"]
        )
        return str(content["model"]), Representatives(int(content["number"]), topics)
    except unreadable() as error:
        raise StoreError(
            f"{url} has no documents of topics ({one_line(error, storage_options)}); write them by "
            "`streaming-moments transform --top-documents 5`"
        ) from error
