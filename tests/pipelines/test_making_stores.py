"""Every door makes a store by the same rules: a store is of texts or of ids, not of both."""

from pathlib import Path

import pytest

IDS = "3 0:2 1:1 2:4\n2 1:3 3:1\n" * 40
TEXTS = "the sea and a ship\nthe law of the tax\n" * 40


@pytest.fixture(params=["create", "plan", "nightly"])
def making(request, tmp_path, run):
    """Exit code and errors of a command that would make a store of the shards in a folder."""

    def call(**texts):
        if request.param == "nightly":
            (tmp_path / "night.toml").write_text(
                f'store = "{tmp_path}/store"\nshards = "{tmp_path}/*.d*"\n'
                f'output = "{tmp_path}/reports"\n[refit]\ntopics = 2\n'
                "[create]\nmin_documents = 2\nmax_topics = 2\n"
                + "".join(f"{name} = {value}\n" for name, value in texts.items())
            )
            code, _, errors = run("nightly", tmp_path / "night.toml")
        else:
            store = [tmp_path / "store"] if request.param == "create" else []
            options = ["--max-topics", 2, "--min-documents", 2]
            for name, value in texts.items():
                options += [f"--{name.replace('_', '-')}", value]
            paths = sorted(tmp_path.glob("*.d*"))
            code, _, errors = run(request.param, *store, *paths, *options)
        return code, " ".join(errors.split())

    return call


def test_shards_of_texts_and_of_ids_are_told_apart_before_anything_is_made(making, tmp_path):
    (tmp_path / "a.dat").write_text(IDS)
    (tmp_path / "b.d.txt").write_text(TEXTS)
    code, errors = making()
    assert code == 2
    assert "b.d.txt: holds texts but " in errors
    assert "a.dat holds ids; give shards with one kind of content" in errors
    assert not Path(tmp_path, "store", "format.json").exists()


def test_options_of_texts_are_refused_where_shards_hold_ids(making, tmp_path):
    (tmp_path / "a.dat").write_text(IDS)
    code, errors = making(passage_words=20)
    assert code == 2
    assert "token ids and categories have no order and no spelling; leave out" in errors
    assert "no spelling" not in making()[1]
