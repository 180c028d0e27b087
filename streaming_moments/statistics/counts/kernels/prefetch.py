"""Prefetching in kernels: requesting memory some steps before it is read."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_LINE = 64  # number of bytes in a line of the cache


def prefetching(lines: int) -> Any:
    """Make an intrinsic `(array, place)` that prefetches `lines` cache lines of an array.

    The lines start at `array.flat[place]`. Prefetching saves time if data are larger than the cache
    and are read in runs at unpredictable positions. It never changes a result. Every address is
    allowed: unavailable lines are not fetched.
    """

    def asked_for(typing: Any, array: Any, place: Any) -> Any:
        return types.void(array, place), generate

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        data, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        begin = builder.bitcast(cgutils.gep_inbounds(builder, array.data, values[1]), data)
        ask = builder.module.declare_intrinsic(
            "llvm.prefetch", [data], ir.FunctionType(ir.VoidType(), [data, number, number, number])
        )
        # arguments of the intrinsic: for reading, into all levels of the cache, data and not code
        how = [ir.Constant(number, value) for value in (0, 3, 1)]
        for line in range(lines):
            builder.call(ask, [builder.gep(begin, [ir.Constant(number, _LINE * line)]), *how])
        return context.get_dummy_value()

    return intrinsic(asked_for)
