"""Foundations: the vocabulary and the basis of a store, immutable and named by fingerprint."""

from __future__ import annotations

import io

import numpy as np

from streaming_moments.basis import Basis
from streaming_moments.errors import ForeignStatistics, StoreError, short
from streaming_moments.storage.folders import Folder
from streaming_moments.storage.layout import basis_folder, vocabulary_file
from streaming_moments.storage.manifests import (
    FileRecord,
    files_from_json,
    files_to_json,
    misfits,
    read_files,
)
from streaming_moments.storage.sealed import seal, unseal
from streaming_moments.storage.tokens import TokenPolicy
from streaming_moments.vocabulary import Vocabulary

_MATRIX = "Q.npy"
_DESCRIPTION = "basis.json"


def require_matching(vocabulary: Vocabulary, policy: TokenPolicy | None, basis: Basis) -> None:
    """Refuse a basis or a token policy that is not the vocabulary's.

    Raises
    ------
    ForeignStatistics
        Names both fingerprints.
    """
    expected = policy.fingerprint if policy is not None else ""
    if vocabulary.policy != expected:
        raise ForeignStatistics(
            f"the vocabulary was made with token policy {short(vocabulary.policy)}, given is "
            f"{short(expected)}; give the policy the vocabulary was made with"
        )
    mine = (basis.vocabulary, basis.n_words, basis.core)
    if mine != (vocabulary.fingerprint, vocabulary.n_words, vocabulary.core):
        raise ForeignStatistics(
            f"the basis is of vocabulary {short(basis.vocabulary)} ({basis.n_words} words, core "
            f"{basis.core}), given is {short(vocabulary.fingerprint)} ({vocabulary.n_words} "
            f"words, core {vocabulary.core}); make the basis from a pilot of this vocabulary"
        )


def write_vocabulary(folder: Folder, vocabulary: Vocabulary, policy: TokenPolicy | None) -> None:
    """Write a vocabulary and the token policy it was made with."""
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

    Raises
    ------
    StoreError
        The file is missing, damaged, or of another vocabulary.
    InvalidInput
        The policy is of another version of the tokeniser.
    """
    name = vocabulary_file(fingerprint)
    where = f"{folder.url}/{name}"
    content = unseal(folder.read(name), where)
    try:
        ids = content["token_ids"]
        vocabulary = Vocabulary(
            tuple(content["terms"]),
            int(content["core"]),
            str(content["policy_fingerprint"]),
            None if ids is None else tuple(ids),
        )
        described = content["policy"]
    except (KeyError, TypeError) as error:
        raise StoreError(f"{where} lacks an entry ({error!r}); restore it from a copy") from error
    if vocabulary.fingerprint != fingerprint:
        raise StoreError(
            f"{where} holds vocabulary {short(vocabulary.fingerprint)}; restore it from a copy"
        )
    return vocabulary, None if described is None else TokenPolicy.from_json(described)


def write_basis(folder: Folder, basis: Basis) -> None:
    """Write a basis."""
    name = basis_folder(basis.fingerprint)
    buffer = io.BytesIO()
    np.save(buffer, basis.matrix, allow_pickle=False)
    matrix = buffer.getvalue()
    content = {
        "n_words": basis.n_words,
        "vocabulary": basis.vocabulary,
        "files": files_to_json([FileRecord.of(_MATRIX, matrix)]),
    }
    folder.write(f"{name}/{_MATRIX}", matrix)
    folder.write(f"{name}/{_DESCRIPTION}", seal(content))


def read_basis(folder: Folder, fingerprint: str) -> Basis:
    """Read a basis.

    Raises
    ------
    StoreError
        A file is missing, damaged, of another basis, or too much.
    """
    name = basis_folder(fingerprint)
    where = f"{folder.url}/{name}/{_DESCRIPTION}"
    content = unseal(folder.read(f"{name}/{_DESCRIPTION}"), where)
    try:
        files = files_from_json(content["files"], where)
        found = folder.sizes(name)
        found.pop(_DESCRIPTION, None)
        for problem, remedy in misfits(f"{folder.url}/{name}", found, files):
            raise StoreError(f"{problem}; {remedy}")
        matrix = read_files(folder, name, files, [_MATRIX])[_MATRIX]
        basis = Basis(
            np.load(io.BytesIO(matrix), allow_pickle=False),
            int(content["n_words"]),
            str(content["vocabulary"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{where} describes no basis ({error}); restore it from a copy") from error
    if basis.fingerprint != fingerprint:
        raise StoreError(f"{where} holds basis {short(basis.fingerprint)}; restore it from a copy")
    return basis
