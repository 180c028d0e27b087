"""Create stores of sets: choose the features and a sketch of them from a pilot of shards."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from streaming_moments.numerics.lazy_scipy import sp
from streaming_moments.pipelines.counting_options import PilotOptions
from streaming_moments.pipelines.jobs.kinds.base import (
    KindJobs,
    Made,
    Sampling,
    Sight,
    create_by,
)
from streaming_moments.pipelines.jobs.kinds.options import OF_WORDS, KindOptions
from streaming_moments.pipelines.jobs.kinds.views import (
    frequent_terms,
    pairs_of,
    sample_table,
)
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.statistics.views.sketches import sketch_of
from streaming_moments.storage.counting.sets import SetsForm, counted


def _form(shape: KindOptions) -> SetsForm:
    return SetsForm(shape.names or SetsForm().columns)


def _made(sampling: Sampling) -> Made:
    shape, counting, options = sampling.shape, sampling.counting, sampling.options
    sets = _form(shape)
    table, origin = sample_table(sampling, sets.columns, "rows")
    features = _features(table, sets, options)
    batch, _ = counted(table, sets, features, "the pilot")
    rows = batch.to_csr()
    pairs = pairs_of([rows, rows], 0, sampling.limits.pilot_bytes)
    together = sp.csr_array(pairs - sp.diags_array(pairs.diagonal(), dtype=pairs.dtype))
    basis = sketch_of(together, features, shape.sketch_columns, options.seed)
    foundation = SetsFoundation(features, basis, counting.halves)
    return Made(foundation, sets.to_json(), origin)


def _features(table: Any, sets: SetsForm, options: PilotOptions) -> Vocabulary:
    """Return features by decreasing frequency.

    Features of lists must occur in enough rows. Features that are columns are all used.
    """
    if sets.listed:
        [name] = sets.columns
        terms = frequent_terms(table[name], name, None, options)
    else:
        named = Vocabulary(sets.columns, len(sets.columns))
        batch, _ = counted(table, sets, named, "the pilot")
        often = np.bincount(batch.words, minlength=named.n_words)
        terms = tuple(sets.columns[place] for place in np.argsort(-often, kind="stable"))
    return Vocabulary(terms, min(options.core, len(terms)))


def _sights(columns: Mapping[str, str], text_column: str) -> list[Sight]:
    """Find lists of features, or a table with only 0 and 1."""
    lists = [name for name, what in columns.items() if what in ("words", "ids")]
    if "features" in lists:
        return [Sight("sets in column features", usual=True)]
    found = [Sight.of_columns("sets of features in column", [name]) for name in lists]
    if len(columns) > 1 and set(columns.values()) == {"bit"}:
        found.append(Sight.of_columns("sets of the features", columns))
    return found


SETS = KindJobs(
    SetsFoundation,
    OF_WORDS | {"columns", "sketch_columns", "core"},
    partial(create_by, _made),
    _form,
    sights=_sights,
)
