"""How pages show clusters of rows of numbers: their place, size and movement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, nan
from typing import cast

import numpy as np

from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.states import Clusters, states_of
from streaming_moments.pipelines.reports.model_pages.coordinates import column_names, largest
from streaming_moments.pipelines.reports.model_pages.following import notes_of
from streaming_moments.pipelines.reports.model_pages.page_specs import PageRequest, PreviousModel
from streaming_moments.pipelines.reports.page import (
    ClusterPlane,
    Measure,
    ReportPage,
    TopicChange,
    TopicReport,
)
from streaming_moments.pipelines.reports.topic_reports import topic_names
from streaming_moments.quality.clusters import ClusterMove, cluster_move, principal_plane
from streaming_moments.quality.differences import bar_of_difference
from streaming_moments.quality.representatives import NearRow
from streaming_moments.storage.store.store import MomentStore


def parts_of(
    store: MomentStore,
    name: str,
    model: GaussianMixture,
    found: Mapping[int, tuple[NearRow, ...]],
) -> tuple[TopicReport, ...]:
    """Return the components of a mixture, with the rows nearest to their means, if known.

    If columns have names, each component lists the columns in which its mean differs most from the
    mean of all rows, in standard deviations of all rows.
    """
    labels, names = store.models[name].labels, column_names(store)
    centred = model.means - model.weights @ model.means
    spread = np.sqrt(model.weights @ (model.variances + np.square(centred)))
    apart = centred / np.where(spread > 0, spread, 1.0)
    spreads = np.sqrt(model.variances.mean(axis=1)).tolist()
    bars = [None] * model.n_topics if model.bars is None else model.bars.tolist()
    return tuple(
        TopicReport(
            cluster,
            weight,
            None,
            (),
            (),
            bars[cluster],
            label=labels.get(cluster),
            told={"spread": spreads[cluster]},
            coordinates=largest(apart[cluster], names) if names else (),
            nearest=tuple(found.get(cluster, ())),
        )
        for cluster, weight in enumerate(model.weights.tolist())
    )


def with_clusters(page: ReportPage, asked: PageRequest) -> ReportPage:
    """Add the clusters of a mixture to a page, compared with those of an earlier model if given."""
    model, followed, parts = asked.model, asked.followed, asked.parts
    moves = {} if followed is None else _moves(model, followed)
    told = tuple(_with_move(part, moves.get(part.topic)) for part in parts)
    page = replace(
        page, topics=told, plane=_plane(model, followed), measures=_measures(model, moves)
    )
    if followed is None:
        return page
    return replace(
        page,
        notes=notes_of(followed.matching),
        changes=_changes(model, told, followed, moves),
        since=followed.since,
        shares=page.shares if page.shares.dates else followed.shares,
    )


def rows_written(
    folder: str, storage_options: Mapping[str, object] | None
) -> tuple[str, dict[int, tuple[NearRow, ...]]]:
    """Read the name of the model, and the rows nearest to each mean, from a transform's output."""
    from streaming_moments.storage.top_documents import read_near_rows

    model, found = read_near_rows(folder, storage_options)
    return model, dict(enumerate(found))


def _moves(model: GaussianMixture, followed: PreviousModel) -> dict[int, ClusterMove]:
    """Return how the mean of each cluster, by its number, has moved since the earlier model."""
    both = (cast("Clusters", states_of(one)) for one in (followed.model, model))
    before, after = both
    return {pair.after: cluster_move(before, after, pair) for pair in followed.matching.kept}


def _with_move(part: TopicReport, move: ClusterMove | None) -> TopicReport:
    if move is None:
        return part
    return replace(part, told={**part.told, "spreads moved": move.spreads})


def _plane(model: GaussianMixture, followed: PreviousModel | None) -> ClusterPlane:
    plane = principal_plane(model.means, model.weights)
    before: list[tuple[float, float] | None] = []
    if followed is not None:
        earlier = plane.places(followed.model.means).tolist()
        numbers = {pair.after: pair.before for pair in followed.matching.kept}
        before = [
            tuple(earlier[numbers[cluster]]) if cluster in numbers else None
            for cluster in range(model.n_topics)
        ]
    return ClusterPlane(
        tuple(map(tuple, plane.places(model.means).tolist())),
        tuple(map(tuple, plane.ellipses(model.variances).tolist())),
        () if model.bars is None else tuple(model.bars.tolist()),
        tuple(before),
        tuple(plane.shares.tolist()),
    )


def _measures(model: GaussianMixture, moves: Mapping[int, ClusterMove]) -> tuple[Measure, ...]:
    weight_bars = () if model.weight_bars is None else tuple(model.weight_bars.tolist())
    sized = "Share of the rows"
    sized += ", with its standard error from halves of the rows." if weight_bars else "."
    found = [
        Measure("weight", tuple(model.weights.tolist()), weight_bars, note=sized, percent=True),
        Measure(
            "spread",
            tuple(np.sqrt(model.variances.mean(axis=1)).tolist()),
            note="Standard deviation of a coordinate, in the unit of the rows.",
        ),
    ]
    if moves:
        each = [moves.get(cluster) for cluster in range(model.n_topics)]
        found.append(
            Measure(
                "spreads moved",
                tuple(nan if one is None else one.spreads for one in each),
                tuple(nan if one is None else _bar_in_spreads(one) for one in each),
                note="How far the mean has moved since the earlier model, in standard deviations "
                "of the cluster. The whisker is its error bar.",
            )
        )
    return tuple(found)


def _bar_in_spreads(move: ClusterMove) -> float:
    known = isfinite(move.bars) and move.bars > 0
    return move.spreads / move.bars if known else nan


def _bars(model: GaussianMixture) -> dict[int, float]:
    """Return the standard errors of the weights, if they are known.

    The errors compare models of two halves of the rows, which may agree by chance. So an error is
    at least as large as if the cluster of each row were certain.
    """
    if model.weight_bars is None:
        return {}
    least = np.sqrt(model.weights * (1 - model.weights) / max(model.documents, 1))
    bars = np.maximum(model.weight_bars, least).tolist()
    return {cluster: bar for cluster, bar in enumerate(bars) if isfinite(bar)}


def _changes(
    model: GaussianMixture,
    parts: Sequence[TopicReport],
    followed: PreviousModel,
    moves: Mapping[int, ClusterMove],
) -> tuple[TopicChange, ...]:
    """Return the change of each cluster; clusters that no longer exist come last."""
    matching, notes = followed.matching, notes_of(followed.matching)
    weights, labels = followed.model.weights, followed.labels or {}
    bars = _bars(followed.model), _bars(model)
    kept = {pair.after: pair for pair in matching.kept}
    changes = []
    for part, name in zip(parts, topic_names(parts, "cluster"), strict=True):
        note = notes.get(part.topic, "")
        if part.topic not in kept:
            changes.append(TopicChange(part.topic, name, None, part.weight, None, note))
            continue
        pair, move = kept[part.topic], moves[part.topic]
        before = float(weights[pair.before])
        bar = bar_of_difference(bars[0].get(pair.before), bars[1].get(part.topic))
        changes.append(
            TopicChange(
                part.topic,
                name,
                before=before,
                now=part.weight,
                distance=pair.distance,
                note=note,
                spreads=move.spreads,
                bars=move.bars if isfinite(move.bars) else None,
                bar=bar,
            )
        )
    for lone in matching.gone:
        # add "before" to the number, because another cluster of the new model may have it
        gone = labels.get(lone.topic, f"cluster {lone.topic} before")
        changes.append(TopicChange(None, gone, float(weights[lone.topic]), None, None, "gone"))
    return tuple(changes)
