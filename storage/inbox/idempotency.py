"""Idempotency: a key stands for one content alone, and what comes again under it adds nothing.

A claim, a file that is created only if it is not there, binds a key to the hash of the content that
came first; of two that come at once one wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.batches import Submission
from streaming_moments.storage.inbox.receipts import is_of_key
from streaming_moments.storage.log.schema import Count, Digest, checked

CLAIMS = "claims"
_ENDING = ".json"
_NOTHING = "0" * 64  # in place of a digest: no content has it


class KeyReused(InvalidInput):
    """Another content came under the same key before."""


@dataclass(frozen=True)
class Claim:
    """Binds a key to the SHA-256 of one content.

    `after` is the number of a seal that existed before.
    """

    digest: Digest
    after: Count

    @property
    def is_forgotten(self) -> bool:
        """Whether it tells nothing of what came under the key, and takes none of it again."""
        return self.digest == _NOTHING

    def require(self, digest: str) -> None:
        """Refuse another content than that which came first; a `KeyReused`."""
        if digest != self.digest:
            raise KeyReused(
                "the Idempotency-Key came with other documents before; give new documents a key of "
                "their own"
            )

    def forgotten(self) -> Claim:
        """The claim without the hash of what came."""
        return replace(self, digest=_NOTHING)

    def sealed(self) -> bytes:
        """File of it."""
        return seal({"digest": self.digest, "after": self.after})

    @classmethod
    def unsealed(cls, data: bytes, where: str) -> Claim:
        """Decode the claim in a file; a StoreError if it is damaged."""
        return checked(_CLAIM, unseal(data, where), f"{where} is no claim")


_CLAIM: TypeAdapter[Claim] = TypeAdapter(Claim)


@dataclass(frozen=True)
class Claims:
    """The claims of an inbox, a file each in its folder."""

    folder: Folder

    def claim(self, receipt: str, digest: str, after: int) -> Claim:
        """Let a key stand for a content; the claim that holds, which may be an earlier one.

        Parameters
        ----------
        receipt : str
            Of the key.
        digest : str
            Of the content.
        after : int
            Number of a seal that there is.

        Raises
        ------
        StoreError
            The claim cannot be written or read.
        """
        mine = Claim(digest, after)
        name = claim_file(receipt)
        found = create_once(self.folder, name, mine.sealed())
        return mine if found is None else Claim.unsealed(found, f"{self.folder.url}/{name}")

    def renew(self, receipt: str, claim: Claim) -> None:
        """Let a claim that there is say a later seal before that of its key; errors as `claim`."""
        self.folder.write(claim_file(receipt), claim.sealed())

    def claims_of(self, receipts: Sequence[str]) -> dict[str, Claim | None]:
        """The claims of some keys; None where nothing came under one."""
        names = [claim_file(receipt) for receipt in receipts]
        found = self.folder.find_all(names) if names else []
        return {
            receipt: None if data is None else Claim.unsealed(data, f"{self.folder.url}/{name}")
            for receipt, name, data in zip(receipts, names, found, strict=True)
        }


def claim_file(receipt: str) -> str:
    """Name of the claim of a key."""
    return f"{CLAIMS}/{receipt}{_ENDING}"


def is_claim_file(name: str) -> bool:
    """Whether a file in the folder of claims has the name of one; others are left alone."""
    return name.endswith(_ENDING) and is_of_key(name.removesuffix(_ENDING))


def is_refused(one: Submission, claims: Mapping[str, Claim]) -> bool:
    """Whether the key of a submission stands for another content than it has."""
    claim = claims.get(one.receipt)
    return claim is not None and claim.digest != one.digest


def come_first(
    submissions: Sequence[Submission], claims: Mapping[str, Claim], seen: set[str]
) -> tuple[list[tuple[int, Submission]], list[str]]:
    """Submissions of a batch that come for the first time, with their places; receipts refused.

    What comes again is of a receipt that was `seen`; those that come first are added to it.
    """
    kept, refused = list[tuple[int, Submission]](), list[str]()
    for place, one in enumerate(submissions):
        if is_refused(one, claims):
            refused.append(one.receipt)
        elif one.receipt not in seen:
            seen.add(one.receipt)
            kept.append((place, one))
    return kept, refused
