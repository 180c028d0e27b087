"""Documents in pages are cited by what the store knows them by, and end at a word."""

import json

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.reports.samples import sample_documents
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.top_documents import beginning


def samples_of(place, listed, run):
    pilot = PilotOptions(vocabulary_size=120, core=100, max_topics=3, min_documents=2)
    store = create(str(place), listed, ShardFormat(), TokenPolicy(), pilot, run)
    store = update(store, listed, run).store
    return sample_documents(store, store, refit(store, 3, 0.3, run))


def test_documents_of_an_inbox_are_cited_by_their_ids(tmp_path, planted, embedded):
    folder = tmp_path / "inbox" / "sealed" / "2026-11-23"
    folder.mkdir(parents=True)
    lines = [
        {"text": text, **({"id": f"order-{place}"} if place % 3 else {})}
        for place, text in enumerate(planted[:300])
    ]
    path = folder / "00000000000000000001.sealed.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = samples_of(tmp_path / "store", list_shards([str(path)]), Run(embedded))
    assert len(found) == 3
    for one in found.values():
        assert one.id == lines[one.number - 1].get("id", "")
        assert one.text.strip(" \N{HORIZONTAL ELLIPSIS}") in lines[one.number - 1]["text"]
    assert any(one.id for one in found.values())


def test_documents_of_a_folder_are_cited_by_their_files(tmp_path, planted, embedded):
    folder = tmp_path / "texts"
    folder.mkdir()
    for place, text in enumerate(planted[:200]):
        (folder / f"letter {place}.txt").write_text(text)
    found = samples_of(tmp_path / "store", list_shards([f"{folder}/"]), Run(embedded))
    assert found
    for one in found.values():
        assert (folder / one.id).read_text().startswith(one.text[:40])


def test_a_beginning_ends_at_a_word():
    words = [f"w{place}" for place in range(99)]
    shown = beginning("  ".join(words))
    assert len(shown) <= 202
    assert shown.removesuffix(" \N{HORIZONTAL ELLIPSIS}").split() == words[: len(shown.split()) - 1]
    assert beginning("x" * 300) == "x" * 200 + " \N{HORIZONTAL ELLIPSIS}"
    assert beginning("a b\nc") == "a b c"
    assert beginning("x" * 200) == "x" * 200
