"""Shards with pieces of sequences: those that overlap are left out alone, and memory is planned."""

import numpy as np
import pytest

from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.models.chains import HiddenMarkovModel
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.refit import refit_by
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.storage.counting.symbols.sequences import SequencesForm
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.commits import READING
from streaming_moments.storage.segments import blocks
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

LETTERS = Vocabulary(tuple("abc"), 3)
FOUNDATION = SequencesFoundation(
    LETTERS, Basis(np.eye(3, dtype=np.int8), 3, LETTERS.fingerprint), joins=True
)
FORM = {
    **ShardFormat().to_json(),
    READING: SequencesForm(columns=("name", "time", "symbol"), numbered=True).to_json(),
}


def written(folder, begins):
    """Shards of a piece each of three symbols, by the place where it begins."""
    for number, begin in enumerate(begins):
        rows = "".join(f"x,{begin + place},{letter}\n" for place, letter in enumerate("abc"))
        (folder / f"{number}.csv").write_text(f"name,time,symbol\n{rows}")
    return list_shards([str(folder / "*.csv")])


def test_those_that_overlap_are_left_out_and_the_others_of_their_group_counted(embedded, tmp_path):
    store = MomentStore.create_on(str(tmp_path / "store"), FOUNDATION, FORM)
    # the fifth overlaps the first, the seventh the sixth
    found = written(tmp_path, [0, 3, 6, 9, 1, 12, 13, 16])
    store = update(store, list_shards([str(tmp_path / "0.csv")]), Run(embedded)).store
    told = r"'x' from 0 to 2 and from 1 to 3.* came with .*/4\.csv.*; `update --skip-bad-shards`"
    with pytest.raises(InvalidInput, match=told):
        update(store, found, Run(embedded))
    assert store.latest().version == store.version
    result = update(store, found, Run(embedded), skip_bad_shards=True)
    assert [error.url[-5:] for error in result.bad] == ["4.csv", "6.csv"]
    assert "'x' from 12 to 14 and from 13 to 15" in result.bad[1].reason
    assert (result.already, result.counted) == (1, 5)
    assert result.store.gaps() == ["'x' from 12 to 14 and from 16 to 18"]
    assert result.store.verify() == []


def test_pieces_that_memory_does_not_hold_are_refused_before_any_work(
    embedded, tmp_path, monkeypatch
):
    store, run = MomentStore.create_on(str(tmp_path / "store"), FOUNDATION, FORM), Run(embedded)
    first = written(tmp_path, [0, 3])[0]
    for number in (0, 1):
        store = update(store, list_shards([str(tmp_path / f"{number}.csv")]), run).store
    assert blocks.joining_bytes(store.commit.segments, store.layout) == 2 * blocks.JOINING_BYTES
    monkeypatch.setattr(blocks, "JOINING_BYTES", embedded.memory)
    written(tmp_path, [0, 3, 6])
    options = HiddenMarkovModel.Options(topics=2)
    for job in (
        lambda: update(store, list_shards([str(tmp_path / "2.csv")]), run),
        lambda: refit_by(store, HiddenMarkovModel, options, run),
        lambda: compact(store, run),
        lambda: forget(store, [first], run),
    ):
        with pytest.raises(BoundExceeded, match=r"GiB for pieces of sequences.*raise --memory"):
            job()
    assert store.latest().version == store.version
