"""Snapshot: a store at one version, to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.base import Model
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import READING, Commit, ModelReference, foundation_of
from streaming_moments.storage.log.covering import Part, parts_of
from streaming_moments.storage.log.format import StoreFormat
from streaming_moments.storage.log.layout import SegmentLayout
from streaming_moments.storage.log.ledger import Ledger, read_ledger
from streaming_moments.storage.segments.blocks import (
    read_block,
    sum_all_rows,
    sum_totals,
    whole_totals,
)
from streaming_moments.storage.segments.foundations import read_foundation, read_vocabulary
from streaming_moments.storage.segments.models import model_called, read_model
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.verification import require_whole, store_problems


@dataclass(frozen=True)
class Snapshot:
    """What a store is at one version. It is pickled without its caches, so workers can load blocks.

    Parameters
    ----------
    folder : Folder
        Where the store is.
    format : StoreFormat
        Which versions of the package may read and write it.
    commit : Commit
        The version.
    foundation : Foundation
        What its statistics are gathered on.
    """

    folder: Folder
    format: StoreFormat
    commit: Commit
    foundation: Any

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def url(self) -> str:
        """Where the store is."""
        return self.folder.url

    @property
    def version(self) -> int:
        """Version of this snapshot."""
        return self.commit.version

    @property
    def kind(self) -> str:
        """Of the statistics."""
        kind: str = self.foundation.kind
        return kind

    @property
    def counts(self) -> CountsFoundation:
        """The foundation of a store of documents.

        Raises
        ------
        InvalidInput
            It is of another kind.
        """
        if not isinstance(self.foundation, CountsFoundation):
            raise InvalidInput(lacks_vocabulary(self))
        return self.foundation

    @property
    def basis(self) -> Basis:
        """Q, of a store of documents."""
        return self.counts.basis

    @property
    def codocuments(self) -> bool:
        """Whether co-document counts are stored."""
        return self.counts.codocuments

    @property
    def halves(self) -> bool:
        """Whether sums of half of the documents are stored separately."""
        return bool(self.foundation.halves)

    @property
    def row_blocks(self) -> int:
        """Number of row blocks B."""
        return self.commit.lineage.row_blocks

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What is read of the version: segments, and sums in place of others."""
        return parts_of(self.commit)

    @property
    def layout(self) -> SegmentLayout:
        """How the statistics are cut."""
        return SegmentLayout(self.foundation, self.row_blocks)

    @property
    def form(self) -> ShardFormat:
        """The format of the shards, and its columns of documents."""
        content = dict(self.commit.lineage.form)
        content.pop(READING, None)
        return ShardFormat.from_json(content)

    @property
    def reading(self) -> Mapping[str, Any]:
        """What else a kind other than counts says of how its shards are read, as JSON."""
        return dict(self.commit.lineage.form[READING])

    @property
    def dates(self) -> DateSource:
        """Where the days of documents are."""
        return DateSource.from_json(self.commit.lineage.dates or {})

    @property
    def vocabulary(self) -> Vocabulary:
        """The words counted."""
        return self._words[0]

    @property
    def policy(self) -> TokenPolicy | None:
        """What makes a text into tokens."""
        return self._words[1]

    @property
    def models(self) -> Mapping[str, ModelReference]:
        """Models by name, the latest last."""
        return self.commit.models

    def at(self, version: int) -> Self:
        """The store at another version; what this one does not name is checked as by `open`."""
        return self._with(self._log.existing(version), whole=True)

    def latest(self) -> Self:
        """The store at its latest version; what is new in it is checked as by `open`."""
        return self._with(self._log.latest(), whole=True)

    def is_there(self) -> bool:
        """Whether its commit is still at the URL: False where the store was deleted or replaced.

        Raises
        ------
        StoreError
            The storage fails, or the commit is damaged.
        """
        return self._log.holds(self.commit)

    def log(self, first: int = 0) -> tuple[Commit, ...]:
        """The commits from a version up to this one, the latest first, without those expired."""
        return self._log.history(self.version, first)

    def ledger(self) -> Ledger:
        """The shards counted in this version."""
        return self._ledger

    def length_histogram(self) -> LengthHistogram:
        """Documents by length, in vocabulary tokens."""
        return self.row_lengths().whole

    def row_lengths(self) -> RowLengths[LengthHistogram]:
        """Which documents count a row: words that were added later are in fewer.

        Raises
        ------
        InvalidInput
            Of another kind than counts.
        """
        _ = self.counts
        lengths: RowLengths[LengthHistogram] = self.totals()
        return lengths

    def totals(self) -> Any:
        """`Totals` of all that is counted."""
        return whole_totals(self.folder, self.parts, self.layout)

    def gaps(self) -> list[str]:
        """Where the next piece of a sequence does not go on where the one before it ends."""
        if not self.foundation.joins:
            return []
        found: list[str] = sum_totals(self.folder, self.parts, self.layout).pieces.gaps()
        return found

    def load_block(self, index: int, halves: bool = True) -> Any:
        """Statistics of one row block; raises as `read_block`, InvalidInput where there is none.

        With `halves` False those of half of the documents, where they are kept, are not read.
        """
        kept = None if halves else replace(self.foundation, halves=False)
        return read_block(self.folder, self.parts, self.layout, index, kept)

    def load(self) -> Any:
        """Statistics of all rows; raises as `load_block`."""
        return sum_all_rows(self.folder, self.parts, self.layout)

    def load_model(self, name: str | None = None) -> TopicModel:
        """A model of this version by its name or a tag, by default the latest; one with topics.

        Raises
        ------
        StoreError
            There is no such model, it has no topics, or a file of it is damaged.
        """
        model = self.load_any_model(name)
        if not isinstance(model, TopicModel):
            raise StoreError(
                f"model {model_called(self.commit, name)!r} is of {model.name!r}, which has no "
                "topics; name one that has"
            )
        return model

    def load_any_model(self, name: str | None = None) -> Model:
        """As `load_model`, with or without topics."""
        chosen = model_called(self.commit, name)
        model: Model = read_model(self.folder, chosen, self.commit.models[chosen])
        return model

    def verify(self) -> list[str]:
        """Read every file of this version; problems of bytes, log, ledger and sums, a line each."""
        return list(dict.fromkeys(store_problems(self.folder, self.commit)))

    @property
    def _log(self) -> CommitLog:
        return CommitLog(self.folder, self.format.single_writer)

    @cached_property
    def _words(self) -> tuple[Vocabulary, TokenPolicy | None]:
        return read_vocabulary(self.folder, self.counts.basis.vocabulary)

    @cached_property
    def _ledger(self) -> Ledger:
        return read_ledger(self.folder, self.commit.segments, Ledger({}), self.commit.sums)

    def _with(self, commit: Commit, whole: bool = False) -> Self:
        if whole:
            require_whole(self.folder, commit, self.commit)
        before = self.commit.lineage
        after = commit.lineage
        foundation = self.foundation
        if foundation_of(after) != foundation_of(before):
            foundation = read_foundation(self.folder, after)
        return replace(self, commit=commit, foundation=foundation)


def lacks_vocabulary(store: Snapshot) -> str:
    """What is said where a store of another kind than documents is asked for its words or basis."""
    return (
        f"{store.url} holds statistics of kind {store.kind!r}, which have no vocabulary and "
        "no basis to change or to compare by, as a store of documents has; other words, "
        "symbols or nodes take a store of their own, by `streaming-moments create`"
    )
