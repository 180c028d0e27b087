"""Abilities: what only some models can, a Protocol and a line each; passes have `PASSES`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.rows import Rows
from streaming_moments.models.views.hidden_markov import HiddenMarkovModel
from streaming_moments.models.views.multi_view import MultiViewMixture


class WithTables(Protocol):
    """States that are distributions over the words of one view or several."""

    @property
    def tables(self) -> dict[str, NDArray[np.float64]]:
        """(n, k) columns of each view, by what it is called."""


class FitsHalves(Protocol):
    """Models of one half of the records, by which the triples of the other half are predicted."""

    @classmethod
    def fit_half(cls, rows: Rows, options: Any, odd: bool) -> Self:
        """The model of one half of the records, without error bars; errors as `fit`."""

    @property
    def triple_views(self) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.float64], float]:
        """Columns of the views, weights, alpha0: of which the chances of triples are made."""


WITH_TABLES: Mapping[str, type[WithTables]] = MappingProxyType(
    {one.name: one for one in (MultiViewMixture, HiddenMarkovModel, Blockmodel)}
)
FITS_HALVES: Mapping[str, type[FitsHalves]] = MappingProxyType(
    {one.name: one for one in (MultiViewMixture, HiddenMarkovModel)}
)
