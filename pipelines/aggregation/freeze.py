"""Freeze the sums on the workers and find out which of them are complete."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from distributed import Client, Worker

from streaming_moments.pipelines.aggregation.bundles import Receipt
from streaming_moments.pipelines.aggregation.sums import Frozen, Opening, process_sums
from streaming_moments.pipelines.cluster.worker_rpc import ask_workers


@dataclass(frozen=True)
class Settled:
    """Frozen sums that can be added up.

    sources : address of each worker, with the token of this freeze of its sums
    void : numbers of the tasks whose shards are no longer in any sums
    bound : largest possible entry of all sums together
    """

    sources: tuple[tuple[str, str], ...]
    void: frozenset[int]
    bound: float = 0.0


def settle(client: Client, opening: Opening, receipts: Mapping[int, Receipt]) -> Settled:
    """Freeze all sums, and check that they include exactly the tasks with a receipt.

    `receipts` maps the number of a task to its receipt.

    Deletes sums that include a task without a receipt, which happens if the task ran twice. The
    caller must send later tasks with the next epoch.
    """
    answers = ask_workers(client, freeze_here, opening.owner, opening.group, opening.epoch + 1)
    given: dict[str, set[int]] = {}
    for number, receipt in receipts.items():
        given.setdefault(receipt.nonce, set()).add(number)
    sources: list[tuple[str, str]] = []
    whole: set[str] = set()
    bound = 0.0
    for address, answer in sorted(answers.items(), key=lambda item: str(item[0])):
        if not isinstance(answer, Frozen):
            continue
        if set(answer.included) != given.get(answer.nonce, set()):
            ask_workers(client, discard_here, opening.owner, answer.nonce, workers=[address])
            continue
        whole.add(answer.nonce)
        if answer.nonce in given:
            sources.append((address, answer.token))
            bound += answer.bound
    void = (number for number, one in receipts.items() if one.nonce not in whole)
    return Settled(tuple(sources), frozenset(void), bound)


def freeze_here(owner: str, group: int, epoch: int, dask_worker: Worker) -> Any:
    """Call `ProcessSums.freeze` in this process."""
    return process_sums(dask_worker).freeze(owner, group, epoch)


def discard_here(owner: str, nonce: str, dask_worker: Worker) -> None:
    """Call `ProcessSums.discard` in this process."""
    process_sums(dask_worker).discard(owner, nonce)


def release_here(owner: str, dask_worker: Worker) -> None:
    """Call `ProcessSums.release` in this process."""
    process_sums(dask_worker).release(owner)


def keep_only_here(owners: Set[str], dask_worker: Worker) -> None:
    """Call `ProcessSums.keep_only` in this process."""
    process_sums(dask_worker).keep_only(owners)
