"""Transform: write the topic proportions of every document of some shards as Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.model_memory import plan_transform
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs.claiming import claim_output
from streaming_moments.pipelines.jobs.outputs.own_index import OwnIndex
from streaming_moments.pipelines.jobs.outputs.proportions import Method, transform_shard
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    FOREIGN_BELOW,
    OutputJob,
    OutputOptions,
    drawn,
    require_seed,
    write_each,
)
from streaming_moments.printing.html_table import html_table
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.quality.representatives import Representatives
from streaming_moments.storage.column_files import read_columns
from streaming_moments.storage.proportions import Provenance, Summary, frame_of
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.storage.top_documents import write_top_documents

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MOST_TOP_DOCUMENTS = 100


@dataclass(frozen=True)
class TransformResult:
    """Result of a transform.

    Parameters
    ----------
    files : tuple of str
        URLs of the Parquet files, one for each shard, in the order of the shards.
    documents : int
        Number of documents.
    weights : (shards, k) tuple of tuples of float
        Token-weighted mean proportions of each shard.
    tokens, unknown : int
        Number of words that are in the vocabulary, and of other words.
    foreign, empty : int
        Number of documents with too few known words, and of documents without any. Both have no
        topic.
    kept : int
        Number of files that existed already with the same content.
    representatives : Representatives
        Documents that show each topic most clearly.
    storage_options : mapping, optional
        Options to read the files.
    foreign_below : float
        Share of known words below which a document counts as foreign.
    own_index : OwnIndex, optional
        The caller's own labels for documents that are not files.
    """

    files: tuple[str, ...]
    documents: int
    weights: tuple[tuple[float, ...], ...]
    tokens: int = 0
    unknown: int = 0
    foreign: int = 0
    empty: int = 0
    kept: int = 0
    representatives: Representatives = field(default_factory=lambda: Representatives(0))
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)
    foreign_below: float = FOREIGN_BELOW
    own_index: OwnIndex | None = field(default=None, repr=False, compare=False)

    __repr__ = short_repr

    def _repr_html_(self) -> str:
        numbers = {
            "documents": self.documents,
            "files": len(self.files),
            "words in the vocabulary": self.tokens,
            "other words": self.unknown,
            "documents with too few known words": self.foreign,
            "documents without known words": self.empty,
        }
        rows = [(name, f"{number:,}") for name, number in numbers.items()]
        return html_table("result of transform; rows by to_frame()", ["of", "number"], rows)

    @property
    def unknown_share(self) -> float | None:
        """Share of unknown words among all words; None without words."""
        words = self.tokens + self.unknown
        return self.unknown / words if words else None

    def to_frame(self) -> pd.DataFrame:
        """Return all rows as one pandas frame, indexed by the ids of the documents.

        If a frame or series was transformed, the result has its index, with the same types. So
        `frame.merge(result.to_frame(), left_index=True, right_index=True,
        suffixes=("", "_topic"))` adds topics to each row; a column that both have, such as `label`,
        gets the suffix. Otherwise, the index holds the ids of the documents. Ids that come from
        files are texts.

        Raises
        ------
        StoreError
            A file no longer exists, is unreadable, or was replaced by another transform.
        """
        frame = frame_of(self.files, self.storage_options)
        return frame if self.own_index is None else self.own_index.on(frame)

    def to_table(self) -> pa.Table:
        """Return all rows as one Arrow table, as in the files; errors as in `to_frame`."""
        return read_columns(self.files, self.storage_options)

    def lines(self, output: str) -> list[str]:
        """Describe for people what was written, and which share of the words is known."""
        kept = f", {self.kept} of them from an earlier run" if self.kept else ""
        told = [
            f"Wrote the proportions of {of_number(self.documents, 'document')} to {output} "
            f"({of_number(len(self.files), 'file')}{kept})."
        ]
        if (share := self.unknown_share) is not None:
            words = self.tokens + self.unknown
            told.append(f"outside the vocabulary: {share:.1%} of {words:,} words")
        if self.foreign:
            told.append(
                f"without a topic: {of_number(self.foreign, 'document')} with under "
                f"{self.foreign_below:.0%} of the words in the vocabulary"
            )
        if self.empty:
            told.append(
                f"without a topic: {of_number(self.empty, 'document')} without any word of the "
                "vocabulary"
            )
        return told

    def as_json(self) -> dict[str, Any]:
        """Return all values by name."""
        return {
            "documents": self.documents,
            "files": list(self.files),
            "kept": self.kept,
            "tokens": self.tokens,
            "unknown": self.unknown,
            "unknown_share": self.unknown_share,
            "foreign": self.foreign,
            "without_known_words": self.empty,
            "top_documents": [
                [asdict(one) for one in some] for some in self.representatives.topics
            ],
        }


def transform(
    store: MomentStore,
    model: TopicModel,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    method: Method = "fixed-point",
    seed: int | None = None,
    *,
    id_column: str | None = None,
    passages: bool = False,
    top_documents: int = 0,
    foreign_below: float = FOREIGN_BELOW,
    name: str = "",
    labels: Mapping[int, str] | None = None,
    replace: bool = False,
) -> TransformResult:
    """Write one Parquet file for each shard, with a row for each document.

    A file that exists with the same content stays. So the same call, made again after a stop,
    continues where it stopped. The metadata of a file record how it was made. All files of a folder
    come from one model and the same options, which `.provenance.json` in the folder names.

    Parameters
    ----------
    store : MomentStore
        Store with the vocabulary and token policy.
    model : TopicModel
        Model with that vocabulary.
    shards : sequence of Shard
        Shards to read, counted in the store or not.
    output : str
        fsspec URL of a folder; a file appears whole or not at all.
    run : Run
        Cluster and options.
    method, seed : str, int or None
        As in `TopicModel.transform`; the seed and the place of a shard determine its random
        numbers.
    id_column : str, optional
        Column or JSON field with the ids of documents. Without it, the id of a document that is a
        file in a folder is the name of the file. The id of any other document is the name of its
        shard, and its number in the shard.
    passages : bool
        Write a row for each passage. Otherwise passages of a document are added up, weighted by
        their tokens.
    top_documents : int
        For each topic, list this many documents that show it most clearly, at most 100. They are
        also written to `_top_documents.json` in the output, with the first 200 characters of each.
    foreign_below : float
        A text with a smaller share of known words is marked, and has no topic.
    name, labels : str, mapping
        Name of a stored model, and labels of its topics.
    replace : bool
        Delete files of another model in the folder first.

    Raises
    ------
    OutputOfAnother
        The folder holds files of another model or other options, and nothing was changed. Or
        another call replaced the files meanwhile.
    InvalidInput
        "gibbs" has no seed, two shards would write the same file, or a number is out of range.
    ShardError
        A shard is unreadable.
    StoreError
        The output cannot be written.
    BoundExceeded
        A task does not fit into the memory budget.
    """
    asked = OutputOptions(
        method=method,
        seed=seed,
        id_column=id_column,
        passages=passages,
        top_documents=top_documents,
        foreign_below=foreign_below,
        name=name,
        labels=labels or {},
        replace=replace,
    )
    return write_proportions(OutputJob(store, model, shards, output, run, asked))


def write_proportions(job: OutputJob) -> TransformResult:
    """Write the topic proportions of all documents; arguments and errors as in `transform`."""
    store, model, options = job.store, job.model, job.options
    seed, number, foreign_below = options.seed, options.top_documents, options.foreign_below
    require_seed(options.method, seed)
    if not 0 <= number <= MOST_TOP_DOCUMENTS or not 0 <= foreign_below <= 1:
        raise InvalidInput(
            f"top_documents is {number} and foreign_below is {foreign_below:g}; give 0 to "
            f"{MOST_TOP_DOCUMENTS} for top_documents, and 0 to 1 for foreign_below"
        )
    passage_words = None if store.policy is None else store.policy.passage_words
    plan = plan_transform(model.n_words, model.n_topics, *job.room, passage_words)
    reference = store.models.get(options.name)
    content = ("method", "id_column", "passages", "foreign_below", "labels", *drawn(options))
    folder = claim_output(job, content)
    asked = Provenance(
        shard="",
        state="",
        model=options.name,
        digest="" if folder.by is None else folder.by.digest,
        store=store.url,
        fitted_version=None if reference is None else reference.version,
        method=options.method,
        seeds=() if seed is None else (seed,),
        id_column=options.id_column,
        passages=options.passages,
        foreign_below=foreign_below,
        top_documents=number,
        labels=dict(options.labels),
        package=version("streaming-moments"),
    )
    written = write_each(job, "transforming shards", plan, transform_shard, folder, asked)
    results: list[tuple[str, Summary, bool]] = [("", Summary(), False)] * len(job.shards)
    best = Representatives(number)
    with closing(written) as finished:
        for place, (url, summary, there) in finished:
            # Keep only a few numbers of a finished shard: merge its representatives into `best`,
            # and drop them from its summary.
            best = best.joined(summary.representatives)
            results[place] = url, replace(summary, representatives=Representatives(0)), there
    if number:
        write_top_documents(folder, best, asked)
    summaries = [summary for _, summary, _ in results]
    return TransformResult(
        tuple(url for url, _, _ in results),
        sum(one.documents for one in summaries),
        tuple(one.weights for one in summaries),
        sum(one.tokens for one in summaries),
        sum(one.unknown for one in summaries),
        sum(one.foreign for one in summaries),
        sum(one.empty for one in summaries),
        sum(there for _, _, there in results),
        best,
        job.run.storage_options,
        foreign_below,
    )
