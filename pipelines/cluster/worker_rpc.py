"""Calls to workers and the scheduler outside of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from distributed import Client, Future, WorkerPlugin

from streaming_moments.pipelines.cluster.silent_workers import answered


def ask_workers(
    client: Client,
    function: Callable[..., Any],
    *asked: Any,
    workers: list[str] | None = None,
) -> dict[str, Any]:
    """Run a function on each worker, and return its result or exception by worker address.

    Restarts a worker that the scheduler has not heard from meanwhile, and treats it as dead: others
    run its tasks again. The remaining workers are asked again, so the function may run twice. The
    function gets `dask_worker` if it has such an argument. Raises WorkersLost if a live worker does
    not answer.
    """
    answers: dict[str, Any] = answered(
        client, client.run, function, *asked, workers=workers, on_error="return"
    )
    return answers


def give_plugin(client: Client, plugin: WorkerPlugin) -> None:
    """Set up an idempotent plugin on all workers, and on those that join later."""

    # await the call in the loop of the client, so that a timeout can cancel it
    async def register() -> Any:
        return await client.register_plugin(plugin)

    answered(client, client.sync, register)


def place_stranded(client: Client) -> None:
    """Let tasks that were placed on dead workers run on other workers, if the tasks allow this.

    Without any worker, Dask reserves a task for the address it was placed on, even with
    `allow_other_workers`. It does not offer the task to new workers, which have other addresses.
    """

    # nested, so that Dask sends its code: the scheduler may lack this package
    def place(dask_scheduler: Any) -> None:
        loose = [task.key for task in dask_scheduler.unrunnable if task.loose_restrictions]
        dask_scheduler.transitions(
            dict.fromkeys(loose, "processing"), stimulus_id="streaming-moments-stranded"
        )

    client.run_on_scheduler(place)


def deaths_of(client: Client, futures: Iterable[Future[Any]]) -> dict[Any, int]:
    """Map the key of each task to the number of workers that died while it was assigned to them."""
    keys = [future.key for future in futures]

    # nested, so that Dask sends its code
    def look(dask_scheduler: Any) -> dict[Any, int]:
        tasks = dask_scheduler.tasks
        return {key: tasks[key].suspicious for key in keys if key in tasks}

    counted: dict[Any, int] = client.run_on_scheduler(look)
    return counted
