"""Foundations: definitions of a store's statistics, immutable and named by fingerprint."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import StrictInt, TypeAdapter

from streaming_moments.errors import ForeignStatistics, StoreError, short
from streaming_moments.statistics.base import Foundation
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.tables.columns import CATEGORIES
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.registry import KINDS
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.commits import Era, Lineage
from streaming_moments.storage.log.layout import basis_folder, vocabulary_file
from streaming_moments.storage.log.manifests import (
    FileRecord,
    files_from_json,
    files_to_json,
    misfits,
    read_files,
)
from streaming_moments.storage.log.schema import Count, checked
from streaming_moments.storage.npy_files import npy_array


@dataclass(frozen=True)
class _VocabularyJson:
    terms: tuple[str, ...]
    core: Count
    policy_fingerprint: str
    token_ids: tuple[StrictInt, ...] | None
    policy: Mapping[str, Any] | None


_VOCABULARY = TypeAdapter(_VocabularyJson)


def require_matching(vocabulary: Vocabulary, policy: TokenPolicy | None, basis: Basis) -> None:
    """Raise ForeignStatistics if the basis or token policy belongs to another vocabulary."""
    untold = "" if basis.table is None else CATEGORIES
    expected = policy.fingerprint if policy is not None else untold
    if vocabulary.policy != expected:
        raise ForeignStatistics(
            f"the vocabulary was made with token policy {short(vocabulary.policy)}, not with "
            f"{short(expected)}; give the policy that made the vocabulary"
        )
    mine = (basis.vocabulary, basis.n_words, basis.core)
    if mine != (vocabulary.fingerprint, vocabulary.n_words, vocabulary.core):
        raise ForeignStatistics(
            f"the basis belongs to vocabulary {short(basis.vocabulary)} ({basis.n_words} words, "
            f"core {basis.core}), not to {short(vocabulary.fingerprint)} ({vocabulary.n_words} "
            f"words, core {vocabulary.core}); make the basis from a pilot of this vocabulary"
        )


def write_vocabulary(folder: Folder, vocabulary: Vocabulary, policy: TokenPolicy | None) -> None:
    """Write a vocabulary and the token policy that made it."""
    content = {
        "terms": vocabulary.terms,
        "core": vocabulary.core,
        "token_ids": vocabulary.token_ids,
        "policy_fingerprint": vocabulary.policy,
        "policy": policy.to_json() if policy is not None else None,
    }
    folder.write(vocabulary_file(vocabulary.fingerprint), seal(content))


def read_vocabulary(folder: Folder, fingerprint: str) -> tuple[Vocabulary, TokenPolicy | None]:
    """Read a vocabulary and its token policy.

    Raises InvalidInput if the policy is of another version of the tokeniser.
    """
    name = vocabulary_file(fingerprint)
    where = f"{folder.url}/{name}"
    content = unseal(folder.read(name), where)
    found = checked(_VOCABULARY, content, f"{where} is not a valid vocabulary")
    vocabulary = Vocabulary(found.terms, found.core, found.policy_fingerprint, found.token_ids)
    if vocabulary.fingerprint != fingerprint:
        raise StoreError(
            f"{where} holds another vocabulary, {short(vocabulary.fingerprint)}; restore it from a "
            "copy"
        )
    return vocabulary, None if found.policy is None else TokenPolicy.from_json(found.policy)


def write_foundation(folder: Folder, foundation: Foundation) -> None:
    """Write a foundation (the definition of a store's statistics) under its fingerprint."""
    name, description = _place(foundation, foundation.fingerprint)
    arrays, attributes = foundation.parts()
    contents = {f"{key}.npy": _npy(array) for key, array in arrays.items()}
    records = files_to_json(FileRecord.of(*content) for content in contents.items())
    for path, content in contents.items():
        folder.write(f"{name}/{path}", content)
    folder.write(f"{name}/{description}", seal({**attributes, "files": records}))


def read_foundation(folder: Folder, lineage: Lineage, era: Era | None = None) -> Any:
    """Read the `Foundation` of a lineage, or of an earlier vocabulary of it (`era`).

    Raises StoreError if a file is missing, damaged or superfluous, or if this version of the
    package lacks the kind of statistics.
    """
    kind = lineage.kind or CountsFoundation.kind
    if kind not in KINDS:
        raise StoreError(
            f"{folder.url} holds statistics of kind {kind[:100]!r}, and this version of "
            f"streaming-moments supports {', '.join(KINDS)}; install a newer version"
        )
    fingerprint = lineage.basis if era is None else era.basis
    name, description = _place(KINDS[kind], fingerprint)
    where = f"{folder.url}/{name}/{description}"
    content = unseal(folder.read(f"{name}/{description}"), where)
    files = files_from_json(content.pop("files", None), where)
    try:
        found = folder.sizes(name)
        found.pop(description, None)
        for problem, remedy in misfits(f"{folder.url}/{name}", found, files):
            raise StoreError(f"{problem}; {remedy}")
        arrays = {
            path.removesuffix(".npy"): npy_array(data)
            for path, data in read_files(folder, name, files, files).items()
        }
        content |= {
            "codocuments": lineage.codocuments,
            "halves": lineage.halves,
            "by_content": lineage.halves_by_content,
            "first_words": lineage.eras[0].words if lineage.eras else None,
        }
        foundation = KINDS[kind].from_parts(arrays, content)
    except (LookupError, TypeError, ValueError, ArithmeticError, EOFError) as error:
        raise StoreError(
            f"{where} is not a valid basis ({error}); restore it from a copy"
        ) from error
    if foundation.fingerprint != fingerprint:
        raise StoreError(
            f"{where} holds another basis, {short(foundation.fingerprint)}; restore it from a copy"
        )
    return foundation


def files_of_lineage(folder: Folder, lineage: Lineage) -> dict[str, bytes]:
    """Return the bytes of the files that define a lineage and its earlier vocabularies, by path."""
    kind = KINDS[lineage.kind or CountsFoundation.kind]
    words = [lineage.vocabulary, *(era.vocabulary for era in lineage.eras)]
    names = [vocabulary_file(one) for one in words if one]
    for basis in (lineage.basis, *(era.basis for era in lineage.eras)):
        place, _ = _place(kind, basis)
        names += [f"{place}/{path}" for path in folder.sizes(place)]
    return dict(zip(names, folder.read_all(names), strict=True))


def _place(kind: Foundation | type[Foundation], fingerprint: str) -> tuple[str, str]:
    """Return the folder of a foundation, and the name of the file in it that has its description.

    Foundations of statistics with length weights have a folder of their own, as in the first format
    of stores.
    """
    if kind.by_length:
        return basis_folder(fingerprint), "basis.json"
    return f"foundations/{fingerprint}", "foundation.json"


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
