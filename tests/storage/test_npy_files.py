"""Files of one NumPy array."""

import io
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib import format as npy_format

from streaming_moments.storage.npy_files import npy_array, read_npy_head

KINDS = st.sampled_from(["<f8", ">f4", "f2", "|i1", "<u8", "bool", "<c16", ">i4", "<U3", "|S2"])
SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


def written(array, version):
    file = io.BytesIO()
    npy_format.write_array(file, array, version)
    return file.getvalue()


def with_head(head, version=(1, 0)):
    size = {1: 2, 2: 4, 3: 4}.get(version[0], 4)
    return b"\x93NUMPY" + bytes(version) + len(head).to_bytes(size, "little") + head


@given(KINDS, SHAPES, st.booleans(), st.sampled_from([None, (1, 0), (2, 0), (3, 0)]))
def test_an_array_is_read_as_numpy_reads_it(kind, shape, by_columns, version):
    array = np.ones(shape, kind)
    content = written(np.asfortranarray(array) if by_columns else array, version)
    expected, found = np.load(io.BytesIO(content)), npy_array(content)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.strides == expected.strides or not found.size
    assert np.array_equal(found, expected)
    assert found.flags.writeable


@pytest.mark.parametrize(
    "head",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 3L), }\n",  # Python 2
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (5L,)}",
        b'{"shape":(2,3),"fortran_order":False,"descr":"<f8"}',
        b"  {'shape': (2, 3,), 'descr': 'float64', 'fortran_order': True}   \n",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': ()}",
    ],
)
def test_heads_of_other_writers_are_read_as_numpy_reads_them(head):
    stream = io.BytesIO(with_head(head))
    npy_format.read_magic(stream)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = npy_format.read_array_header_1_0(stream)
    assert tuple(read_npy_head(io.BytesIO(with_head(head)))) == expected


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (with_head(b"{}", (4, 0)), "a known version"),
        (with_head(b"{" + b" " * 10_000), "10001 bytes, above 10000"),
        (with_head(b"{'descr': '<f8', 'shape': (1,)}"), "the keys"),
        (with_head(b"{'descr': 3, 'fortran_order': False, 'shape': (1,)}"), "unreadable value"),
        (with_head(b"{'descr': '<f8', 'fortran_order': 'x', 'shape': (1,)}"), "wrong type"),
        (with_head(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"), "unreadable"),
        (with_head(b"{'descr': '<f99', 'fortran_order': False, 'shape': (1,)}"), "not understood"),
        (with_head(b"{'descr': '<08', 'fortran_order': False, 'shape': (1,)}"), "the type '<08'"),
        (with_head(b"{'descr': '((1)f8', 'fortran_order': False, 'shape': (1,)}"), "the type"),
        (written(np.ones(2, [("a", "<f8")]), None), "records with fields"),
        (written(np.ones(2), None)[:30], "before the end of its header"),
        (written(np.ones(2), None)[:-1], "buffer is smaller"),
        (written(np.array([None]), None), "objects"),
    ],
)
def test_a_damaged_file_is_refused(content, told):
    with pytest.raises(ValueError, match=told):
        npy_array(content)
