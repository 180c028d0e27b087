"""The page of any store and model: what it shows, how it is written, the documents it samples."""

import json
import re
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments import open_store
from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.reports.samples import sample_documents
from streaming_moments.pipelines.reports.store_page import store_page
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.storage.top_documents import read_top_documents

ADDED = "</script><b onclick=\u202e'x'>"


def content_of(path):
    [content] = re.findall(r'id="content">(.*?)</script>', path.read_text())
    return json.loads(content)


@pytest.fixture(scope="module")
def place(tmp_path_factory, planted, embedded):
    """A store of three shards of documents in passages, with two models, one of them published."""
    folder = tmp_path_factory.mktemp("paged")
    for number in range(3):
        # a document is two planted ones of the same place, written as people write
        texts = [
            f"{ADDED} {one.title()}, 7 {two}."
            for one, two in zip(planted[::2], planted[1::2], strict=True)
        ]
        table = pa.table({"text": texts[150 * number : 150 * number + 150]})
        pq.write_table(table, folder / f"2026-0{number + 1}-05.parquet")
    run, options = Run(embedded), PilotOptions(vocabulary_size=120, max_topics=4, min_documents=2)
    shards = list_shards([f"{folder}/*.parquet"])
    policy = TokenPolicy(min_length=2, passage_words=20)
    store = create(f"{folder}/store", shards, ShardFormat(), policy, options, run)
    for shard in shards:
        store = update(store, [shard], run).store
    for k in (3, 4):
        store = store.save_model(f"k{k}", refit(store, k, 0.3, run))
    return folder


@pytest.fixture
def store(place):
    return MomentStore.open(f"{place}/store")


def test_the_command_writes_the_page_of_any_model(run, place, tmp_path, visiting, examined):
    path = tmp_path / "pages" / "page.html"
    path.parent.mkdir()
    path.write_text("the page of yesterday")
    code, out, err = run("page", f"{place}/store", "--output", path, "--model", "k3")
    assert (code, err) == (0, "")
    page = visiting(path, width=390, height=844)
    assert out == f"{path}: {page.locator('#headline').text_content()[:-1]}\n"
    assert "3 topics of " in out
    # documents of one corpus, some hundreds a month
    assert "; no clear change from 2026-01-05 to 2026-03-05" in out
    assert [one.name for one in path.parent.iterdir()] == ["page.html"]
    content = content_of(path)
    assert (len(content["topics"]), content["facts"]["model"]) == (3, "k3")
    assert content["periods"]["dates"] == ["2026-01-05", "2026-02-05", "2026-03-05"]
    assert page.locator("#ledger tbody tr").count() == 3
    assert page.locator(".sample").count() == 3
    examined(page, "page")
    code, out, _ = run("page", f"{place}/store", "--output", path, "--no-documents", "--json")
    told = json.loads(out)
    assert (code, told["topics"], told["documents"], told["output"]) == (0, 4, 0, str(path))
    assert all(one["sample"] is None for one in content_of(path)["topics"])


def test_what_cannot_be_written_or_is_not_there_is_said(run, place, tmp_path):
    taken = tmp_path / "taken.html"
    taken.mkdir()
    code, _, err = run("page", f"{place}/store", "--output", taken)
    assert (code, "taken.html" in err) == (2, True)
    path = tmp_path / "page.html"
    code, _, err = run("page", f"{place}/store", "--output", path, "--model", "k9")
    assert (code, "has no model 'k9'" in err, path.exists()) == (2, True, False)
    code, _, err = run("page", f"{place}/store")
    assert (code, "--output" in err) == (2, True)


def test_the_page_from_python_is_that_of_the_command(place, tmp_path):
    store = open_store(f"{place}/store")
    said = store.page(str(tmp_path / "page.html"), model="k3")
    assert said.startswith("3 topics of ")
    assert len(content_of(tmp_path / "page.html")["topics"]) == 3
    with pytest.raises(StoreError, match="no model 'k9'"):
        store.page(str(tmp_path / "page.html"), model="k9")
    with pytest.raises(InvalidInput, match="output"):
        store.page(7)


def test_a_sample_is_the_passage_as_it_was_written(store):
    model = store.load_model("k3")
    found = sample_documents(store, store, model)
    assert set(found) == {0, 1, 2}
    for sample in found.values():
        text = pq.read_table(sample.shard)["text"][sample.number - 1].as_py()
        shown = sample.text.strip("\N{HORIZONTAL ELLIPSIS} ")
        assert shown in text
        assert len(shown) <= 280
        assert 0.5 < sample.share <= 1
    # passages begin anywhere: not all of them where their document does
    assert any(sample.text.startswith("\N{HORIZONTAL ELLIPSIS} ") for sample in found.values())


def test_documents_that_a_transform_found_and_labels_are_shown(run, place, tmp_path):
    store, path, found = f"{tmp_path}/store", tmp_path / "page.html", tmp_path / "found"
    shutil.copytree(place / "store", store)
    shard = place / "2026-02-05.parquet"
    read = ("--output", found, "--model", "k3", "--top-documents", "1")
    assert run("transform", store, shard, *read)[0] == 0
    assert run("label", store, "1", "Sea & <law>", "--model", "k3")[0] == 0
    assert run("forget", store, place / "2026-03-05.parquet")[0] == 0
    shown = ("page", store, "--output", path, "--top-documents", found)
    assert run(*shown, "--model", "k3")[0] == 0
    content, (_, best) = content_of(path), read_top_documents(str(found))
    for topic, [first] in zip(content["topics"], best.topics, strict=True):
        assert topic["sample"]["text"] == first.text
        assert (topic["sample"]["shard"], topic["sample"]["number"]) == (str(shard), first.row + 1)
    assert content["names"][1] == "Sea & <law>"
    assert "Sea & <law>" not in path.read_text()
    [reason] = content["reasons"]
    assert "model k3 was fitted to version 3: " in reason
    assert "documents forgotten since then still are in it; refit" in reason
    code, _, err = run(*shown)
    assert (code, "has documents of model 'k3', but the page shows 'k4'" in err) == (2, True)


def test_shards_that_are_gone_or_changed_show_nothing(place, tmp_path):
    for name in ("store", "2026-01-05.parquet", "2026-02-05.parquet", "2026-03-05.parquet"):
        copy = shutil.copytree if name == "store" else shutil.copy
        copy(place / name, tmp_path / name)
    store = MomentStore.open(f"{place}/store")
    model = store.load_model("k3")
    hidden = [place / f"2026-0{number}-05.parquet" for number in (1, 2, 3)]
    try:
        hidden[0].unlink()
        hidden[1].write_bytes(b"x" * hidden[1].stat().st_size)
        hidden[2].write_bytes(b"y")
        assert sample_documents(store, store, model) == {}
        page = store_page(store, "k3")
        assert all(topic.sample is None for topic in page.topics)
    finally:
        for path in hidden:
            shutil.copy(tmp_path / path.name, path)
    assert len(sample_documents(store, store, model)) == 3
