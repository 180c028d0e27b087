"""Index the rows of a result as the caller indexed the documents, with labels of the same types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streaming_moments.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd


class OwnIndex(Protocol):
    """The caller's own labels for the documents of a transform."""

    def on(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a frame made by `frame_of` with the caller's index in place of its text index."""


@dataclass(frozen=True, eq=False)
class Whole:
    """Index with a label for each document.

    index : pandas.Index, index in the order of the documents
    """

    index: pd.Index

    @classmethod
    def of_values(cls, values: Sequence[Any]) -> Whole | None:
        """Make an index from the names of documents; return None if a document has no name."""
        import pandas as pd

        if any(value is None for value in values):
            return None
        return cls(pd.Index(list(values), name="id", tupleize_cols=False))

    def on(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Label each row by its document; a document that was cut into passages has several rows.

        Raises StoreError if the files hold another number of documents than the index.
        """
        import pandas as pd

        files, _ = pd.factorize(frame["source"])
        rows = frame["row"].to_numpy()
        documents = np.zeros(files.max(initial=-1) + 1, dtype=np.int64)
        np.maximum.at(documents, files, rows + 1)
        if (found := int(documents.sum())) != len(self.index):
            raise StoreError(
                f"the files hold {found} documents, but {len(self.index)} were transformed, so "
                "another transform has replaced them; transform again into a separate folder"
            )
        places = (np.cumsum(documents) - documents)[files] + rows
        same = len(places) == len(self.index) and bool((places == np.arange(len(places))).all())
        return frame.set_axis(self.index if same else self.index.take(places), axis=0)


@dataclass(frozen=True, eq=False)
class Typed:
    """Type and name of the caller's index, for an index whose labels only the workers have.

    Files store the labels as texts, and this type converts them back.

    dtype : type of the index in pandas
    name : name of the index
    """

    dtype: Any
    name: Any

    def on(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Label each row by the value from which its text label was made."""
        labels = _read(frame.index, self.dtype).rename(self.name)
        return frame.set_axis(labels, axis=0)


def _read(texts: pd.Index, dtype: Any) -> pd.Index:
    """Convert texts to labels of a type; returns the texts if they do not determine the labels."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        known = dtype.categories
        codes = pd.Index(known.map(str)).get_indexer(texts)
        if (codes < 0).any():  # the type that Dask gave lacks some of the categories
            return pd.CategoricalIndex(_read(texts, known.dtype))
        return pd.CategoricalIndex(pd.Categorical.from_codes(codes, dtype=dtype))
    if isinstance(dtype, pd.PeriodDtype):
        return pd.PeriodIndex(texts, dtype=dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return pd.to_datetime(texts, format="ISO8601", utc=True).tz_convert(dtype.tz).astype(dtype)
    kind = getattr(dtype, "kind", "O")
    if kind == "M":
        return pd.to_datetime(texts, format="ISO8601").astype(dtype)
    if kind == "m":
        return pd.to_timedelta(texts).astype(dtype)
    if kind == "b":
        return pd.Index(texts == "True").astype(dtype)
    return texts.astype(dtype) if kind in "iuf" or isinstance(dtype, pd.StringDtype) else texts
