"""Files of one NumPy array (.npy), read without the parser of Python.

`numpy.load` parses the head by `ast`. In CPython 3.11, parsing in several threads at a time can
raise SystemError, and workers read shards and foundations in threads.
"""

from __future__ import annotations

import io
import math
import re
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"\x93NUMPY"
_LONGEST_HEAD = 10_000  # most bytes of the head, the default limit of NumPy
# for each version: number of bytes with the length of the head, and encoding of the head
_VERSIONS = {(1, 0): (2, "latin1"), (2, 0): (4, "latin1"), (3, 0): (4, "utf8")}
# Pattern of one item of the dictionary in the head. Python 2 wrote an L after a number.
_ITEM = re.compile(
    r"""\s*(?P<quote>['"])(?P<key>\w+)(?P=quote)\s*:\s*(?P<value>"""
    r"""True|False|'[^',\\]*'|"[^",\\]*"|\[.*\]|\((?:\s*\d+L?\s*,)*\s*(?:\d+L?\s*)?\))\s*(?:,|$)""",
    re.DOTALL,
)
# name of a type of numbers; `numpy.dtype` reads other names by the parser of Python
_TYPE = re.compile(r"[<>=|]?[A-Za-z?]\w*(?:\[\w+\])?")


class NpyHead(NamedTuple):
    """Description of the array after the head of a file."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]


def read_npy_head(stream: IO[bytes]) -> NpyHead:
    """Read the head of a file, after which the numbers begin; ValueError if it is damaged.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((3, 4)))
    >>> _ = file.seek(0)
    >>> read_npy_head(file)
    NpyHead(shape=(3, 4), by_columns=False, dtype=dtype('float64'))
    """
    begin = _read(stream, len(_MAGIC) + 2)
    version = begin[-2], begin[-1]
    if not begin.startswith(_MAGIC) or version not in _VERSIONS:
        raise ValueError("it does not begin with the mark of NumPy files and a known version")
    size, encoding = _VERSIONS[version]
    length = int.from_bytes(_read(stream, size), "little")
    if length > _LONGEST_HEAD:
        raise ValueError(f"its header has {length} bytes, above {_LONGEST_HEAD}")
    items = _items(_read(stream, length).decode(encoding))
    if items.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError(f"its header has the keys {sorted(items)}")
    order, shape, kind = items["fortran_order"], items["shape"], items["descr"]
    if order not in ("True", "False") or not shape.startswith("(") or kind[0] not in "'\"[":
        raise ValueError("its header has a value of the wrong type")
    if kind.startswith("["):
        raise ValueError("it holds records with fields, not numbers")
    if not _TYPE.fullmatch(kind[1:-1]):
        raise ValueError(f"its header has the type {kind}")
    try:
        dtype = np.dtype(kind[1:-1])
    except (TypeError, SyntaxError) as error:
        raise ValueError(str(error)) from error
    return NpyHead(tuple(map(int, re.findall(r"\d+", shape))), order == "True", dtype)


def npy_array(content: bytes) -> NDArray[Any]:
    """Read the array of a whole file as `numpy.load` does; ValueError if it is damaged.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(3, dtype=np.int8))
    >>> npy_array(file.getvalue())
    array([0, 1, 2], dtype=int8)
    """
    stream = io.BytesIO(content)
    head = read_npy_head(stream)
    if head.dtype.hasobject:
        raise ValueError("it holds objects, not numbers")
    values = np.frombuffer(content, head.dtype, math.prod(head.shape), stream.tell())
    # a copy, because kernels are compiled for arrays that may be changed
    return values.reshape(head.shape, order="F" if head.by_columns else "C").copy(order="K")


def _items(head: str) -> dict[str, str]:
    """Values of the dictionary, as they are written, by key."""
    text = head.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError("its header is not a dictionary")
    inside, at, found = text[1:-1].strip(), 0, dict[str, str]()
    while at < len(inside):
        item = _ITEM.match(inside, at)
        if item is None:
            raise ValueError("its header is not a dictionary of known values")
        found[item["key"]], at = item["value"], item.end()
    return found


def _read(stream: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, which a stream of a compressed file may return in parts."""
    parts, left = list[bytes](), size
    while left and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    if left:
        raise ValueError("it ends within its header")
    return b"".join(parts)
