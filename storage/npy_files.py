"""Read files of one NumPy array (.npy) without the parser of Python.

`numpy.load` parses the header of the file with `ast`. In CPython 3.11, parsing in several threads
at a time can raise SystemError. Workers read such files in several threads.
"""

from __future__ import annotations

import io
import math
import re
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"\x93NUMPY"
_LONGEST_HEAD = 10_000  # limit on the bytes of the header, as in NumPy
# for each version of the format: how many bytes give the length of the header, and its encoding
_VERSIONS = {(1, 0): (2, "latin1"), (2, 0): (4, "latin1"), (3, 0): (4, "utf8")}
# Pattern of one item of the dictionary in the header of a .npy file. A number may end in L, as
# Python 2 wrote it.
_ITEM = re.compile(
    r"""\s*(?P<quote>['"])(?P<key>\w+)(?P=quote)\s*:\s*(?P<value>"""
    r"""True|False|'[^',\\]*'|"[^",\\]*"|\[.*\]|\((?:\s*\d+L?\s*,)*\s*(?:\d+L?\s*)?\))\s*(?:,|$)""",
    re.DOTALL,
)
# Pattern of the name of a numeric type, such as <f8. Other text is refused, because `numpy.dtype`
# would parse it with `ast`.
_TYPE = re.compile(r"[<>=|]?[A-Za-z?]\w*(?:\[\w+\])?")


class NpyHead(NamedTuple):
    """Shape, order and type of an array, as the header of its .npy file gives them."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]


def read_npy_head(stream: IO[bytes]) -> NpyHead:
    """Read the header of a .npy file, and leave the stream at the first number of the array.

    Raises ValueError if the header is damaged.

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
        raise ValueError("it does not begin with the bytes \\x93NUMPY and a known version")
    size, encoding = _VERSIONS[version]
    length = int.from_bytes(_read(stream, size), "little")
    if length > _LONGEST_HEAD:
        raise ValueError(f"its header has {length} bytes, above {_LONGEST_HEAD}")
    items = _items(_read(stream, length).decode(encoding))
    if items.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError(
            f"the keys of its header are {sorted(items)}, not descr, fortran_order and shape"
        )
    order, shape, kind = items["fortran_order"], items["shape"], items["descr"]
    if order not in ("True", "False") or not shape.startswith("(") or kind[0] not in "'\"[":
        raise ValueError("its header has a value of the wrong type")
    if kind.startswith("["):
        raise ValueError("it holds records with fields, not numbers")
    if not _TYPE.fullmatch(kind[1:-1]):
        raise ValueError(f"its header has the type {kind}, which is not a type of numbers")
    try:
        dtype = np.dtype(kind[1:-1])
    except (TypeError, SyntaxError) as error:
        raise ValueError(str(error)) from error
    return NpyHead(tuple(map(int, re.findall(r"\d+", shape))), order == "True", dtype)


def npy_array(content: bytes) -> NDArray[Any]:
    """Read the array from the bytes of a whole file, as `numpy.load` does.

    Raises ValueError if the file is damaged.

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
    # copy, because `frombuffer` is read-only and the kernels are compiled for writable arrays
    return values.reshape(head.shape, order="F" if head.by_columns else "C").copy(order="K")


def _items(head: str) -> dict[str, str]:
    """Split the dictionary in the header of a .npy file; return the text of each value by key."""
    text = head.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError("its header is not a dictionary")
    inside, at, found = text[1:-1].strip(), 0, dict[str, str]()
    while at < len(inside):
        item = _ITEM.match(inside, at)
        if item is None:
            raise ValueError("its header is a dictionary with an unreadable value")
        found[item["key"]], at = item["value"], item.end()
    return found


def _read(stream: IO[bytes], size: int) -> bytes:
    """Read `size` bytes of a stream; a compressed file may need several reads."""
    parts, left = list[bytes](), size
    while left and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    if left:
        raise ValueError("it ends before the end of its header")
    return b"".join(parts)
