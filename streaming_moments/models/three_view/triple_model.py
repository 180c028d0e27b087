"""TripleModel: what models of triples of views have in common: fits, of all records or one half."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from streaming_moments.models.numbers.number_search import Trial
from streaming_moments.models.rows import Rows
from streaming_moments.models.stored import StoredModel
from streaming_moments.models.three_view.columns import half_rows
from streaming_moments.models.three_view.held_out import trial_of_halves


class TripleModel(StoredModel):
    """A model that is fitted on the triples of three views, or of windows of a sequence."""

    compares_halves: ClassVar[bool] = True
    numbered: ClassVar[str] = "states"
    holds_out: ClassVar[str] = "triples"

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """The model of these statistics.

        Parameters
        ----------
        rows : Rows
            Of `ViewStatistics`; for a chain, of sequences.
        options : MarkovOptions or ViewOptions
            How.

        Raises
        ------
        NotIdentifiable
            The statistics do not hold as many states: says how many.
        """
        return cls._fitted(rows, options, rows.foundation.halves)

    @classmethod
    def fit_half(cls, rows: Rows, options: Any, odd: bool) -> Self:
        """The model of one half of the records, without error bars; errors as `fit`."""
        return cls._fitted(half_rows(rows, odd), options, halves=False)

    @classmethod
    def trial(cls, rows: Rows, options: Any) -> Trial:
        """What the triples of each half say of the other; errors as `trial_of_halves`."""
        return trial_of_halves(rows, cls, options)

    @classmethod
    def _fitted(cls, rows: Rows, options: Any, halves: bool) -> Self:
        """The model, with error bars where `halves` says so; each model has its own."""
        raise NotImplementedError
