"""Calls to workers outside their tasks; a worker that hangs does not block them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from distributed import Client, Future, WorkerPlugin

from streaming_moments.pipelines.cluster.worker_loss import WorkersLost

ANSWER_SECONDS = 120.0


def ask_workers(
    client: Client,
    function: Callable[..., Any],
    *asked: Any,
    workers: list[str] | None = None,
) -> dict[str, Any]:
    """Run a function on each worker, and return its result or exception by worker address.

    Restarts a worker that the scheduler has not heard from meanwhile, and treats it as dead: others
    run its tasks again. The remaining workers are asked again, so the function may run twice. It
    gets `dask_worker` if it has such an argument. Raises WorkersLost if a live worker does not
    answer.
    """
    answers: dict[str, Any] = _answered(
        client, client.run, function, *asked, workers=workers, on_error="return"
    )
    return answers


def give_plugin(client: Client, plugin: WorkerPlugin) -> None:
    """Set up an idempotent plugin on all workers, and on those that join later."""

    # awaited in the loop of the client, so that it can be cancelled
    async def register() -> Any:
        return await client.register_plugin(plugin)

    _answered(client, client.sync, register)


def restart_silent(client: Client) -> None:
    """Restart workers that were silent for long, as Dask does after `worker-ttl`, 5 minutes.

    The scheduler uses its own clock, because that of the client may differ. A worker with a contact
    in the future was heard before the clock of the scheduler was set back.
    """
    seconds = ANSWER_SECONDS / 2

    # nested, so that cloudpickle sends it by value: a scheduler may lack this package
    async def restart(dask_scheduler: Any) -> None:
        from distributed.metrics import time

        workers, now = dask_scheduler.workers.values(), time()
        silent = [one.address for one in workers if abs(now - one.last_seen) > seconds]
        # a worker with a silent nanny is removed all the same
        with suppress(TimeoutError):
            await dask_scheduler.restart_workers(
                silent, wait_for_workers=False, stimulus_id="streaming-moments-silent"
            )

    client.run_on_scheduler(restart)


def place_stranded(client: Client) -> None:
    """Let tasks that were placed on dead workers run elsewhere, if they may.

    Without any worker, Dask reserves a task for the address it was placed on, even with
    `allow_other_workers`. It does not offer the task to new workers, which have other addresses.
    """

    # nested, as above
    def place(dask_scheduler: Any) -> None:
        loose = [task.key for task in dask_scheduler.unrunnable if task.loose_restrictions]
        dask_scheduler.transitions(
            dict.fromkeys(loose, "processing"), stimulus_id="streaming-moments-stranded"
        )

    client.run_on_scheduler(place)


def deaths_of(client: Client, futures: Iterable[Future[Any]]) -> dict[Any, int]:
    """Return how many workers have died that were assigned each task, by its key."""
    keys = [future.key for future in futures]

    # nested, as above
    def look(dask_scheduler: Any) -> dict[Any, int]:
        tasks = dask_scheduler.tasks
        return {key: tasks[key].suspicious for key in keys if key in tasks}

    counted: dict[Any, int] = client.run_on_scheduler(look)
    return counted


def _answered(client: Client, ask: Callable[..., Any], *asked: Any, **named: Any) -> Any:
    for last in (False, True):
        try:
            return ask(*asked, **named, callback_timeout=ANSWER_SECONDS)
        except TimeoutError:
            restart_silent(client)
        except OSError:
            if last:
                raise  # otherwise a worker died meanwhile
    raise WorkersLost(
        f"a worker is alive, but has not answered for {2 * ANSWER_SECONDS:g} seconds. See the "
        "logs of the workers, stop the one that hangs, and run it again; all commits so far "
        "are stored"
    )
