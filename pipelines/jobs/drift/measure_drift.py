"""Drift of a store, measure by measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.drift.measures import DRIFT_MEASURES
from streaming_moments.pipelines.jobs.drift.states import DriftStates
from streaming_moments.quality.drift import Drift
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore


def measure_drift(
    store: MomentStore, before: MomentStore | None, n_topics: int, alpha0: float, run: Run
) -> Drift:
    """Measure how far a version has moved from an earlier one, and how well its basis fits.

    Pair distributions are compared if `before` has the same core words. The share outside the
    vocabulary is measured in the shards counted since `before`; without `before`, in all shards.
    `n_topics` is the number of leading eigenvalues that the basis should capture. For a store that
    does not count documents, only the share outside the vocabulary is measured. Raises
    BoundExceeded if two row blocks do not fit into the memory budget.
    """
    states = DriftStates(store, before, n_topics, alpha0, run)
    of_documents = store.foundation.by_length
    found: dict[str, Any] = {
        one.key: one.of(states) if of_documents or one.any_kind else one.unknown
        for one in DRIFT_MEASURES
    }
    return Drift(**found)


@dataclass(frozen=True)
class DriftSince:
    """Drift of a store since `version`, to which `model` was fitted."""

    model: str
    version: int
    drift: Drift


def drift_since(store: MomentStore, name: str, run: Run) -> DriftSince:
    """Measure drift since the version of a model, given by name or tag.

    Raises
    ------
    BoundExceeded, StoreError
        As in `measure_drift`, or there is no such model.
    """
    chosen = model_called(store.commit, name)
    fitted, model = store.models[chosen].version, store.load_model(chosen)
    before = store.at(fitted)
    drift = measure_drift(store, before, *model.moments, run)
    return DriftSince(chosen, fitted, drift)
