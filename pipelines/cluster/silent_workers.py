"""Restart silent workers: processes that are alive but do not answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from distributed import Client

from streaming_moments.pipelines.cluster.worker_loss import WorkersLost

ANSWER_SECONDS = 120.0


def restart_silent(client: Client) -> None:
    """Restart workers that have been silent for half of `ANSWER_SECONDS`.

    Dask itself would do so only after its `worker-ttl` of 5 minutes. The clock of the scheduler
    measures the silence, because the clock of the client may differ. The last contact of a worker
    may lie in the future, if the clock of the scheduler was set back since then.
    """
    seconds = ANSWER_SECONDS / 2

    # A nested function: Dask sends its code, so the scheduler does not need this package.
    async def restart(dask_scheduler: Any) -> None:
        from distributed.metrics import time

        workers, now = dask_scheduler.workers.values(), time()
        silent = [one.address for one in workers if abs(now - one.last_seen) > seconds]
        # Ignore the timeout: if the nanny of a worker is silent as well, Dask removes the worker
        # without a restart.
        with suppress(TimeoutError):
            await dask_scheduler.restart_workers(
                silent, wait_for_workers=False, stimulus_id="streaming-moments-silent"
            )

    client.run_on_scheduler(restart)


def answered(client: Client, ask: Callable[..., Any], *asked: Any, **named: Any) -> Any:
    """Return the answers of workers; if some are silent, restart these and ask all others again."""
    for last in (False, True):
        try:
            return ask(*asked, **named, callback_timeout=ANSWER_SECONDS)
        except TimeoutError:
            restart_silent(client)
        except OSError:
            if last:
                raise  # the first time, ask again, because a worker may have died meanwhile
    raise WorkersLost(
        f"a worker is alive, but has not answered for {2 * ANSWER_SECONDS:g} seconds. See the "
        "logs of the workers, stop the one that hangs, and run the job again; all commits so "
        "far are stored"
    )
