"""Idempotency: a key stands for the content of one request, so a repeated request adds nothing.

A claim is a file that binds a key to the hash of the first content sent with it. It is created only
if it does not exist, so one of two simultaneous requests wins.
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
_NOTHING = "0" * 64  # in claims whose digest a purge removed; it is the digest of no content


class KeyReused(InvalidInput):
    """The idempotency key of a request was used before for other content."""


@dataclass(frozen=True)
class Claim:
    """Binds an idempotency key to the SHA-256 of one content.

    `after` is the number of a seal that existed before the claim, so that the documents of the key
    are in later seals.
    """

    digest: Digest
    after: Count

    @property
    def is_forgotten(self) -> bool:
        """Whether a purge removed the hash; all further requests with the key are then refused."""
        return self.digest == _NOTHING

    def require(self, digest: str) -> None:
        """Raise `KeyReused` unless `digest` is that of the first content sent with the key."""
        if digest != self.digest:
            raise KeyReused(
                "this Idempotency-Key was used before for other documents; give new documents a "
                "new key"
            )

    def forgotten(self) -> Claim:
        """Return the claim without the hash of its content."""
        return replace(self, digest=_NOTHING)

    def sealed(self) -> bytes:
        """Encode the claim as a file."""
        return seal({"digest": self.digest, "after": self.after})

    @classmethod
    def unsealed(cls, data: bytes, where: str) -> Claim:
        """Decode the claim in a file; a StoreError if it is damaged."""
        return checked(_CLAIM, unseal(data, where), f"{where} is not a valid claim")


_CLAIM: TypeAdapter[Claim] = TypeAdapter(Claim)


@dataclass(frozen=True)
class Claims:
    """The claims of an inbox, each in its own file."""

    folder: Folder

    def claim(self, receipt: str, digest: str, after: int) -> Claim:
        """Bind a key to a content, and return the claim in force, which may be an earlier one.

        Raises StoreError if the claim cannot be written or read.

        receipt : receipt of the key
        digest : SHA-256 of the content
        after : number of an existing seal
        """
        mine = Claim(digest, after)
        name = claim_file(receipt)
        found = create_once(self.folder, name, mine.sealed())
        return mine if found is None else Claim.unsealed(found, f"{self.folder.url}/{name}")

    def renew(self, receipt: str, claim: Claim) -> None:
        """Replace the stored claim of a receipt; raises StoreError if that fails."""
        self.folder.write(claim_file(receipt), claim.sealed())

    def claims_of(self, receipts: Sequence[str]) -> dict[str, Claim | None]:
        """Map some receipts to their claims; None for a receipt without one."""
        names = [claim_file(receipt) for receipt in receipts]
        found = self.folder.find_all(names) if names else []
        return {
            receipt: None if data is None else Claim.unsealed(data, f"{self.folder.url}/{name}")
            for receipt, name, data in zip(receipts, names, found, strict=True)
        }


def claim_file(receipt: str) -> str:
    """Return the name of the file of a key's claim."""
    return f"{CLAIMS}/{receipt}{_ENDING}"


def is_claim_file(name: str) -> bool:
    """Whether a file has the name of a claim."""
    return name.endswith(_ENDING) and is_of_key(name.removesuffix(_ENDING))


def is_refused(one: Submission, claims: Mapping[str, Claim]) -> bool:
    """Whether the key of a submission is bound to other content."""
    claim = claims.get(one.receipt)
    return claim is not None and claim.digest != one.digest


def come_first(
    submissions: Sequence[Submission], claims: Mapping[str, Claim], seen: set[str]
) -> tuple[list[tuple[int, Submission]], list[str]]:
    """Return the new submissions of a batch, each with its place in it, and the refused receipts.

    A submission whose receipt is in `seen` is a repetition. The function adds the receipts of new
    submissions to `seen`.
    """
    kept, refused = list[tuple[int, Submission]](), list[str]()
    for place, one in enumerate(submissions):
        if is_refused(one, claims):
            refused.append(one.receipt)
        elif one.receipt not in seen:
            seen.add(one.receipt)
            kept.append((place, one))
    return kept, refused
