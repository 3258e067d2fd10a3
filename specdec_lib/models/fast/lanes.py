"""What Numba alone compiles to slow code: views of a row, and the largest of many numbers."""

import math
from typing import no_type_check

from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from specdec_lib.models.fast.tiles import BYTE, COLUMNS, FLOAT, FLOATS, call


@no_type_check
@intrinsic
def strip(typing, x, row, first, count):
    """So many numbers of one row of a matrix, from the place `first`, as a view; the matrix must
    outlive it. A slice would count two references, each by a locked instruction.
    """
    if not isinstance(x, types.Array) or x.ndim != 2 or x.layout != "C":
        raise errors.TypingError(f"a strip is cut from a contiguous matrix, got {x}")
    kind, number = types.Array(x.dtype, 1, "C"), types.intp

    def emit(context, builder, signature, args):
        whole = context.make_array(signature.args[0])(context, builder, args[0])
        step, size = cgutils.unpack_tuple(builder, whole.strides)
        offset = builder.add(builder.mul(args[1], step), builder.mul(args[2], size))
        first = builder.gep(builder.bitcast(whole.data, BYTE.as_pointer()), [offset])
        data = builder.bitcast(first, whole.data.type)
        view = context.make_array(kind)(context, builder)
        layout = {"shape": [args[3]], "strides": [size], "itemsize": whole.itemsize}
        populate_array(view, data=data, **layout, meminfo=None)
        return view._getvalue()

    return kind(x, number, number, number), emit


@no_type_check
@intrinsic
def largest_lanes(typing, numbers, vectors, sizes):
    """The largest of the first numbers, so many vectors of sixteen, or of their absolute values;
    −∞ of no vector.
    """

    def emit(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        lanes = builder.bitcast(data, FLOATS.as_pointer())
        largest = cgutils.alloca_once_value(builder, ir.Constant(FLOATS, [-math.inf] * COLUMNS))
        with cgutils.for_range(builder, args[1]) as loop:
            found = builder.load(builder.gep(lanes, [loop.index]), align=4)
            absolute = call(builder, "llvm.fabs.v16f32", FLOATS, found)
            found, before = builder.select(args[2], absolute, found), builder.load(largest)
            more = builder.fcmp_ordered(">", found, before)
            builder.store(builder.select(more, found, before), largest)
        name, whole = "llvm.vector.reduce.fmax.v16f32", builder.load(largest)
        return call(builder, name, FLOAT, whole, flags=("nnan",))

    return types.float32(numbers, types.intp, types.boolean), emit
