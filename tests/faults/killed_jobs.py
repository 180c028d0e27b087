"""Updates and rebases in processes of their own, which are killed at a moment of them."""

import os
import signal

from campaigns import few_row_blocks
from forking import forking

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.reduction import Reduction
from streaming_moments.pipelines.jobs import rebase, update
from streaming_moments.pipelines.jobs.kinds import counts
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore

PATIENCE = 120


def require_killed(job, *arguments):
    """Run a job of this module in a process forked from one that has imported everything."""
    process = forking().Process(target=_alone, args=(job, arguments))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL


def update_until(moment, url, folder):
    """Count two shards, and then all until a moment."""
    store, listed = MomentStore.open(url), list_shards([folder])
    with connect() as cluster:
        store = update.update(store, listed[:2], Run(cluster)).store
        if moment == "read":
            Reduction.run = _die
        elif moment == "write":
            update._committed = _die
        else:
            commit = MomentStore.append
            MomentStore.append = lambda *arguments: _die(commit(*arguments))
        update.update(store, listed, Run(cluster))


def rebase_until(moment, after, url):
    """Rebase until a function of the job has returned so many times."""
    place = counts if moment == "draw_pilot" else rebase
    real, calls = getattr(place, moment), []

    def dying(*arguments, **given):
        done = real(*arguments, **given)
        calls.append(done)
        if len(calls) == after:
            _die()
        return done

    setattr(place, moment, dying)
    with connect() as cluster:
        rebase.rebase(MomentStore.open(url), Run(cluster))


def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def _alone(job, arguments):
    with few_row_blocks():
        job(*arguments)
