"""Commits as JSON: the content of a commit's file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter

from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.commits import Commit, Lineage, ModelSource, SegmentReference
from streaming_moments.storage.log.schema import Extensible, checked

_EXPIRED = "expired"
_LEFT_OUT = (
    *("halves", "halves_by_content", "labels", "fence", "expired", "sums", "whole"),
    *("origins", "purged", "within", "transaction", "like"),
)


def commit_to_json(commit: Commit) -> dict[str, Any]:
    """Convert a commit to an object for JSON, including the keys of later versions."""
    content = _flat(commit)
    content["lineage"] = lineage_to_json(commit.lineage)
    content["segments"] = [_flat(segment) for segment in commit.segments]
    content["models"] = {name: _flat(model) for name, model in commit.models.items()}
    content["tags"] = dict(commit.tags)
    content["skipped"] = [list(entry) for entry in commit.skipped]
    if commit.sums:
        content["sums"] = [_flat(one) for one in commit.sums]
    if commit.expired:
        content["expired"] = [list(pair) for pair in commit.expired]
    if commit.origins:
        content["origins"] = {name: _flat(one) for name, one in commit.origins.items()}
    del content["forgotten"]
    if commit.forgotten:
        content["forgotten"] = commit.forgotten.to_json()
    if commit.staged is not None:
        content["staged"] = {
            **_flat(commit.staged),
            "lineage": lineage_to_json(commit.staged.lineage),
            "segments": [_flat(segment) for segment in commit.staged.segments],
        }
    return content


def lineage_to_json(lineage: Lineage) -> dict[str, Any]:
    """Convert a lineage to an object for JSON, including the keys of later versions."""
    return _flat(lineage)


def lineage_from_json(content: object, where: str) -> Lineage:
    """Decode a lineage that `lineage_to_json` wrote; raises StoreError for any other content."""
    return checked(_LINEAGE, content, f"{where} has no valid lineage")


def expired_to_json(commit: Commit) -> dict[str, Any]:
    """Return the content that replaces an expired commit.

    As long as a file has this content, no other commit can take the number of the version. The
    writer of the commit can still recognise it as its own.
    """
    return {
        "version": commit.version,
        "parent": commit.parent,
        "transaction": commit.transaction,
        _EXPIRED: True,
    }


def is_expired(content: Mapping[str, Any]) -> bool:
    """Whether the content of a commit's file is that of an expired commit."""
    return content.get(_EXPIRED) is True and "lineage" not in content


def commit_from_json(content: dict[str, Any], where: str) -> Commit:
    """Decode a commit that `commit_to_json` wrote.

    Raises StoreError also for a name that could lead out of the store.
    """
    return checked(_COMMIT, content, f"{where} is not a valid commit")


def _consistent(commit: Commit) -> Commit:
    aside = () if commit.staged is None else commit.staged.segments
    if any(segment.sign not in (1, -1) for segment in commit.segments):
        raise ValueError("the sign of a segment is neither 1 nor -1")
    if any(segment.sign != 1 for segment in aside):
        raise ValueError("the sign of a staged segment is not 1")
    ends = [-2, *(last for _, last in commit.expired)]
    for before, (first, last) in zip(ends, commit.expired, strict=False):
        if not before + 1 < first <= last < commit.version:
            raise ValueError("the expired versions are not ranges of earlier versions")
    named = {(part.origin or "").partition("/")[0] for part in commit.segments} - {""}
    if not named <= commit.origins.keys():
        raise ValueError("a segment names a missing origin")
    if not set(commit.tags.values()) <= commit.models.keys():
        raise ValueError("a tag names a missing model")
    _require_vocabularies(commit.lineage, commit.segments)
    if commit.staged is not None:
        _require_vocabularies(commit.staged.lineage, aside)
    return commit


_LINEAGE = TypeAdapter(Lineage)
_COMMIT = TypeAdapter(Annotated[Commit, AfterValidator(_consistent)])


def _flat(part: Extensible) -> dict[str, Any]:
    # omit fields without a value, so that the result is as before these fields existed
    written = {name: value for name, value in vars(part).items() if value is not None}
    unknown = written.pop("unknown")
    if isinstance(written.get("dates"), DateRange):
        written["dates"] = written["dates"].to_json()
    if isinstance(written.get("source"), ModelSource):
        written["source"] = _flat(written["source"])
    for name in _LEFT_OUT:
        if not written.get(name, True):  # omit it, as in commits before the field existed
            del written[name]
    if eras := written.pop("eras", ()):
        written["eras"] = [_flat(era) for era in eras]
    return {**written, **unknown}


def _require_vocabularies(lineage: Lineage, segments: tuple[SegmentReference, ...]) -> None:
    if lineage.kind is None and not lineage.vocabulary:
        raise ValueError("the lineage has no vocabulary")
    words = [era.words for era in lineage.eras]
    if words != sorted(set(words)):
        raise ValueError(f"the sizes of the vocabularies, {words}, do not increase")
    if not {part.words for part in segments} <= {None, *words}:
        raise ValueError("a segment has a vocabulary that the lineage never had")
