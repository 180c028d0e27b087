"""TripleModel: base class of models of triples; it fits them to all records and to one half."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from streaming_moments.models.numbers.number_search import Trial
from streaming_moments.models.provenance import Polishing
from streaming_moments.models.rows import Rows
from streaming_moments.models.stored import StoredModel
from streaming_moments.models.three_view.columns import half_rows
from streaming_moments.models.three_view.held_out import trial_of_halves


@dataclass(frozen=True, eq=False, repr=False)
class TripleModel(StoredModel):
    """Model that is fitted to triples of three views, or to windows of a sequence.

    Parameters
    ----------
    polishing : Polishing, optional
        How passes polished the model, if they did; error bars and scores are those before the
        passes.
    documents, since, until, half_life
        As for any model.
    """

    compares_halves: ClassVar[bool] = True
    numbered: ClassVar[str] = "states"
    holds_out: ClassVar[str] = "triples"

    polishing: Polishing | None = field(default=None, kw_only=True)

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit the model to statistics.

        Parameters
        ----------
        rows : Rows
            Rows of `ViewStatistics` of records with three views or, for chains, of sequences.
        options : MarkovOptions or ViewOptions
            Options of the fit.

        Raises
        ------
        NotIdentifiable
            The statistics identify fewer states than the options ask for; the message says how
            many.
        """
        return cls._fitted(rows, options, rows.foundation.halves)

    @classmethod
    def fit_half(cls, rows: Rows, options: Any, odd: bool) -> Self:
        """Fit the model to the even or odd half of the records, without error bars.

        Raises the same errors as `fit`.
        """
        return cls._fitted(half_rows(rows, odd), options, halves=False)

    @classmethod
    def trial(cls, rows: Rows, options: Any) -> Trial:
        """Fit a model to each half of the records, and score it by triples of the other half.

        See `trial_of_halves`.
        """
        return trial_of_halves(rows, cls, options)

    def said_of_polishing(self, facts: dict[str, Any]) -> list[str]:
        """Add the passes that polished the model to `facts`, and return sentences about them.

        Without passes, `facts` stays the same and the list is empty.
        """
        if self.polishing is None:
            return []
        facts["polishing"] = asdict(self.polishing)
        return [self.polishing.sentence, "error bars and scores are of the fit before that"]

    @classmethod
    def _fitted(cls, rows: Rows, options: Any, halves: bool) -> Self:
        """Fit the model, with error bars if `halves` is true; each subclass defines this method."""
        raise NotImplementedError
