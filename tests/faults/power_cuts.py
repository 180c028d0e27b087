"""What a power cut leaves of a disk: what was synced, and of the rest whatever chance leaves.

The content of a file lasts once the file was synced, a name in a folder once the folder was synced
after the name was given or taken.
"""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(eq=False)
class File:
    content: bytes = b""
    synced: bool = False

    def survivor(self, rng, loss):
        """Content after the cut: any part of what was not synced, or zeros in its place."""
        if self.synced or rng.random() >= loss:
            return self.content
        kept = rng.randrange(len(self.content) + 1)
        zeros = rng.choice([0, len(self.content) - kept])
        return rng.choice([b"", self.content[:kept] + bytes(zeros)])


@dataclass(eq=False)
class Names:
    """A folder: what each name stood for, from the last sync of the folder until now."""

    slots: dict = field(default_factory=dict)

    def get(self, name):
        return self.slots.get(name, [None])[-1]

    def put(self, name, entry):
        self.slots.setdefault(name, [None]).append(entry)

    def sync(self):
        self.slots = {name: entries[-1:] for name, entries in self.slots.items()}

    def survivors(self, rng, loss):
        """What each name stands for after the cut: all of it was true once since the sync."""
        for name, entries in self.slots.items():
            lost = len(entries) > 1 and rng.random() < loss
            entry = rng.choice(entries[:-1]) if lost else entries[-1]
            if entry is not None:
                yield name, entry


class CutDisk:
    """The operations on what is below a folder, carried out in memory.

    Parameters
    ----------
    root : str
        The folder; itself it lasts.
    """

    def __init__(self, root):
        self.above = f"{root}/"
        self.names = Names()

    def apply(self, operation):
        if not f"{operation.path}/".startswith(self.above):
            return  # it lasts already
        if operation.kind == "sync folder":
            self._at(operation.path).sync()
        elif operation.kind == "write":
            file = self._at(operation.path)
            file.content, file.synced = file.content + operation.content, False
        elif operation.kind == "sync file":
            self._at(operation.path).synced = True
        else:
            self._put(operation.path, self._named(operation))
            if operation.kind == "replace":
                self._put(operation.source, None)

    def _named(self, operation):
        """What the name stands for from now on."""
        if operation.kind == "mkdir":
            return Names()
        if operation.kind == "make":
            return File()
        return self._at(operation.source) if operation.source else None

    def _put(self, path, entry):
        folder, _, name = path.rpartition("/")
        self._at(folder).put(name, entry)

    def materialise(self, folder, rng, loss):
        """Write what survives a cut now; of all that was not synced a share is lost."""
        contents = {}

        def write(names, place):
            place.mkdir(exist_ok=True)
            for name, entry in names.survivors(rng, loss):
                if isinstance(entry, Names):
                    write(entry, place / name)
                else:
                    if entry not in contents:
                        contents[entry] = entry.survivor(rng, loss)
                    (place / name).write_bytes(contents[entry])

        write(self.names, Path(folder))

    def _at(self, path):
        entry = self.names
        for part in filter(None, path.removeprefix(self.above.rstrip("/")).split("/")):
            entry = entry.get(part)
        return entry
