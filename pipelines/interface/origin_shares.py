"""SharesByOrigin: shares of topics in the documents of each origin of a hub, as a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns, DataFrame, Table
from streaming_moments.pipelines.interface.topics_view import Topics
from streaming_moments.storage.merging.origin_shares import OriginShares, shares_by_origin
from streaming_moments.storage.operations.lineages import store_counting
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True, eq=False, repr=False)
class SharesByOrigin:
    """Shares of topics in the documents of each origin; `Store.shares_by_origin` makes one.

    Parameters
    ----------
    origins : tuple of OriginShares
        Shares of each origin. The first entry, with an empty name, is for the documents that the
        store counted itself.
    names : tuple of str
        The label of each of k topics, or its two top words.
    """

    origins: tuple[OriginShares, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, store: MomentStore, topics: Topics, name: str | None) -> SharesByOrigin:
        """Compute the shares of topics of a stored model; arguments and errors as in `Store`."""
        counted = store_counting(store, model_called(store.commit, name), topics.model)
        return cls(shares_by_origin(counted, topics.model), tuple(topics.names))

    def __repr__(self) -> str:
        return f"SharesByOrigin({len(self.origins)} origins, {len(self.names)} topics)"

    def _repr_html_(self) -> str:
        return self.columns.html(repr(self))

    @property
    def shares(self) -> NDArray[np.float64]:
        """(origins, k) float64 share of each topic among the tokens of each origin."""
        return np.array([one.shares for one in self.origins]).reshape(-1, len(self.names))

    @property
    def bars(self) -> NDArray[np.float64]:
        """(origins, k) float64 standard errors of the shares."""
        return np.array([one.bars for one in self.origins]).reshape(-1, len(self.names))

    @property
    def columns(self) -> Columns:
        """Name and number of tokens of each origin, and the share and bar of each topic."""
        return Columns.of(
            origin=Column.of_values(one.origin for one in self.origins),
            tokens=np.array([one.tokens for one in self.origins], dtype=np.int64),
            share=self.shares,
            bar=self.bars,
        )

    def to_table(self) -> Table:
        """Return an Arrow table with a row for each origin; shares and bars are lists of k."""
        return self.columns.to_table()

    def to_frame(self) -> DataFrame:
        """Return a pandas frame with a row for each origin: `share_0`, `bar_0` and so on."""
        return self.columns.to_frame("place")
