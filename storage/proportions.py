"""Topic proportions of documents as Parquet, one file for each shard, written atomically."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streaming_moments.columns import Columns, likeliest
from streaming_moments.quality.representatives import Representative, Representatives
from streaming_moments.storage.column_files import array_of, read_columns
from streaming_moments.storage.counting.counting import CountedPassages
from streaming_moments.storage.counting.named import NamedDocuments
from streaming_moments.storage.files.backends import storage_errors
from streaming_moments.storage.files.filesystems import open_file_system
from streaming_moments.storage.files.output_folders import OutputFolder

if TYPE_CHECKING:
    import pandas as pd

_PROVENANCE, _SUMMARY = b"provenance", b"summary"


@dataclass(frozen=True)
class Provenance:
    """What a file of topic proportions was computed from, stored in the metadata of the file.

    Two files with equal provenance have equal content.

    state : string that changes if sizes, times or ETags of the shard's files change
    model, digest : name of the model (empty if it is not stored), and SHA-256 of its topics
    fitted_version : version that the model was fitted to; None if the model is not stored
    method : as in `TopicModel.transform`
    seeds : seed of the sampler, and the number of the shard
    passages : whether each row is a passage, not a document
    foreign_below : a text is foreign if less than this share of its words are in the vocabulary
    top_documents : number of representative documents of each topic that the summary lists
    """

    shard: str
    state: str
    model: str
    digest: str
    store: str
    fitted_version: int | None
    method: str
    seeds: tuple[int, ...]
    id_column: str | None
    passages: bool
    foreign_below: float
    top_documents: int
    labels: Mapping[int, str]
    package: str

    def to_json(self) -> bytes:
        """Encode the provenance as JSON."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The provenance as metadata of a Parquet file."""
        return {b"shard": self.shard.encode(), _PROVENANCE: self.to_json()}


@dataclass(frozen=True)
class Summary:
    """Totals over the documents in one file of topic proportions.

    tokens, unknown : number of words that are in the vocabulary, and number of words that are not
    foreign, empty : numbers of documents with too few words of the vocabulary, and with none
    weights : (k,) means of the topic proportions, weighted by the number of tokens of each document
    representatives : for each topic, the documents in which it has the largest share
    """

    documents: int = 0
    tokens: int = 0
    unknown: int = 0
    foreign: int = 0
    empty: int = 0
    weights: tuple[float, ...] = ()
    representatives: Representatives = field(default_factory=lambda: Representatives(0))

    def to_json(self) -> bytes:
        """Encode the summary as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The summary as metadata of a Parquet file, to add after all rows are written."""
        return {_SUMMARY: self.to_json()}

    @classmethod
    def from_json(cls, content: bytes) -> Summary:
        """Decode the result of `to_json`; raise TypeError, KeyError or ValueError if invalid."""
        fields = json.loads(content)
        kept = fields.pop("representatives")
        topics = tuple(tuple(Representative(**one) for one in topic) for topic in kept["topics"])
        best = Representatives(kept["number"], topics)
        return cls(**{**fields, "weights": tuple(fields["weights"])}, representatives=best)


def said_of_documents(counted: CountedPassages, said: Columns, foreign_below: float) -> Columns:
    """Combine what a model says of the passages of documents into columns with a row per document.

    The topic proportions of a document are means over its passages, weighted by their tokens. If
    less than the share `foreign_below` of the words of a document are in the vocabulary, the
    document is foreign and has no topic.
    """
    lengths, proportions = said["length"].array, said["proportions"].array
    known, unknown = counted.summed(lengths), counted.summed(counted.outside)
    if counted.documents < lengths.size:
        mixed = counted.summed(lengths[:, None] * proportions) / np.maximum(known, 1)[:, None]
        # a document with one passage, or without words of the vocabulary, gets the exact values of
        # its first passage
        alone = (counted.passages == 1) | (known == 0)
        proportions = np.where(alone[:, None], proportions[counted.begins], mixed)
    return _said(known, unknown, known < foreign_below * (known + unknown), proportions)


def said_of_passages(counted: CountedPassages, said: Columns, documents: Columns) -> Columns:
    """Return columns with a row per passage. All passages of a foreign document are foreign."""
    foreign = np.repeat(documents["foreign"].array, counted.passages)
    return _said(said["length"].array, counted.outside, foreign, said["proportions"].array)


def _said(
    known: NDArray[np.int64],
    unknown: NDArray[np.int64],
    foreign: NDArray[np.bool_],
    proportions: NDArray[np.float64],
) -> Columns:
    topic = likeliest(proportions, (known == 0) | foreign)
    return Columns.of(
        length=known, unknown=unknown, foreign=foreign, topic=topic, proportions=proportions
    )


def proportion_columns(
    read: NamedDocuments, said: Columns, shard_url: str, labels: Mapping[int, str], passages: bool
) -> dict[str, Any]:
    """Make the columns of a file of topic proportions, with one row for each document.

    With `passages`, there is one row for each passage instead.

    `id` : name of the document from the id column, else the name of its file in a folder, else
        `SOURCE#ROW`
    `source`, `row` : the shard, and the number of the document in it, from 0
    `passage` : number of the passage in the document, from 0
    `length`, `unknown` : number of words that are in the vocabulary, and number of words that are
        not
    `foreign` : whether too few words are known
    `topic`, `label` : largest topic and its label. Both are null if no word is known or the text is
        foreign. The label is null if the topic has none.
    `proportions` : k proportions; if no word is known, the weights of the topics in the model
    """
    counted = read.counted
    document = np.arange(counted.documents)
    if passages:
        document = np.repeat(document, counted.passages)
    number, topic = document.size, array_of(said["topic"])
    names = [labels.get(one) for one in range(said["proportions"].array.shape[1])]
    own = {"passage": pa.array(np.arange(number) - counted.begins[document])} if passages else {}
    return {
        "id": read.ids.take(pa.array(document)) if passages else read.ids,
        "source": pa.repeat(pa.scalar(shard_url, pa.string()), number),
        "row": pa.array(read.first + document),
        **own,
        **{name: said[name] for name in ("length", "unknown", "foreign")},
        "topic": topic,
        "label": pa.array(names, pa.string()).take(topic),
        "proportions": said["proportions"],
    }


def written_before(folder: OutputFolder, provenance: Provenance) -> tuple[str, Summary] | None:
    """Return the URL and summary of the file if it exists with this provenance; None otherwise."""
    url = f"{folder.url}/{proportions_file(provenance.shard)}"
    try:
        fs, path = open_file_system(url, folder.folder.storage_options)
        with fs.open(path, "rb") as stored:
            found = pq.read_metadata(stored).metadata or {}
        if found.get(_PROVENANCE) != provenance.to_json():
            return None
        return url, Summary.from_json(found[_SUMMARY])
    except unreadable():
        return None  # the caller writes the file again, which raises any error of the folder


def frame_of(
    files: Sequence[str], storage_options: Mapping[str, object] | None = None
) -> pd.DataFrame:
    """Read files of topic proportions as one pandas frame, with a column `share_J` for topic J.

    The index of the frame is `id`, the name of the document.
    """
    import pandas as pd

    table = read_columns(files, storage_options)
    shares = table["proportions"].combine_chunks()
    k = shares.type.list_size
    columns = shares.flatten().to_numpy().reshape(-1, k)
    numbers = {pa.int32(): pd.Int32Dtype()}
    frame = table.drop_columns(["proportions"]).to_pandas(types_mapper=numbers.get)
    shown = pd.DataFrame(columns, columns=[f"share_{topic}" for topic in range(k)])
    return pd.concat([frame, shown], axis=1).set_index("id")


def proportions_file(shard_url: str) -> str:
    """Return the name of the file with the topic proportions of a shard's documents.

    The name consists of the name of the shard's file and a hash of its URL, because shards in
    different folders may have the same file name.

    Examples
    --------
    >>> proportions_file("/corpus/1990.jsonl.gz")
    '1990.jsonl.gz-ed4363b8.parquet'
    """
    name = shard_url.rstrip("/").rsplit("/", 1)[-1] or "shard"
    return f"{name}-{hashlib.sha256(shard_url.encode()).hexdigest()[:8]}.parquet"


def unreadable() -> tuple[type[Exception], ...]:
    """Return the types of error that reading a missing or malformed file can raise."""
    return (*storage_errors(), TypeError, KeyError, ValueError)
