"""Sums near 2^62: shards go in smaller groups, and one without room is named and left out."""

import json
import random
from dataclasses import replace

import pytest

from streaming_moments.errors import NoRoom, SumExceeded
from streaming_moments.pipelines.aggregation.aggregation import plan_of
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

pytestmark = pytest.mark.usefixtures("few_blocks")
IDS = 30


def written(path, documents):
    lines = (json.dumps({"w": ids, "n": counts}) + "\n" for ids, counts in documents)
    path.write_text("".join(lines))
    return str(path)


@pytest.fixture
def store(tmp_path, embedded):
    """One of token ids with counts."""
    draw = random.Random(1)
    ordinary = [([draw.randrange(IDS) for _ in range(9)], [1] * 9) for _ in range(400)]
    listed = list_shards([written(tmp_path / "pilot.jsonl", ordinary)])
    options = PilotOptions(max_topics=3, min_documents=1, max_document_fraction=1.0)
    form = ShardFormat(ids_column="w", counts_column="n")
    return create(str(tmp_path / "store"), listed, form, None, options, Run(embedded))


def spread(each):
    """A document of every word: its bound is far above what any sum gains of it."""
    return (list(range(IDS)), [each] * IDS)


def bound_of(store, document):
    from streaming_moments.pipelines.service.validation import Countable

    line = json.dumps({"w": document[0], "n": document[1]}).encode() + b"\n"
    return Countable(store).bound(line)


def test_a_shard_whose_bounds_add_up_beyond_is_counted_as_its_sums_do_not(
    store, embedded, tmp_path
):
    document = spread(300)
    several = int(1.5 * 2**62 / bound_of(store, document))
    assert several > 1000
    listed = list_shards([written(tmp_path / "wide.jsonl", [document] * several)])
    plan = replace(plan_of(store, Run(embedded)), lump_bytes=1 << 16, batch_bytes=1 << 16)
    result = update(store, listed, Run(embedded), plan=plan)
    assert (result.counted, result.documents, result.bad) == (1, several, ())
    assert result.store.verify() == []
    assert result.store.load().word_counts.tolist() == [300 * several] * IDS


def test_shards_that_have_no_room_beside_the_others_are_named_and_the_rest_is_counted(
    store, embedded, tmp_path
):
    huge = ([1], [60_000])  # of one word: a sum gains as much as its bound says
    each = int(0.6 * 2**62 / bound_of(store, huge))
    names = [written(tmp_path / f"{name}.jsonl", [huge] * each) for name in ("a", "c", "e")]
    names += [written(tmp_path / f"{name}.jsonl", [([3, 4], [1, 1])] * 5) for name in ("b", "d")]
    listed = list_shards(sorted(names))
    with pytest.raises(SumExceeded, match=r"\.jsonl: .*2\^62.*--skip-bad-shards.*before it are"):
        update(store, listed, Run(embedded))
    result = update(store, listed, Run(embedded), skip_bad_shards=True)
    assert [type(error) for error in result.bad] == [NoRoom, NoRoom]
    assert {error.url for error in result.bad} == set(names[1:3])
    final = result.store
    assert final.commit.documents == each + 10
    assert final.verify() == []
    # what is taken away frees its room, though the state is nearly full
    gone = forget(final, list_shards(names[:1]), Run(embedded))
    assert gone.commit.documents == 10
