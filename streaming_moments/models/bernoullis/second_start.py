"""Second start of passes for a Bernoulli mixture, from a sample of rows: the pilot.

It is used if it makes the rows more likely than the fit by moments does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.bernoullis.passes import ExpectedSets, SetReader, improved
from streaming_moments.models.mixtures.matching import matched_order
from streaming_moments.models.starts import NOWHERE, PILOT, STARTS, Pilot
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.sets.foundation import SetsFoundation

# a random component is this share of one row, plus the remaining share of the mean of all rows
_OWN = 0.5


def better_start(
    model: BernoulliMixture, records: CountBatch, seed: int = 0, settle: bool = False
) -> BernoulliMixture:
    """Return the mixture from which passes start: the model, or the best start from a pilot.

    The pilot is a sample of the rows, `records`. The model and the best of ten starts from the
    pilot are compared after some passes over the pilot. The start is used if it makes rows more
    likely, or if the model has no components of its own. Its components are put in the order of the
    nearest components of the model. Error bars belong to the fit by moments, so a start from the
    pilot has none. With `settle`, and if the pilot has all rows, the result is the mixture after
    these passes.
    """
    pilot = Pilot.of(records, seed, _after, BernoulliMixture.log_likelihoods)
    rng = np.random.default_rng(seed)
    starts = [_drawn(model, pilot.train, rng) for _ in range(STARTS)]
    found = pilot.best_of(starts)
    if model.start == NOWHERE:
        return found
    chosen = pilot.chosen(model, found, settle)
    if chosen.start == model.start:
        return chosen
    return chosen.reordered(matched_order(model.shares.T, chosen.shares.T))


def _after(model: BernoulliMixture, rows: CountBatch, passes: int) -> BernoulliMixture:
    """Return the mixture after several passes over some rows, without acceleration."""
    for _ in range(passes):
        model = improved(model, SetReader(model).add(rows, ExpectedSets.zero(model)))
    return model


def _drawn(model: BernoulliMixture, rows: CountBatch, rng: np.random.Generator) -> BernoulliMixture:
    """Return a random mixture: each component is the mean of one random row and the mean row."""
    k, csr = model.n_topics, SetsFoundation.distinct(rows).to_csr()
    own = csr[rng.integers(0, rows.documents, k)].toarray().T
    probabilities = _OWN * own + (1 - _OWN) * np.asarray(csr.mean(axis=0))[:, None]
    return replace(
        model,
        probabilities=probabilities,
        weights=np.full(k, 1 / k),
        spectrum=np.empty(0),
        rounds=0,
        bars=None,
        probability_bars=None,
        held_out=None,
        start=PILOT,
    )
