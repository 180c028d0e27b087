"""Forgeries: files of a store changed so that every hash and seal fits again."""

import hashlib
from pathlib import Path

from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.manifests import FileRecord


def resealed(path, change):
    """Write a sealed file with what `change` makes of its content."""
    data = seal(change(unseal(path.read_bytes(), str(path))))
    path.write_bytes(data)
    return data


def reforged(root, path, change):
    """Change a manifest of the latest version, and the commit so that it names the new one."""
    old = hashlib.sha256((root / path).read_bytes()).hexdigest()
    new = hashlib.sha256(resealed(root / path, change)).hexdigest()
    commit = max((root / "commits").glob("*.json"))
    data = unseal(commit.read_bytes(), "")
    parts = [*data["segments"], *data["models"].values()]
    [part] = [part for part in parts if part["manifest"] == old]
    part["manifest"] = new
    commit.write_bytes(seal(data))


def planted(root, folder, path, content):
    """Put content in the place of a file of a segment or a model, with its size and hash."""
    (Path(root) / folder / path).write_bytes(content)
    record = FileRecord.of(path, content)
    reforged(
        root,
        f"{folder}/manifest.json",
        lambda manifest: {
            **manifest,
            "files": {**manifest["files"], path: [record.size, record.sha256]},
        },
    )
