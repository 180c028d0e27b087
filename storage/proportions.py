"""Topic proportions of documents as Parquet, one file a shard, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streaming_moments.errors import StoreError
from streaming_moments.quality.representatives import Representative, Representatives
from streaming_moments.storage.counting.named import NamedDocuments
from streaming_moments.storage.files.filesystems import one_line, open_file_system, storage_errors
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.files.outputs import parquet_output

if TYPE_CHECKING:
    import pandas as pd

_PROVENANCE, _SUMMARY = b"provenance", b"summary"


@dataclass(frozen=True)
class Provenance:
    """What a file of proportions is made of, as its metadata says; equal provenance, same file.

    state : a mark of the shard's files, from their sizes, times and the storage's own marks
    model, digest : name of the model, empty if it is not stored, and SHA-256 of its topics
    fitted_version : None if the model is not stored
    method : as of `TopicModel.transform`
    seeds : the sampler's seed and the place of the shard
    passages : whether a row is a passage
    foreign_below : share of known words below which a text is foreign
    top_documents : representatives of each topic in the summary
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
        """As a file has it."""
        return json.dumps(asdict(self), sort_keys=True).encode()


@dataclass(frozen=True)
class Summary:
    """Totals of one file of proportions.

    tokens, unknown : words in the vocabulary, and outside
    foreign, empty : documents with too few known words, and with none
    weights : (k,) token-weighted mean proportions
    representatives : the documents with the most of each topic
    """

    documents: int = 0
    tokens: int = 0
    unknown: int = 0
    foreign: int = 0
    empty: int = 0
    weights: tuple[float, ...] = ()
    representatives: Representatives = field(default_factory=lambda: Representatives(0))

    def to_json(self) -> bytes:
        """As a file has it."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Summary:
        """What `to_json` described; TypeError, KeyError or ValueError if it is something else."""
        fields = json.loads(content)
        kept = fields.pop("representatives")
        topics = tuple(tuple(Representative(**one) for one in topic) for topic in kept["topics"])
        best = Representatives(kept["number"], topics)
        return cls(**{**fields, "weights": tuple(fields["weights"])}, representatives=best)


@dataclass(frozen=True, eq=False)
class ProportionRows:
    """Proportions of some documents, or of their passages.

    ids : (rows,) string array
    rows : (rows,) int64 numbers of the documents in the shard, from 0
    passages : (rows,) int64 numbers of the passages in their documents, where a row is a passage
    lengths, unknown : (rows,) int64 tokens in the vocabulary, and outside
    foreign : (rows,) bool, whether too few of the words are known
    proportions : (rows, k) float64, each row on the simplex
    """

    ids: pa.StringArray
    rows: NDArray[np.int64]
    passages: NDArray[np.int64] | None
    lengths: NDArray[np.int64]
    unknown: NDArray[np.int64]
    foreign: NDArray[np.bool_]
    proportions: NDArray[np.float64]

    @classmethod
    def of_documents(
        cls, read: NamedDocuments, proportions: NDArray[np.float64], foreign_below: float
    ) -> ProportionRows:
        """Of (passages, k) proportions those of whole documents: means weighted by tokens.

        A text of whose words a share below `foreign_below` is known is foreign.
        """
        lengths = read.counted.batch.lengths
        known, unknown = read.summed(lengths), read.summed(read.counted.outside)
        if read.documents < lengths.size:
            mixed = read.summed(lengths[:, None] * proportions) / np.maximum(known, 1)[:, None]
            # of one passage, or without a known word, it is that of the first to the bit
            alone = (read.counted.passages == 1) | (known == 0)
            proportions = np.where(alone[:, None], proportions[read.begins], mixed)
        foreign = known < foreign_below * (known + unknown)
        rows = np.arange(read.first, read.first + read.documents)
        return cls(read.ids, rows, None, known, unknown, foreign, proportions)

    def in_passages(self, read: NamedDocuments, proportions: NDArray[np.float64]) -> ProportionRows:
        """Of the same documents a row a passage, foreign where the document is."""
        document = np.repeat(np.arange(read.documents), read.counted.passages)
        return ProportionRows(
            self.ids.take(pa.array(document)),
            self.rows[document],
            np.arange(document.size) - read.begins[document],
            read.counted.batch.lengths,
            read.counted.outside,
            self.foreign[document],
            proportions,
        )


@dataclass(frozen=True, eq=False)
class ProportionsFile:
    """An open Parquet file of `proportions_schema`; `url` exists only once the file is complete."""

    url: str
    writer: pq.ParquetWriter
    provenance: Provenance

    @classmethod
    @contextmanager
    def create(
        cls,
        folder: OutputFolder,
        provenance: Provenance,
        n_topics: int,
    ) -> Iterator[ProportionsFile]:
        """Write to a temporary file and put it in place when the block ends without an error.

        Errors as of `parquet_output`.
        """
        schema = proportions_schema(n_topics, provenance.passages).with_metadata(
            {b"shard": provenance.shard.encode(), _PROVENANCE: provenance.to_json()}
        )
        name = proportions_file(provenance.shard)
        with parquet_output(folder, name, schema) as (url, writer):
            yield cls(url, writer, provenance)

    def write(self, some: ProportionRows) -> None:
        """Add documents, or passages."""
        number, labels = some.lengths.size, self.provenance.labels
        known = (some.lengths > 0) & ~some.foreign
        topics = some.proportions.argmax(axis=1).astype(np.int32)
        names = [labels.get(topic) for topic in range(some.proportions.shape[1])]
        topic = pa.array(topics, mask=~known)
        columns = [
            some.ids,
            pa.repeat(pa.scalar(self.provenance.shard, pa.string()), number),
            pa.array(some.rows),
            *([] if some.passages is None else [pa.array(some.passages)]),
            pa.array(some.lengths),
            pa.array(some.unknown),
            pa.array(some.foreign),
            topic,
            pa.array(names, pa.string()).take(topic),
            pa.FixedSizeListArray.from_arrays(pa.array(some.proportions.ravel()), len(names)),
        ]
        self.writer.write_table(pa.Table.from_arrays(columns, schema=self.writer.schema))

    def end(self, summary: Summary) -> None:
        """What is said of all that was written."""
        self.writer.add_key_value_metadata({_SUMMARY: summary.to_json()})


def written_before(folder: OutputFolder, provenance: Provenance) -> tuple[str, Summary] | None:
    """The URL of a whole file that is made of the same, and its summary; None if there is none."""
    url = f"{folder.url}/{proportions_file(provenance.shard)}"
    try:
        fs, path = open_file_system(url, folder.folder.storage_options)
        with fs.open(path, "rb") as stored:
            found = pq.read_metadata(stored).metadata or {}
        if found.get(_PROVENANCE) != provenance.to_json():
            return None
        return url, Summary.from_json(found[_SUMMARY])
    except unreadable():
        return None  # it is written over, and what is wrong with the folder is said by that


def frame_of(
    files: Sequence[str], storage_options: Mapping[str, object] | None = None
) -> pd.DataFrame:
    """Read proportions as one pandas frame by `id`, with a column `share_J` for topic J."""
    import pandas as pd

    tables = []
    for url in files:
        try:
            fs, path = open_file_system(url, storage_options)
            with fs.open(path, "rb") as stored:
                tables.append(pq.read_table(stored).replace_schema_metadata())
        except storage_errors() as error:
            raise StoreError(
                f"{url} cannot be read ({one_line(error, storage_options)}); transform once more"
            ) from error
    table = pa.concat_tables(tables)
    shares = table["proportions"].combine_chunks()
    k = shares.type.list_size
    columns = shares.flatten().to_numpy().reshape(-1, k)
    numbers = {pa.int32(): pd.Int32Dtype()}
    frame = table.drop_columns(["proportions"]).to_pandas(types_mapper=numbers.get)
    shown = pd.DataFrame(columns, columns=[f"share_{topic}" for topic in range(k)])
    return pd.concat([frame, shown], axis=1).set_index("id")


def proportions_schema(n_topics: int, passages: bool = False) -> pa.Schema:
    """Columns of a file, one row a document or, with `passages`, one a passage.

    `id` what the document is called: as the id column says, of a folder the name of the file, else
    `SOURCE#ROW`; `source` the shard, `row` its number there, from 0; `passage` its number in the
    document; `length` and `unknown` its words in the vocabulary, and outside; `foreign` whether too
    few are known; `topic` the largest, null where no word is known or the text is foreign, and its
    `label`, null where it has none; the k `proportions`, of a document without a known word the
    weights of the model.

    Examples
    --------
    >>> proportions_schema(2).names[:6]
    ['id', 'source', 'row', 'length', 'unknown', 'foreign']
    """
    return pa.schema(
        [
            ("id", pa.string()),
            ("source", pa.string()),
            ("row", pa.int64()),
            *([("passage", pa.int64())] if passages else []),
            ("length", pa.int64()),
            ("unknown", pa.int64()),
            ("foreign", pa.bool_()),
            ("topic", pa.int32()),
            ("label", pa.string()),
            ("proportions", pa.list_(pa.float64(), n_topics)),
        ]
    )


def proportions_file(shard_url: str) -> str:
    """Name of a shard's output: its own name, and a mark of its URL as names may repeat.

    Examples
    --------
    >>> proportions_file("/corpus/1990.jsonl.gz")
    '1990.jsonl.gz-ed4363b8.parquet'
    """
    name = shard_url.rstrip("/").rsplit("/", 1)[-1] or "shard"
    return f"{name}-{hashlib.sha256(shard_url.encode()).hexdigest()[:8]}.parquet"


def unreadable() -> tuple[type[Exception], ...]:
    """What is raised where a file is not there, or is another than was expected."""
    return (*storage_errors(), TypeError, KeyError, ValueError)
