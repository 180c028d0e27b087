"""Nights of a hub: it takes over what sites have counted, and fits it without their documents."""

import json
import shutil

import pytest

from streaming_moments import create_store, open_store
from streaming_moments.pipelines.jobs.create import PilotOptions

pytestmark = pytest.mark.usefixtures("few_blocks")


@pytest.fixture(scope="module")
def place(tmp_path_factory, planted):
    """Two sites, a hub like them, and the configuration of its nights."""
    folder = tmp_path_factory.mktemp("sites")
    few = PilotOptions(min_documents=3, core=60)
    berlin = create_store(str(folder / "berlin"), planted, source="all", max_topics=4, pilot=few)
    berlin.update(planted[:450], source="texts")
    create_store(str(folder / "rome"), like=berlin).update(planted[450:], source="texts")
    create_store(str(folder / "hub"), like=berlin)
    (folder / "night.toml").write_text(
        f'store = "{folder}/hub"\nshards = []\noutput = "{folder}/out"\n'
        f'[merge]\nfrom = ["{folder}/berlin", "{folder}/rome"]\nmax_age = "1h"\n'
        "[refit]\ntopics = 4\n"
    )
    return folder


def test_a_hub_refits_and_publishes_what_it_never_read(place, run, planted):
    config = place / "night.toml"
    found, out, err = run("nightly", config, "--json")
    assert found == 0, err
    steps = {step["step"]: step["values"] for step in map(json.loads, out.splitlines())}
    assert [one["origin"] for one in steps["merge"]["origins"]] == ["berlin", "rome"]
    hub = open_store(str(place / "hub"))
    assert hub.documents == len(planted)
    assert hub.topics("published").model.n_topics == 4
    out = run("status", place / "hub", "--json")[1]
    assert [(one["name"], one["behind"]) for one in json.loads(out)["origins"]] == [
        ("berlin", False),
        ("rome", False),
    ]
    whole = create_store(str(place / "whole"), like=hub).update(planted, source="texts")
    assert hub.snapshot.load() == whole.snapshot.load()
    shares = hub.shares_by_origin().to_frame()
    assert list(shares["origin"]) == ["berlin", "rome"]
    assert shares[[f"share_{topic}" for topic in range(4)]].sum(axis=1).round(9).tolist() == [1, 1]
    out = run("topics", place / "hub", "--by-origin", "--json")[1]
    assert [one["origin"] for one in json.loads(out)["by_origin"]] == ["berlin", "rome"]
    assert "berlin" in run("topics", place / "hub", "--by-origin")[1]
    assert 'id="origins"' in (place / "out" / "latest.html").read_text()
    whole.refit(4, 0.1, name="whole")
    errors = run("topics", place / "whole", "--by-origin")[2]
    assert "has no origins; add stores of other sites" in " ".join(errors.split())
    # nothing new
    assert run("nightly", config)[0] == 10
    # a site that cannot be read stays as it is here
    shutil.move(place / "rome", place / "away")
    found, out, _ = run("nightly", config, "--json")
    assert found == 10
    assert "rome cannot be read, so version" in out
    shutil.move(place / "away", place / "rome")
    # nor does one that can be opened and not be copied
    before = open_store(str(place / "hub")).documents
    open_store(str(place / "rome")).update(planted[:20], source="more", unique=False)
    shutil.move(place / "rome" / "segments", place / "away")
    found, out, _ = run("nightly", config, "--json")
    assert found == 10
    assert "rome cannot be read, so version" in out
    assert open_store(str(place / "hub")).documents == before
    shutil.move(place / "away", place / "rome" / "segments")


def test_a_site_that_counts_nothing_for_long_stops_the_night(place, run):
    late = place / "late.toml"
    late.write_text((place / "night.toml").read_text().replace('"1h"', '"1ms"'))
    found, _, errors = run("nightly", late)
    assert found == 2
    assert "origin berlin has not changed since" in " ".join(errors.split())
