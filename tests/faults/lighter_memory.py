"""Importing it makes files in memory lighter: asked for one, fsspec looks through all there are."""

from fsspec.implementations.memory import MemoryFileSystem

_of_any = MemoryFileSystem.info


def _info(self, path, **kwargs):
    """What fsspec says of a file whose name no folder has; it says all else itself."""
    name = self._strip_protocol(path)
    file = self.store.get(name)
    if file is None or name in self.pseudo_dirs:
        return _of_any(self, path, **kwargs)
    return {"name": name, "size": file.size, "type": "file", "created": file.created}


MemoryFileSystem.info = _info
