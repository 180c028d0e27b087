"""The step of the nightly run that finds its shards, and names patterns that match nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fsspec.utils import get_protocol

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.nightly.config import NightlyConfig
from streaming_moments.storage.files.backends import is_local
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.seals import SEALED
from streaming_moments.storage.listing import NothingMatches, list_shards
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class FoundShards:
    """Shards that a nightly run found, and problems with the patterns of its configuration.

    told : notes on names of existing files that, read as patterns, would also match other files
    unmatched : patterns that match nothing, except those of an inbox
    inbox_is_empty : whether a pattern names the inbox of a service that has no documents yet
    """

    shards: Sequence[Shard]
    told: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    inbox_is_empty: bool = False

    @property
    def nothing(self) -> str:
        """Say that no pattern matches anything; empty if one does, or names an empty inbox."""
        if self.shards or self.inbox_is_empty or not self.unmatched:
            return ""
        return f"no pattern of shards matches anything: {in_folder(self.unmatched)}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the patterns, if the run can continue nevertheless.

        A run can continue if the store exists, or if its shards are in an inbox that is still
        empty.
        """
        if self.nothing:
            return (*self.told, f"{self.nothing}; check the patterns")
        return (*self.told, *map(str, map(_of_pattern, self.unmatched)))

    def require_data(self, config: NightlyConfig, folder: Folder) -> None:
        """Raise InvalidInput if the store is missing and there is no shard to create it from."""
        if config.create is not None and self.nothing:
            raise InvalidInput(
                f"there is no store at {folder.url}, and {self.nothing}; correct shards, or run "
                "the command in the folder to which relative patterns refer"
            )


def found_shards(config: NightlyConfig, store: MomentStore | None) -> FoundShards:
    """List the shards for a nightly run; `store` may be missing before the first run."""
    if not config.shards:
        return FoundShards(())  # the store has no shards of its own, but only merges other stores
    kind = None if config.create is None else config.create.format
    told, missing = list[str](), list[str]()
    listed = list_shards(
        config.shards,
        config.storage_options,
        kind if store is None else store.form.kind,
        missing=lambda error: missing.append(error.url),
        tell=told.append,
        apart=lambda name: store is None or store.ledger().find(name) is None,
    )
    # do not report the pattern of an inbox: a new service has no documents yet
    empty = [url for url in missing if _is_inbox(url, config)]
    unmatched = tuple(url for url in missing if url not in empty)
    return FoundShards(listed, tuple(told), unmatched, bool(empty))


def without_match(pattern: str) -> str:
    """Say that a local pattern matches no shard now; empty if it matches one.

    Also empty for a URL of a bucket, because its credentials may not be set yet.
    """
    if not is_local(get_protocol(pattern)):
        return ""
    try:
        list_shards([pattern])
    except ShardError as error:
        matched = not isinstance(error, NothingMatches)
        return str(error) if matched else f"no file matches {in_folder([pattern])} now"
    return ""


def in_folder(patterns: Sequence[str]) -> str:
    """List patterns, and name the folder to which relative ones refer.

    Examples
    --------
    >>> in_folder(["/corpus/*.txt", "s3://corpus/*.txt"])
    '/corpus/*.txt, s3://corpus/*.txt'
    """
    local = [one for one in patterns if is_local(get_protocol(one))]
    relative = any("://" not in one and not Path(one).is_absolute() for one in local)
    return f"{', '.join(patterns)}{f' (relative to {Path.cwd()})' if relative else ''}"


def _of_pattern(url: str) -> NothingMatches:
    return NothingMatches(url, "matches nothing; check the pattern")


def _is_inbox(pattern: str, config: NightlyConfig) -> bool:
    """Whether a pattern names the documents that a service accepted.

    Recognises the inbox beside the store, and the pattern that the documentation suggests.
    """
    own = f"{config.store.rstrip('/')}-inbox/{SEALED}/"
    return pattern.startswith(own) or pattern.endswith(f"/{SEALED}/**/*.jsonl")
