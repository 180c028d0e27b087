"""Counts: vocabulary and basis of documents, from a pilot of shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from shlex import quote
from typing import Any

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.counting_options import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.create import create, draw_pilot
from streaming_moments.pipelines.jobs.kinds.base import KindJobs, Redraw, Sight
from streaming_moments.pipelines.jobs.kinds.options import OF_TEXTS, OF_WORDS, KindOptions
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.tables.columns import FEWEST_COLUMNS
from streaming_moments.storage.counting.languages import AUTO, NONE
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.operations.lineages import stage
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

_OF_DOCUMENTS = frozenset(
    {
        *("ids_column", "counts_column", "passage_words", "codocuments"),
        *("core", "max_topics", "length_weights"),
    }
)


def _form(shape: KindOptions) -> None:
    return None


def _create(
    url: str,
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    options: PilotOptions,
    run: Run,
) -> MomentStore:
    return create(
        url,
        shards,
        counting.form,
        policy_of(shards, counting),
        options,
        run,
        codocuments=counting.codocuments,
        dates=counting.dates,
        halves=counting.halves,
    )


def policy_of(shards: Sequence[Shard], counting: CountingOptions) -> TokenPolicy | None:
    """Return the token policy of texts; None if shards hold ids or categories.

    Raises ShardError if a shard has other content than the first. Raises InvalidInput if options
    for texts are given, but the shards have no texts.
    """
    form, first = counting.form, shards[0].url
    holds = form.holds(first)
    for shard in shards:
        if (other := form.holds(shard.url)) != holds:
            raise ShardError(
                shard.url,
                (f"holds {other} but {first} holds {holds}; give shards with one kind of content"),
            )
    if holds == "texts":
        return counting.policy
    named = counting.languages not in ((AUTO,), (NONE,), ())
    cut = counting.passage_words or counting.tokeniser != CountingOptions.tokeniser
    if cut or named or counting.stop_words or counting.phrases:
        raise InvalidInput(
            "token ids and categories have no order and no spelling",
            "leave out {create.passage_words}, {create.language}, {create.tokeniser}, "
            "{create.phrases} and {create.stop_word}",
        )
    return None


def _known(store: MomentStore) -> Mapping[str, Any]:
    # stores of early versions of this package have no length weights: all words weigh the same
    return {"length_weights": "pooled"} if store.basis.weights.is_pooled else {}


def _begun(
    store: MomentStore,
    shards: Sequence[Shard],
    options: PilotOptions,
    halves: bool | None,
    run: Run,
) -> MomentStore:
    pilot = draw_pilot(shards, store.form, store.policy, options, run)
    message = f"rebase: begin from {pilot.origin}"
    written = asdict(options) | {"drawn": pilot.drawn}
    return stage(store, pilot.vocabulary, store.policy, pilot.basis, written, message, halves)


def _renewed(foundation: CountsFoundation) -> str:
    return f"{foundation.basis.n_words:,} new words"


def _misfit(options: PilotOptions) -> str:
    most = min(options.core, options.vocabulary_size)
    if options.max_topics is None or options.max_topics <= most:
        return ""
    return (
        f"max_topics is {options.max_topics}, more than core ({options.core}) or vocabulary_size "
        f"({options.vocabulary_size})"
    )


def _sights(columns: Mapping[str, str], text_column: str) -> list[Sight]:
    """Find a column of texts with the usual name, or else any texts, token ids or categories."""
    if columns.get(text_column) in ("text", "word"):
        return [Sight(f"documents in column {text_column}", usual=True)]
    found = [
        _in_column("documents", name, "text_column")
        for name, what in columns.items()
        if what == "text"
    ]
    found += [
        _in_column("token ids", name, "ids_column")
        for name, what in columns.items()
        if what == "ids"
    ]
    words = tuple(name for name, what in columns.items() if what == "word")
    if len(words) >= FEWEST_COLUMNS and not found:
        named = ",".join(words)
        changes = {"categories": words}
        found.append(Sight(f"a table of {named}", f"--categories {quote(named)}", changes=changes))
    return found


def _in_column(what: str, name: str, option: str) -> Sight:
    flag = f"--{option.replace('_', '-')} {quote(name)}"
    return Sight(f"{what} in column {name}", flag, changes={option: name})


COUNTS = KindJobs(
    CountsFoundation,
    _OF_DOCUMENTS | OF_WORDS | OF_TEXTS,
    _create,
    _form,
    Redraw(_known, _begun, _renewed),
    _misfit,
    _sights,
)
