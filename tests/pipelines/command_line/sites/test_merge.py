"""`merge` and what other commands say of origins."""

import json
from datetime import timedelta

import numpy as np
import pyarrow.parquet as pq
import pytest

from streaming_moments import create_store, open_store
from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.pipelines.jobs.create import PilotOptions
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.rebase import ShardsMissing
from streaming_moments.pipelines.jobs.sites.merge import in_turn
from streaming_moments.storage.merging.pulling import pull_together
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.store.garbage import find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.sets import feature_sets
from streaming_moments.testing.small_store import append, create, forget, total

pytestmark = pytest.mark.usefixtures("few_blocks")
TEXTS = ["the sea and a ship in the port"] * 30 + ["a law of the tax on trade"] * 30


@pytest.fixture
def places(tmp_path):
    """URLs of a hub and of two sites, which have counted a file each."""
    few = PilotOptions(min_documents=2)
    hub = create_store(str(tmp_path / "hub"), TEXTS, source="texts", max_topics=2, pilot=few)
    sites = []
    for number, name in enumerate(("berlin", "rome")):
        (tmp_path / f"{name}.txt").write_text("\n".join(TEXTS[: 40 + number]))
        site = create_store(str(tmp_path / name), like=hub)
        sites.append(site.update(str(tmp_path / f"{name}.txt")).url)
    return [hub.url, *sites]


def printed(found):
    return " ".join(found.split())


def test_a_merge_prints_what_it_took_over(run, places):
    hub, berlin, rome = places
    code, out, errors = run("merge", hub, berlin, rome)
    assert code == 0
    assert "berlin at version 1: 40 documents more, 40 in all" in printed(errors)
    assert printed(out) == "version 2: 81 documents, with those of 2 origins"
    code, out, _ = run("merge", hub, berlin, "--json")
    told = json.loads(out)
    assert (told["version"], told["documents"]) == (2, 81)
    assert told["origins"][0]["change"] == 0
    assert [line["operation"] for line in json.loads(run("log", hub, "--json")[1])["commits"]] == [
        "merge",
        "merge",
        "create",
    ]
    assert "origin rome: nothing to version 1" in run("diff", hub, 1, 2)[1]


def test_status_says_which_origin_has_changed_since(run, places, tmp_path):
    hub, berlin, rome = places
    run("merge", hub, berlin, rome)
    (tmp_path / "more.txt").write_text("\n".join(TEXTS))
    open_store(rome).update(str(tmp_path / "more.txt"))
    told = {one["name"]: one for one in json.loads(run("status", hub, "--json")[1])["origins"]}
    assert (told["berlin"]["behind"], told["rome"]["behind"]) == (False, True)
    assert told["rome"]["documents"] == 41
    assert "its latest version 2 has other documents: merge it again" in printed(
        run("status", hub)[1]
    )
    (tmp_path / "rome").rename(tmp_path / "away")
    assert "it cannot be read" in printed(run("status", hub)[1])


def test_segments_of_origins_stay_beside_their_sums(run, places, tmp_path):
    hub, berlin, rome = places
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("\n".join(TEXTS[number:]))
        open_store(rome).update(str(tmp_path / f"{number}.txt"), compact_after=0)
    code, out, _ = run("merge", hub, berlin, rome, "--compact-after", 2, "--json")
    told = json.loads(out)
    assert (code, told["segments"]) == (0, 5)
    assert told["segments_read"] < 5
    assert run("compact", hub)[0] == 0
    store = open_store(hub).snapshot
    assert len(store.commit.segments) == 5
    assert store.verify() == []


def test_documents_of_origins_are_removed_there_or_all_at_once(run, places, tmp_path):
    hub, berlin, rome = places
    run("merge", hub, berlin, rome)
    shard = str(tmp_path / "berlin.txt")
    # here it is another file, which was never counted
    for command in (("forget", hub, shard), ("purge", hub, f"origin://berlin/{shard}")):
        code, _, errors = run(*command)
        assert code == 2
    assert "purge it in that store, under its name in that store" in printed(errors)
    code, _, errors = run("forget", hub, f"origin://berlin/{shard}")
    assert (
        code,
        "the site of the origin can read it; run the command at that site" in printed(errors),
    ) == (
        2,
        True,
    )
    code, _, errors = run("rebase", hub)
    assert code == 2
    assert "holds documents that berlin, rome counted" in printed(errors)
    code, _, errors = run("grow", hub)
    assert code == 2
    assert "give SHARDS" in printed(errors)
    opened = open_store(hub)
    opened.refit(2, 0.1, name="first")
    with pytest.raises(
        ShardsMissing, match="2 of 2 counted shards are at berlin, rome, and a rebase"
    ):
        opened.polish(model="first")
    code, _, errors = run("forget", hub, shard, "--origin", "berlin")
    assert code == 2
    assert run("forget", hub, "--origin", "berlin")[0] == 0
    assert open_store(hub).documents == 41
    assert run("forget", hub)[0] == 2


def merged(hub, sites, unique=False):
    """Merge stores in turn; says what was refused."""

    def take(store, urls):
        return pull_together(store, [MomentStore.open(url) for url in urls], unique)

    try:
        return in_turn(hub, [one.url for one in sites], take), ""
    except (InvalidInput, ForeignStatistics) as error:
        return hub.latest(), str(error)


@pytest.fixture
def circle():
    """A hub of three sites with a shard each, which have moved on in a circle since."""
    names = [f"s3://x/{number}" for number in range(3)]
    sites = [append(create(), {name: seed}) for seed, name in enumerate(names)]
    hub, _ = merged(create(), sites)
    moved = []
    for seed, one in enumerate(sites):
        before = (seed - 1) % 3
        moved.append(append(forget(one, {names[seed]: seed}), {names[before]: before}))
    return hub, moved


def test_a_shard_may_move_to_a_store_that_comes_before():
    one, two = append(create(), {"s3://x/a": 1}), create()
    hub, _ = merged(create(), [one, two])
    one, two = forget(one, {"s3://x/a": 1}), append(two, {"s3://x/a": 1})
    hub, _ = merged(hub, [two, one])
    assert hub.load() == total([1])
    append(one, {"s3://x/b": 2})
    append(two, {"s3://x/b": 2})
    name = two.url.rpartition("/")[2]
    assert f"s3://x/b is counted by origin {name}" in merged(hub, [two, one])[1]


def test_shards_that_move_in_a_circle_are_merged_in_one_commit(circle):
    hub, sites = circle
    hub, error = merged(hub, sites[:2])
    assert "if they have moved, give both stores to one `streaming-moments merge`" in error
    assert find_garbage(hub.folder, timedelta(0)) == []  # refused before anything was copied
    # one that counts twice is refused, and the others are merged nevertheless
    wrong = append(create(), {"s3://x/0": 0})
    after, error = merged(hub, [wrong, *sites])
    assert "s3://x/0 is counted by origin" in error
    assert after.version == hub.version + 1
    assert after.verify() == []
    assert (after.load(), len(after.commit.origins)) == (total(range(3)), 3)


def test_other_words_of_one_store_stop_no_other():
    hub, one, two = grow(create(), ["tide"]), grow(create(), ["moon"]), append(create(), {"a": 2})
    after, error = merged(hub, [one, two])
    assert "word 5 is 'moon' there and 'tide' here" in error
    assert after.commit.documents == 6


def test_shards_that_move_in_a_circle_are_not_left_out(circle):
    hub, sites = circle
    hub, error = merged(hub, sites, unique=True)
    assert (error, hub.load()) == ("", total(range(3)))


def test_an_origin_is_purged_with_proof(run, places, tmp_path):
    hub, berlin, rome = places
    run("merge", hub, berlin, rome)
    run("refit", hub, "--topics", 2, "--alpha0", 0.1, "--name", "first")
    code, out, _ = run("verify", hub, "--purged", "--origin", "berlin")
    assert (code, "models/first" in out) == (2, True)
    code, out, _ = run("purge", hub, "--origin", "berlin", "--dry-run", "--json")
    planned = json.loads(out)
    assert (code, planned["documents"], planned["versions"]) == (0, 40, [1, 2, 3])
    code, out, _ = run("purge", hub, "--origin", "berlin")
    assert "version 4: origin berlin purged: 40 documents, with 3 versions" in printed(out)
    assert "models dropped: first" in printed(out)
    assert "the store of the origin, and stores that copied its counts" in printed(out)
    code, out, _ = run("verify", hub, "--purged", "--origin", "berlin")
    assert (code, "holds nothing of origin berlin" in printed(out)) == (0, True)
    shard = f"origin://berlin/{tmp_path}/berlin.txt"
    told = json.loads(run("verify", hub, "--purged", shard, "--json")[1])
    assert (told["purged"], told["by_name_alone"]) == (True, [shard])
    assert open_store(hub).documents == 41
    errors = printed(run("merge", hub, berlin)[2])
    assert (
        "includes the documents of origin berlin, which was purged here; do not merge this store"
        in errors
    )
    assert json.loads(run("merge", hub, berlin, "--include-forgotten", "--json")[1])["version"] == 5
    for command in (
        ("purge", hub),
        ("purge", hub, shard, "--origin", "berlin"),
        ("purge", hub, "--origin", "bern"),
        ("verify", hub, "--origin", "berlin"),
        ("verify", hub, shard, "--purged", "--origin", "berlin"),
    ):
        assert run(*command)[0] == 2


def test_a_site_takes_the_model_of_its_hub(run, places, tmp_path):
    hub, berlin, rome = places
    run("merge", hub, berlin, rome)
    run("refit", hub, "--topics", 2, "--alpha0", 0.1, "--name", "first")
    run("tag", hub, "published", "first")
    code, out, _ = run("pull-model", rome, hub, "--json")
    told = json.loads(out)
    assert (code, told["model"], told["tag"], told["copied"]) == (0, "first", "published", True)
    assert (told["hub"], told["hub_model"], told["hub_version"]) == (hub, "first", 2)
    assert "was already copied" in printed(run("pull-model", rome, hub)[1])
    assert "fitted as first by" in printed(run("topics", rome)[1])
    assert json.loads(run("topics", rome, "--json")[1])["fitted_by"] == hub
    page = tmp_path / "page.html"
    assert run("page", rome, "--output", page)[0] == 0
    assert f"{hub}, as first" in page.read_text()
    # it gives the same for documents as at the hub
    shard = tmp_path / "rome.txt"
    for store in (hub, rome):
        out = tmp_path / f"{store.rpartition('/')[2]}-shares"
        assert run("transform", store, shard, "--model", "published", "--output", out)[0] == 0
    one, two = (
        pq.read_table(next(tmp_path.glob(f"{name}-shares/*.parquet"))) for name in ("hub", "rome")
    )
    assert one.equals(two)
    again = open_store(rome).pull_model(open_store(hub), model="first", name="europe")
    assert again.topics("europe").model.n_topics == 2
    open_store(hub).refit(2, 0.1, name="k2")
    with pytest.raises(InvalidInput, match=r"model named 'europe'; give .* `pull_model\(name"):
        open_store(rome).pull_model(hub, model="k2", name="europe")
    assert "topics of europe: first to europe" not in run("diff", rome, 1, -1)[1]


def test_python_merges_and_forgets(places):
    hub, berlin, rome = map(open_store, places)
    hub = hub.merge(berlin, rome.url)
    assert hub.documents == 81
    assert hub.forget(origin="rome").documents == 40
    with pytest.raises(InvalidInput, match="give either the documents to forget, or the name"):
        hub.forget()
    with pytest.raises(InvalidInput, match="one name was given for 2 stores, but each origin"):
        hub.merge(berlin, rome, name="both")
    with pytest.raises(InvalidInput, match="fewer than 1,000"):
        hub.merge(rome, least_documents=1000)


def test_sets_of_features_add_up(tmp_path):
    rows = [
        {"codes": [f"c{one}" for one in np.flatnonzero(row)]}
        for row in feature_sets(200, 12, 2, mean=0.3, seed=1).batch.to_csr().toarray()
    ]
    shape = KindOptions("sets", "codes")
    whole = create_store(str(tmp_path / "whole"), rows, source="rows", shape=shape)
    one, two = (create_store(str(tmp_path / name), like=whole) for name in ("one", "two"))
    one, two = one.update(rows[:90], source="rows"), two.update(rows[90:], source="rows")
    hub = create_store(str(tmp_path / "hub"), like=whole).merge(one, two)
    # the half of a set depends on its place in the shard
    whole = whole.update(rows[:90], source="one").update(rows[90:], source="two")
    assert hub.snapshot.load() == whole.snapshot.load()
    hub.refit_as(BernoulliMixture, n_topics=2, name="two")
    assert one.pull_model(hub).model("two").parts()[1] == hub.model("two").parts()[1]
