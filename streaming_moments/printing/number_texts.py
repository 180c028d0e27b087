"""Numbers in pages and messages: short texts that differ if the numbers differ."""

from __future__ import annotations

import math

# Numbers of significant digits to try for numbers below 1,000. The last one shows a double exactly.
_DIGITS = (4, 6, 9, 17)


def short(value: float | None, digits: int = 4) -> str:
    """Format a number for people; a dash if it is unknown.

    Examples
    --------
    >>> short(0.123456), short(10_022.4), short(1000)
    ('0.1235', '10,022', '1,000')
    """
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    if abs(value) < 1000:
        return f"{value:,.{digits}g}"
    whole, _, decimals = f"{value:,.{digits - 4}f}".partition(".")
    return f"{whole}.{decimals}".rstrip("0.") if decimals.strip("0") else whole


def distinct(one: float, other: float) -> tuple[str, str]:
    """Format two numbers with enough digits to see that they differ.

    Examples
    --------
    >>> distinct(0.0500001, 0.05), distinct(999.9999, 1000.0), distinct(12, 12)
    (('0.0500001', '0.05'), ('999.9999', '1,000'), ('12', '12'))
    """
    digits = next((n for n in _DIGITS if short(one, n) != short(other, n)), _DIGITS[0])
    return short(one, digits), short(other, digits)
