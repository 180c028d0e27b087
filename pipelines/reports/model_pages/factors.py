"""How pages show factors of rows of numbers: their size, and their distance from noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.pipelines.reports.model_pages.coordinates import column_names, largest
from streaming_moments.pipelines.reports.model_pages.page_specs import PageRequest
from streaming_moments.pipelines.reports.page import Measure, ReportPage, TopicReport
from streaming_moments.storage.store.store import MomentStore

_NOISE = "The band is what noise alone would have, one standard error to either side of 0."


def parts_of(
    store: MomentStore, name: str, model: IndependentFactors, found: Mapping[int, Any]
) -> tuple[TopicReport, ...]:
    """Return the factors, each with its share of the variance and its largest loadings."""
    names = column_names(store)
    bars = [None] * model.n_topics if model.bars is None else model.bars.tolist()
    told = [{"skewness": one} for one in model.skewness.tolist()]
    if not np.isnan(model.kurtosis).any():
        pairs = zip(told, model.kurtosis.tolist(), strict=True)
        told = [{**known, "kurtosis": one} for known, one in pairs]
    return tuple(
        TopicReport(
            factor,
            weight,
            None,
            (),
            (),
            bars[factor],
            told=told[factor],
            coordinates=largest(model.mixing[:, factor], names),
        )
        for factor, weight in enumerate(model.weights.tolist())
    )


def with_factors(page: ReportPage, asked: PageRequest) -> ReportPage:
    """Add the factors to a page, and show their cumulants beside the cumulants of noise."""
    model: IndependentFactors = asked.model
    bars = () if model.bars is None else tuple(model.bars.tolist())
    known = ", with the error bar of the column from halves of the rows" if bars else ""
    norms = tuple(np.linalg.norm(model.mixing, axis=0).tolist())
    measures = [
        Measure("column norm", norms, bars, note=f"In the unit of the rows{known}."),
        Measure(
            "skewness",
            tuple(model.skewness.tolist()),
            noise=tuple(model.skewness_error.tolist()),
            note=_NOISE,
        ),
    ]
    if not np.isnan(model.kurtosis).any():
        kurtosis, noise = tuple(model.kurtosis.tolist()), tuple(model.kurtosis_error.tolist())
        measures.append(Measure("excess kurtosis", kurtosis, noise=noise, note=_NOISE))
    return replace(page, topics=tuple(asked.parts), measures=tuple(measures))
