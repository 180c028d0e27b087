"""Numba kernel that finds the records of CSV, without the interpreter lock."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel

# Columns of the array that `find_records` fills: the byte at which a record begins, the byte after
# it, the number of lines before it, the number of lines up to its end, and its number of fields.
BEGIN, END, LINE, LINES, FIELDS = range(5)
_QUOTE, _LF, _CR = ord('"'), ord("\n"), ord("\r")


@kernel()
def find_records(
    content: NDArray[np.uint8], delimiter: int, found: NDArray[np.int64]
) -> tuple[int, int, int, bool]:
    """Find the complete records in `content`, by the same rules as Arrow's parser.

    The content begins with a record.
    A field is quoted if it begins with a quote. A doubled quote in it means one quote. A record
    ends with CR, LF or both outside of quotes. If the content ends with a CR, an LF may follow, so
    the last record is not complete. A blank line is not a record.

    `content` is (bytes,) uint8 of UTF-8. Fills `found`, (most, 5) int64, with the records in order.
    Returns the number of records, the numbers of bytes and lines up to the end of the last one, and
    whether the content ends within quotes.
    """
    records = lines = line = begin = place = 0
    fields, quoted, at_start = 1, False, True
    while place < content.size and records < found.shape[0]:
        byte = content[place]
        place += 1
        if quoted:
            if byte == _QUOTE:
                if place < content.size and content[place] == _QUOTE:
                    place += 1
                else:
                    quoted = False
            elif byte == _LF:
                lines += 1
        elif byte == _QUOTE and at_start:
            quoted, at_start = True, False
        elif byte == delimiter:
            fields, at_start = fields + 1, True
        elif byte in (_LF, _CR):
            blank = place == begin + 1
            if byte == _CR:
                if place == content.size:
                    break
                if content[place] == _LF:
                    place += 1
            lines += 1
            if not blank:
                found[records, BEGIN] = begin
                found[records, END] = place
                found[records, LINE] = line
                found[records, LINES] = lines
                found[records, FIELDS] = fields
                records += 1
            begin, line, fields, at_start = place, lines, 1, True
        else:
            at_start = False
    return records, begin, line, quoted
