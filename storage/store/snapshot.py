"""Snapshot: a store at one version, for reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    read_blocks,
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
    """A store at one version. It is pickled without its caches, so that workers can load blocks.

    format : which versions of the package may read and write the store
    commit : the commit of the version
    foundation : definition of the statistics
    """

    folder: Folder
    format: StoreFormat
    commit: Commit
    foundation: Any

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def url(self) -> str:
        """URL of the store."""
        return self.folder.url

    @property
    def version(self) -> int:
        """Version of this snapshot."""
        return self.commit.version

    @property
    def kind(self) -> str:
        """Kind of the statistics, such as "counts" (of documents)."""
        kind: str = self.foundation.kind
        return kind

    @property
    def counts(self) -> CountsFoundation:
        """The foundation of a store of documents.

        Raises InvalidInput if the store has another kind.
        """
        if not isinstance(self.foundation, CountsFoundation):
            raise InvalidInput(lacks_vocabulary(self))
        return self.foundation

    @property
    def basis(self) -> Basis:
        """The basis Q of a store of documents: the matrix that projects words to a few columns."""
        return self.counts.basis

    @property
    def codocuments(self) -> bool:
        """Whether the store counts in how many documents two words occur together."""
        return self.counts.codocuments

    @property
    def halves(self) -> bool:
        """Whether sums of one half of the documents are stored separately."""
        return bool(self.foundation.halves)

    @property
    def row_blocks(self) -> int:
        """Number B of row blocks: parts of the rows that are stored in files of their own."""
        return self.commit.lineage.row_blocks

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Segments to read for the version, with stored sums in the place of some of them."""
        return parts_of(self.commit)

    @property
    def layout(self) -> SegmentLayout:
        """Layout of the statistics."""
        return SegmentLayout(self.foundation, self.row_blocks)

    @property
    def form(self) -> ShardFormat:
        """Format of the shards, and names of the columns that hold the documents."""
        content = dict(self.commit.lineage.form)
        content.pop(READING, None)
        return ShardFormat.from_json(content)

    @property
    def reading(self) -> Mapping[str, Any]:
        """Options for reading the shards, as JSON, in stores of another kind than counts."""
        return dict(self.commit.lineage.form[READING])

    @property
    def dates(self) -> DateSource:
        """Where the dates of documents come from, such as a column or a part of the URL."""
        return DateSource.from_json(self.commit.lineage.dates or {})

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that a store of documents counts."""
        return self._words[0]

    @property
    def policy(self) -> TokenPolicy | None:
        """The policy that cuts texts into tokens; None for token ids and for other kinds."""
        return self._words[1] if self.foundation.adds_words else None

    @property
    def models(self) -> Mapping[str, ModelReference]:
        """Models by name, the latest last."""
        return self.commit.models

    def at(self, version: int) -> Self:
        """Return the store at another version; check files that are new in it as `open` does."""
        return self._with(self._log.existing(version), whole=True)

    def latest(self) -> Self:
        """Return the store at its latest version; check files that are new in it as `open` does."""
        return self._with(self._log.latest(), whole=True)

    def is_there(self) -> bool:
        """Whether this version is still at the URL; False if the store was deleted or replaced.

        Raises StoreError if the storage fails, or the commit is damaged.
        """
        return self._log.holds(self.commit)

    def log(self, first: int = 0) -> tuple[Commit, ...]:
        """Return the commits from version `first` to this one, the latest first.

        Expired versions are left out.
        """
        return self._log.history(self.version, first)

    def ledger(self) -> Ledger:
        """Return the ledger of the shards counted in this version."""
        return self._ledger

    def length_histogram(self) -> LengthHistogram:
        """Return the number of documents of each length, in tokens of the vocabulary."""
        return self.row_lengths().whole

    def row_lengths(self) -> RowLengths[LengthHistogram]:
        """Return for each row (word) the lengths of the documents that were counted with this word.

        Words that were added to the vocabulary later were counted in fewer documents.

        Raises InvalidInput if the store has a kind other than counts.
        """
        _ = self.counts
        lengths: RowLengths[LengthHistogram] = self.totals()
        return lengths

    def totals(self) -> Any:
        """Return the `Totals` of the version: sums over records, such as numbers of documents."""
        return whole_totals(self.folder, self.parts, self.layout)

    def gaps(self) -> list[str]:
        """Describe the gaps in sequences that were counted in pieces, one line for each gap."""
        if not self.foundation.joins:
            return []
        found: list[str] = sum_totals(self.folder, self.parts, self.layout).pieces.gaps()
        return found

    def load_block(self, index: int, halves: bool = True) -> Any:
        """Return the statistics of one row block, as `load_blocks` does."""
        return self.load_blocks([index], halves)[0]

    def load_blocks(self, indices: Sequence[int], halves: bool = True) -> list[Any]:
        """Return the statistics of row blocks.

        Reading several blocks in one call needs fewer requests. `halves=False` does not read the
        separate sums of one half of the documents. Raises the errors of `read_blocks`, and
        InvalidInput if an index has no row block.
        """
        kept = None if halves else replace(self.foundation, halves=False)
        return read_blocks(self.folder, self.parts, self.layout, indices, kept)

    def load(self) -> Any:
        """Return the statistics of all rows; raise the errors of `load_blocks`."""
        return sum_all_rows(self.folder, self.parts, self.layout)

    def load_model(self, name: str | None = None) -> TopicModel:
        """Load a model with topics by its name or tag, by default the latest.

        Raises StoreError if there is no such model, it has no topics, or a file is damaged.
        """
        model = self.load_any_model(name)
        if not isinstance(model, TopicModel):
            raise StoreError(
                f"model {model_called(self.commit, name)!r} has type {model.name!r}, which has no "
                "topics; name a model with topics"
            )
        return model

    def load_any_model(self, name: str | None = None) -> Model:
        """Load a model as `load_model` does, whether it has topics or not."""
        chosen = model_called(self.commit, name)
        model: Model = read_model(self.folder, chosen, self.commit.models[chosen])
        return model

    def verify(self) -> list[str]:
        """Read every file of this version, and describe problems of all parts, one line each."""
        return list(dict.fromkeys(store_problems(self.folder, self.commit)))

    @property
    def _log(self) -> CommitLog:
        return CommitLog(self.folder, self.format.single_writer)

    @cached_property
    def _words(self) -> tuple[Vocabulary, TokenPolicy | None]:
        return read_vocabulary(self.folder, self.counts.basis.vocabulary)

    @cached_property
    def _ledger(self) -> Ledger:
        known = vars(self).get("_known", Ledger({}))
        return read_ledger(self.folder, self.commit.segments, known, self.commit.sums)

    def knowing(self, records: Ledger) -> Self:
        """Return the same version with the given shard records, which it need not read any more."""
        same = replace(self)
        vars(same)["_known"] = records
        return same

    def _with(self, commit: Commit, whole: bool = False) -> Self:
        if whole:
            require_whole(self.folder, commit, self.commit)
        before = self.commit.lineage
        after = commit.lineage
        foundation = self.foundation
        if foundation_of(after) != foundation_of(before):
            foundation = read_foundation(self.folder, after)
        other = replace(self, commit=commit, foundation=foundation)
        # reuse the shard records that this version has read, because segments never change
        known = vars(self).get("_ledger", vars(self).get("_known"))
        return other if known is None else other.knowing(known)


def lacks_vocabulary(store: Snapshot) -> str:
    """Return an error message: this store has no vocabulary or basis, but a command needs one."""
    return (
        f"{store.url} holds statistics of kind {store.kind!r}, without a vocabulary or basis that "
        "can be changed or compared; for other words, symbols or nodes, create another store with "
        "`streaming-moments create`"
    )
