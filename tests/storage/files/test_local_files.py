"""Second names of files: only where a copy would have the same owner, and could be read by all."""

import os
import time

import pytest

from streaming_moments.errors import StoreError
from streaming_moments.storage.files import local_files
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.local_files import link_whole, write_whole

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links are for POSIX only")


def linked(tmp_path, there="there/file"):
    """Whether a file gets a second name, which then stands for the same content."""
    here = tmp_path / "here" / "file"
    made = link_whole(str(tmp_path / there), str(here))
    assert made == here.exists()
    assert not made or here.samefile(tmp_path / there)
    return made


def test_a_file_gets_a_second_name_that_outlasts_the_first(tmp_path):
    write_whole(str(tmp_path / "there/file"), b"sea")
    assert linked(tmp_path)
    local_files.remove(str(tmp_path / "there/file"))
    assert (tmp_path / "here/file").read_bytes() == b"sea"


@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_a_file_with_other_permissions_is_copied(tmp_path, mode):
    write_whole(str(tmp_path / "there/file"), b"sea")
    (tmp_path / "there/file").chmod(mode)
    assert not linked(tmp_path)


def test_a_missing_file_a_folder_and_a_symbolic_link_are_copied(tmp_path):
    write_whole(str(tmp_path / "there/file"), b"sea")
    (tmp_path / "there/symbolic").symlink_to(tmp_path / "there/file")
    assert not any(linked(tmp_path, name) for name in ("there", "there/symbolic", "there/missing"))


def test_a_file_on_another_disk_is_copied(tmp_path, monkeypatch):
    write_whole(str(tmp_path / "there/file"), b"sea")

    def refused(source, path):
        raise OSError(local_files.errno.EXDEV, "other disk")

    monkeypatch.setattr(os, "link", refused)
    assert not linked(tmp_path)


def test_an_error_of_the_disk_is_one_of_the_store(tmp_path, monkeypatch):
    write_whole(str(tmp_path / "there/file"), b"sea")

    def broken(source, path):
        raise OSError(local_files.errno.EIO, "broken")

    monkeypatch.setattr(os, "link", broken)
    with pytest.raises(StoreError, match=r"cannot write .*/here/file .*broken"):
        Folder.at(str(tmp_path / "here")).link("file", Folder.at(str(tmp_path / "there")), "file")


def test_a_file_is_as_young_as_its_latest_name(tmp_path):
    place, day = tmp_path / "there/file", 86400
    write_whole(str(place), b"sea")
    os.utime(place, (time.time() - 30 * day,) * 2)
    there = Folder.at(str(tmp_path / "there"))
    [alone] = there.files("")
    assert linked(tmp_path)
    [named] = Folder.at(str(tmp_path / "here")).files("")
    assert (named.modified - alone.modified).days in (29, 30)


def test_a_file_in_place_of_a_folder_is_refused_by_name(tmp_path):
    (tmp_path / "page").mkdir()
    with pytest.raises(StoreError, match=r"/page is a folder; give the name of a file in it"):
        Folder.at(str(tmp_path)).write("page", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
