"""What is found one by one is what fsspec finds at once."""

import os

import fsspec
import pytest

from streaming_moments.storage.files.finding import find_each, glob_each

NAMES = ("a.txt", "b.jsonl", "t[1]/a.txt", "t1/sub/c.txt", ".hid/d.txt", "t1/.e", "u/v/w/x.txt")


@pytest.fixture
def tree(tmp_path):
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "link").symlink_to(tmp_path / "t1")
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path)


PATTERNS = [
    *("*", "*.txt", "**", "**/*.txt", "*/*", "t?/*", "t[[]1]/*", "u/**", "u/**/x.txt", "*/sub/*"),
    *("a.txt/*", "absent/*", ".*", "[!a]*", "*/**"),
]


@pytest.mark.parametrize("folders", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_on_a_local_disk(tree, pattern, folders):
    fs = fsspec.filesystem("file")
    path = f"{tree}/{pattern}"
    expected = fs.glob(f"{path}/" if folders else path, detail=True)
    assert dict(glob_each(fs, path, folders)) == expected


def test_all_below_a_local_folder(tree):
    fs = fsspec.filesystem("file")
    assert dict(find_each(fs, tree)) == fs.find(tree, detail=True)


def test_no_pattern(tree):
    with pytest.raises(ValueError, match="'\\*\\*'"):
        glob_each(fsspec.filesystem("file"), f"{tree}/x**t", False)
