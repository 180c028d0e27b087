"""Ranges: check of the range of records that is selected from a batch."""

from __future__ import annotations

from numbers import Integral

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import shown


def require_range(start: int, stop: int, held: int) -> None:
    """Raise InvalidInput if a batch does not have all records of a range.

    Examples
    --------
    >>> require_range(0, 9, 5)
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: records 0 to 9 are selected, but the batch has 5; \
give whole numbers with 0 <= start <= stop <= 5
    """
    whole = all(isinstance(one, Integral) for one in (start, stop))
    if not whole or not 0 <= start <= stop <= held:
        raise InvalidInput(
            f"records {shown(start)} to {shown(stop)} are selected, but the batch has {held}; "
            f"give whole numbers with 0 <= start <= stop <= {held}"
        )
