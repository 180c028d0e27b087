"""A small corpus that comes shard by shard, nights over it, and real processes of the commands."""

import functools
import operator
import os
import signal
import sys

import numpy as np
from campaigns import few_row_blocks
from forking import forking
from widening import widened

from streaming_moments import MomentStatistics
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.storage.counting.reading import DocumentHalves, index_of, read_indexed
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.growth import store_of_era

DOCUMENTS = 30
SUBJECTS = ("law court judge trial oath", "sea ship sail wind storm", "tax duty gold silver coin")
NEWS = "moon rover crater"
CREATE = {"min_documents": 2, "vocabulary_size": 40, "max_topics": 3}
REFIT = {"topics": 2, "alpha0": 0, "refine": 1}


def shard(number):
    """Content of a shard; all but the first have words that it has not."""
    rng = np.random.default_rng([8, number])
    lines = [
        " ".join([*rng.choice(SUBJECTS[rng.integers(3)].split(), 8), NEWS * bool(number)])
        for _ in range(DOCUMENTS)
    ]
    # a word that all documents have would be left out
    lines[::2] = [line.removesuffix(NEWS) for line in lines[::2]]
    return "\n".join(lines).encode()


def require_counted_once(store, options=None):
    """Each shard of the ledger is in the statistics, once, with the words that there were then.

    Gives how many shards there are.
    """
    assert store.verify() == []
    listed = list_shards([record.url for record in store.ledger()], options)
    assert len(listed) == len(list(store.ledger()))
    assert store.length_histogram().n_documents == DOCUMENTS * len(listed)
    ledger, eras = store.ledger(), {}
    for part in store.commit.segments:
        urls = {record.url for record in ledger.records(part.id)}
        eras.setdefault(part.words, []).extend(one for one in listed if one.url in urls)
    lineage = store.commit.lineage
    # words that were added later move no document to the other half
    first_words = lineage.eras[0].words if lineage.eras else None
    halves = DocumentHalves(lineage.halves_by_content, first_words)
    counted = [
        read_with(store_of_era(store, words), own, halves, options) for words, own in eras.items()
    ]
    parts = [widened(own, store.basis) for own in counted]
    assert store.load() == functools.reduce(operator.add, parts)
    return len(listed)


def read_with(store, shards, halves, options):
    """Statistics of shards as a store counts them now, its documents of these halves."""
    form, index = store.form, index_of(store.vocabulary, store.policy)
    read = (
        read_indexed(one, form, index, storage_options=options, halves=halves) for one in shards
    )
    return MomentStatistics.of(
        concatenate([part.batch for parts in read for part in parts]), store.basis
    )


def command(*arguments):
    """A process that runs a command; forked from one that has imported everything."""
    process = forking().Process(target=_run, args=([str(part) for part in arguments],))
    process.start()
    return process


def _run(arguments):
    # a shell that runs the tests in the background has it ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, sys.stdout.fileno())
    os.dup2(silent, sys.stderr.fileno())
    with few_row_blocks():
        main(arguments)
