"""Own index: rows of a frame called as the caller calls the documents, with the caller's types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streaming_moments.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd


class OwnIndex(Protocol):
    """What the caller calls the documents of a transform."""

    def on(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame of `frame_of` with the caller's index in place of texts."""


@dataclass(frozen=True, eq=False)
class Whole:
    """An index that has a label for each document.

    Parameters
    ----------
    index : pandas.Index
        In the order of the documents.
    """

    index: pd.Index

    @classmethod
    def of_values(cls, values: Sequence[Any]) -> Whole | None:
        """An index of what each document is called; None where one is not called anything."""
        import pandas as pd

        if any(value is None for value in values):
            return None
        return cls(pd.Index(list(values), name="id", tupleize_cols=False))

    def on(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Label each row, of which a document in passages has several.

        Raises
        ------
        StoreError
            The files hold another number of documents.
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
    """The type of an index whose labels lie on workers; they are read from their texts.

    Parameters
    ----------
    dtype : object
        Of the index, as pandas has it.
    name : hashable
        Of the index.
    """

    dtype: Any
    name: Any

    def on(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Label each row by the value of its text."""
        labels = _read(frame.index, self.dtype).rename(self.name)
        return frame.set_axis(labels, axis=0)


def _read(texts: pd.Index, dtype: Any) -> pd.Index:
    """Labels of a type from their texts; of a type whose texts say less than it, the texts."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        known = dtype.categories
        codes = pd.Index(known.map(str)).get_indexer(texts)
        if (codes < 0).any():  # Dask does not know all categories
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
