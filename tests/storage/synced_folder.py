"""A folder that records which of its folders were synced, in order."""

from dataclasses import dataclass, field

from streaming_moments.storage.files.folders import Folder


@dataclass(frozen=True)
class Synced(Folder):
    """A folder on any storage that records each sync."""

    synced: list = field(default_factory=list, compare=False)

    def sync(self, name):
        self.synced.append(name)
        super().sync(name)
