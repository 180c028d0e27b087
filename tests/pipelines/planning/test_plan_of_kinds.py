"""What stores of every kind beside documents will cost."""

import json
import random
from itertools import combinations

import pytest

from streaming_moments.storage.store.store import MomentStore


def drawn(suffix, number, draw):
    """Lines of a shard: sequences, records of views, rows of numbers, edges."""
    if suffix == "txt":
        return ["".join(draw.choices("abcd", k=60)) for _ in range(40)]
    if suffix == "csv":
        return ["a,b,c", *(",".join(draw.choices("xyz", k=3)) for _ in range(120))]
    if suffix == "dat":
        return ["a,b", *(f"{draw.gauss(0, 1)},{draw.expovariate(1)}" for _ in range(120))]
    pairs = list(combinations(range(24), 2))[number::3]
    return ["source\ttarget", *(f"n{one}\tn{other}" for one, other in draw.sample(pairs, 80))]


@pytest.mark.parametrize(
    ("suffix", "options", "records"),
    [
        ("txt", ("--kind", "sequences"), 120),
        ("csv", ("--kind", "views", "--columns", "a,b,c"), 360),
        ("dat", ("--kind", "vectors", "--columns", "a,b", "--format", "csv"), 360),
        ("tsv", ("--kind", "edges"), 240),
    ],
)
def test_a_plan_of_a_kind_is_of_the_store_that_is_made(run, tmp_path, suffix, options, records):
    draw = random.Random(3)
    for number in range(3):
        (tmp_path / f"{number}.{suffix}").write_text("\n".join(drawn(suffix, number, draw)))
    shards = tmp_path / f"*.{suffix}"
    code, out, err = run("plan", shards, *options, "--topics", "2", "--json", "--workers", "2")
    assert code == 0, err
    plan = json.loads(out)
    assert run("create", tmp_path / "store", shards, *options)[0] == 0
    made = MomentStore.open(str(tmp_path / "store"))
    assert plan["kind"] == made.kind
    words = getattr(made.foundation, "words", {})
    assert plan["words"] == {name: own.n_words for name, own in words.items()}
    assert (plan["state_bytes"], plan["row_blocks"]) == (made.layout.state_bytes, made.row_blocks)
    assert plan["documents"] == pytest.approx(records)
    assert plan["store_bytes"] > 0
    assert plan["memory"]["peak"] <= plan["memory"]["budget"]
    [cluster] = plan["clusters"]
    assert min(cluster["create"], cluster["update"], cluster["refit"]) > 0
    # without --topics a fit is tried with ten states, and then with as many as rows allow: of the
    # two numbers in these rows two, at once
    states = () if suffix == "dat" else ("--topics", "2")
    code, out, err = run("plan", shards, *options, *states, "--memory", "300MB")
    assert (code, "the budget is" in err) == (2, True), err
    code, out, err = run("plan", shards, *options, *states, "--workers", "1", "--verbose")
    assert (code, ("words of" if words else "rows of 2 numbers") in out) == (0, True), err
