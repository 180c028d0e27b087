"""Find keys of the nightly configuration without effect, or with another effect than intended."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.counting_options import MOST_TOPICS, PilotOptions
from streaming_moments.pipelines.nightly.config import CreateSection, NightlyConfig
from streaming_moments.storage.counting.languages import AUTO
from streaming_moments.storage.files.noted_options import without_effect
from streaming_moments.storage.files.urls import shard_name
from streaming_moments.storage.store.store import MomentStore

_PILOT = frozenset(one.name for one in fields(PilotOptions))
_REDRAWN = _PILOT | {"halves"}  # keys that a `rebase` can change, by options of the same name


def unused_options(config: NightlyConfig) -> Iterator[str]:
    """Yield a warning if [storage_options] has keys, but all configured paths are local."""
    merged = () if config.merge is None else config.merge.from_
    places = (config.store, config.output, *config.shards, *merged)
    if line := without_effect("[storage_options]", config.storage_options, places):
        yield line


def left_out_topics(config: NightlyConfig, store: MomentStore | None) -> Iterator[str]:
    """Yield a warning that names the numbers of topics that are too large for a store's basis.

    Raises InvalidInput if no number fits, or if a number is above the `max_topics` of a new store.
    """
    numbers, made = config.refit.topics, config.create
    if not config.refit.topical:
        return
    largest = MOST_TOPICS if made is None else made.max_topics or MOST_TOPICS
    if store is None and made is not None and max(numbers) > largest:
        beyond = [number for number in numbers if number > largest]
        raise InvalidInput(
            f"[refit] topics contains {_listing(beyond)}, more than [create] max_topics "
            f"({largest}); raise max_topics or lower topics"
        )
    if store is None or store.kind != config.refit.family.kind:
        return
    most = store.basis.columns
    beyond = [number for number in numbers if number > most]
    remedy = f"ask for at most {most}"
    larger = min(max(beyond, default=0), store.basis.core)
    if larger > most:
        words = ["streaming-moments", "rebase", shard_name(store.url), "--max-topics", str(larger)]
        remedy += f", or raise the limit by `{shlex.join(words)}`, which counts all shards again"
    if len(beyond) == len(numbers):
        raise InvalidInput(
            f"[refit] topics is {_listing(beyond)}, but the basis of the store has {most} columns; "
            f"{remedy}"
        )
    if beyond:
        yield (
            f"Left out {_listing(beyond)} of [refit] topics, because the basis of the store has "
            f"{most} columns; {remedy}."
        )


def changed_keys(section: CreateSection | None, store: MomentStore) -> Iterator[str]:
    """Yield a warning if the store was created with other values than [create] has.

    The warning names the keys. Compares only keys that the file contains and whose values the store
    records.
    """
    if section is None or section.kind != store.kind:
        return
    changed = {
        key: was
        for key, was in _recorded(section, store).items()
        if key in section.given and getattr(section, key) != was
    }
    if not changed:
        return
    shown = ", ".join(
        f"{key} ({_shown(getattr(section, key))}, was {_shown(was)})"
        for key, was in changed.items()
    )
    yield (
        f"[create] has no effect on a store that exists, and these keys differ from the store: "
        f"{shown}; {'; '.join(_remedies(section, store, [*changed]))}"
    )


def _remedies(section: CreateSection, store: MomentStore, changed: Sequence[str]) -> Iterator[str]:
    flags = {key: _flag(key, getattr(section, key)) for key in changed if key in _REDRAWN}
    if flags:
        words = [word for several in flags.values() for word in several]
        command = shlex.join(["streaming-moments", "rebase", shard_name(store.url), *words])
        yield f"`{command}` counts all again"
    if others := [key for key in changed if key not in flags]:
        yield f"{', '.join(others)} need{'s' * (len(others) == 1)} a new store"


def _flag(key: str, value: Any) -> list[str]:
    """Return the words of the command `rebase` that set a key to a value."""
    if isinstance(value, bool):
        return [f"--{'' if value else 'no-'}{key}"]
    return [f"--{key.replace('_', '-')}", str(value)]


def _recorded(section: CreateSection, store: MomentStore) -> dict[str, Any]:
    """Return the values that the store records, by key of [create].

    Leaves out languages and phrases if `create` chose them from a sample. The store records the
    user's stop words together with the stop words of the language. So stop words are left out if
    all stop words of the section are in the store.
    """
    lineage = store.commit.lineage
    found = {key: one for key, one in (lineage.pilot or {}).items() if key in _PILOT}
    if not lineage.vocabulary:
        return found  # only stores of documents record more
    form, dates = store.form, lineage.dates
    found |= {
        "format": form.kind,
        "text_column": form.text_column,
        "ids_column": form.ids_column,
        "counts_column": form.counts_column,
        "codocuments": lineage.codocuments,
        "halves": lineage.halves,
    }
    if section.form.categories != form.categories:
        found["categories"] = form.categories
    if dates is not None:
        found |= {"date_column": store.dates.column, "date_pattern": store.dates.pattern}
    policy = store.policy
    if policy is None:
        return found
    found |= {
        "min_length": policy.min_length,
        "passage_words": policy.passage_words,
        "tokeniser": policy.tokeniser,
    }
    wanted = section.policy
    if AUTO not in section.languages and wanted.languages != policy.languages:
        found["languages"] = policy.languages or ("none",)
    if not {*wanted.stop_words} <= {*policy.stop_words} and section.stop_words:
        own = {*section.stop_words}
        found["stop_words"] = tuple(word for word in policy.stop_words if word in own)
    if wanted.phrase_words is None and wanted.phrases != policy.phrases:
        found["phrases"] = tuple(" ".join(words) for words in policy.phrases)
    return found


def _shown(value: Any) -> str:
    """Format a value as in TOML."""
    if value is None:
        return "not set"
    return json.dumps([*value] if isinstance(value, tuple) else value, ensure_ascii=False)


def _listing(numbers: Sequence[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)
