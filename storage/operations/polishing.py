"""Polishing: stores the sums of passes over the documents until the improved model is committed.

These sums depend only on the documents and the model. If two processes write the same file, they
therefore write the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.passes.polishing import ExpectedCounts
from streaming_moments.statistics.expected_sums import ExpectedSums
from streaming_moments.storage.files.arrays import (
    ArraySpec,
    encode_chunks,
    encode_metadata,
    read_whole,
)
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.layout import POLISHING, pass_folder
from streaming_moments.storage.log.manifests import (
    MANIFEST,
    FileRecord,
    files_from_json,
    files_to_json,
    read_files,
)


@dataclass(frozen=True, eq=False)
class PassSums:
    """Sums of expected counts from a pass over the documents of some shards, to improve a model.

    `shards` is the number of shards read. `bad` has the name of each shard that was skipped because
    it is unreadable, and the reason.
    """

    expected: ExpectedSums
    shards: int
    bad: tuple[tuple[str, str], ...] = ()

    def add(self, other: PassSums) -> PassSums:
        """Return the total of this and `other`: sums, shards and unreadable shards.

        Changes `expected` in place.
        """
        expected = self.expected.add(other.expected)
        return PassSums(expected, self.shards + other.shards, (*self.bad, *other.bad))


@dataclass(frozen=True)
class PolishingFolder:
    """Folder with the sums of all passes that polish one model.

    `polishing` is a digest of the model, the documents, and how they are read. `kept` is the class
    of the expected sums.
    """

    folder: Folder
    polishing: str
    kept: type[ExpectedSums] = ExpectedCounts

    def find(self, number: int, part: str) -> PassSums | None:
        """Read the sums of one part of pass `number`; None if missing, incomplete or damaged."""
        name = pass_folder(self.polishing, number, part)
        where = f"{self.folder.url}/{name}"
        manifest = self.folder.find(f"{name}/{MANIFEST}")
        if manifest is None:
            return None
        try:
            files = files_from_json(unseal(manifest, where).get("files"), where)
        except StoreError:
            # a power cut can damage the manifest; the caller then computes this part of the pass
            # again
            return None
        found = self.folder.find_all([f"{name}/{path}" for path in files])
        if any(content is None for content in found):
            return None
        try:
            arrays, told = read_whole(read_files(self.folder, name, files, files), where)
        except StoreError:
            return None
        bad = tuple((str(url), str(reason)) for url, reason in told["bad"])
        return PassSums(self.kept.from_parts(arrays, told), told["shards"], bad)

    def write(self, number: int, part: str, sums: PassSums) -> None:
        """Write the sums of one part of pass `number`."""
        name = pass_folder(self.polishing, number, part)
        arrays, numbers = sums.expected.parts()
        told = {**numbers, "shards": sums.shards, "bad": [list(pair) for pair in sums.bad]}
        specs = {key: ArraySpec.whole(array, key) for key, array in arrays.items()}
        files = {**encode_metadata(specs, told), **encode_chunks(specs, arrays)}
        for path, content in files.items():
            self.folder.write(f"{name}/{path}", content)
        records = files_to_json(FileRecord.of(*file) for file in files.items())
        # write the manifest last, because it shows that all files exist
        self.folder.write(f"{name}/{MANIFEST}", seal({"files": records}))

    def summed(self, number: int, parts: Sequence[str]) -> PassSums:
        """Add up the sums of at least one part of a pass, read one after another.

        Raises StoreError if a part is missing or damaged, and BoundExceeded if sums are too large.
        """
        if not parts:
            raise InvalidInput("the pass has no shards; give at least one")
        total: PassSums | None = None
        for part in parts:
            found = self.find(number, part)
            if found is None:
                raise StoreError(
                    f"{self.folder.url}/{pass_folder(self.polishing, number, part)} has been "
                    "deleted or damaged; run this again"
                )
            total = found if total is None else total.add(found)
        assert total is not None
        return total

    def delete(self) -> None:
        """Delete all sums in the folder. Call this after the commit of the model fitted to them."""
        place = f"{POLISHING}/{self.polishing}"
        self.folder.delete([f"{place}/{file.path}" for file in self.folder.files(place)])
