"""The inner loop of the fast CPU runtime: sums of products in registers, for one to four rows and
sixteen columns, in the order of the depth whatever the number of rows.

Weights lie in panels of sixteen columns, [columns ÷ 16, depth, …], as float32, bfloat16 in pairs,
or eight bits with a scale per column, and are converted to float32 as they are loaded.
Source: Van Zee and van de Geijn 2015 (BLIS), for a tile of sums in registers.
"""

import hashlib
import os
from pathlib import Path
from typing import no_type_check

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

COLUMNS = 16  # of a panel: two vectors of eight
ROWS = 4  # of a tile: eight sums hide the latency of one; with twelve, two threads are slower

HERE = Path(__file__).parent
COMPILED = (
    *("tiles.py", "arithmetic.py", "attention.py"),
    *("kernels.py", "choices.py", "compiled_trees.py"),
)
DIGEST = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in COMPILED)).hexdigest()[:16]
if not config.CACHE_DIR and os.access(HERE, os.W_OK):
    # Numba's cache checks the date of one file; what is compiled here depends on all of these
    config.CACHE_DIR = str(HERE / "__pycache__" / f"compiled-{DIGEST}")

FLOAT, INT, BYTE = ir.FloatType(), ir.IntType(32), ir.IntType(8)
EIGHT, EIGHT_INTS = ir.VectorType(FLOAT, 8), ir.VectorType(INT, 8)
SIXTEEN_BYTES = ir.VectorType(BYTE, COLUMNS)


def _number(value, like=INT):
    """A constant."""
    return ir.Constant(like, value)


def _splat(builder, value):
    """A vector of eight times the same number."""
    one = builder.insert_element(ir.Constant(EIGHT, ir.Undefined), value, _number(0))
    return builder.shuffle_vector(
        one, ir.Constant(EIGHT, ir.Undefined), ir.Constant(EIGHT_INTS, [0] * 8)
    )


def _load_float32(builder, at):
    """Sixteen columns of float32."""
    first = builder.bitcast(at, EIGHT.as_pointer())
    return [builder.load(builder.gep(first, [_number(half)]), align=4) for half in (0, 1)]


def _load_bfloat16(builder, at):
    """Sixteen columns of bfloat16: column j in the lower half of word j, j + 8 in the upper."""
    words = builder.load(builder.bitcast(at, EIGHT_INTS.as_pointer()), align=4)
    low = builder.shl(words, ir.Constant(EIGHT_INTS, [16] * 8))
    high = builder.and_(words, ir.Constant(EIGHT_INTS, [0xFFFF0000] * 8))
    return [builder.bitcast(low, EIGHT), builder.bitcast(high, EIGHT)]


def _load_int8(builder, at):
    """Sixteen columns of eight bits."""
    whole = builder.load(builder.bitcast(at, SIXTEEN_BYTES.as_pointer()), align=1)
    nothing = ir.Constant(SIXTEEN_BYTES, ir.Undefined)
    halves = [ir.Constant(EIGHT_INTS, list(range(first, first + 8))) for first in (0, 8)]
    return [
        builder.sitofp(
            builder.sext(builder.shuffle_vector(whole, nothing, half), EIGHT_INTS), EIGHT
        )
        for half in halves
    ]


LOADERS = {
    types.float32: (_load_float32, 64),
    types.uint32: (_load_bfloat16, 32),
    types.int8: (_load_int8, 16),
}
"""How sixteen columns are loaded, and their bytes, by the type of a panel's numbers."""


def _add_products(builder, totals, panel, depth, starts, loader, size):
    """Emit the loop over the depth: each row's numbers times the panel's columns, added up."""
    fma_kind = ir.FunctionType(EIGHT, [EIGHT] * 3)
    fma = cgutils.get_or_insert_function(builder.module, fma_kind, "llvm.fma.v8f32")
    fetch_kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT, INT, INT])
    fetch = cgutils.get_or_insert_function(builder.module, fetch_kind, "llvm.prefetch.p0")
    with cgutils.for_range(builder, depth) as loop:
        place = builder.gep(panel, [builder.mul(loop.index, _number(size, depth.type))])
        ahead = builder.gep(place, [builder.mul(depth, _number(size, depth.type))])
        # weights are used once per pass: the hint leaves the caches to other data
        builder.call(fetch, [ahead, _number(0), _number(0), _number(1)])
        weights = loader(builder, place)
        for start, row in zip(starts, totals, strict=True):
            value = _splat(builder, builder.load(builder.gep(start, [loop.index])))
            for weight, total in zip(weights, row, strict=True):
                builder.store(builder.call(fma, [value, weight, builder.load(total)]), total)


@no_type_check
def _tile(rows):
    """A compiled function that writes the products of so many rows and a panel."""

    @intrinsic
    def tile(typing, panel, depth, x, x_step, sums, sums_step):
        loader, size = LOADERS[panel.dtype]

        def emit(context, builder, signature, args):
            arrays = [
                context.make_array(signature.args[one])(context, builder, args[one]).data
                for one in (0, 2, 4)
            ]
            at, source, out = builder.bitcast(arrays[0], BYTE.as_pointer()), *arrays[1:]
            depth, step, out_step = (args[one] for one in (1, 3, 5))
            zeros = ir.Constant(EIGHT, [0.0] * 8)
            totals = [
                [cgutils.alloca_once_value(builder, zeros) for _ in range(2)] for _ in range(rows)
            ]
            starts = [
                builder.gep(source, [builder.mul(step, _number(row, step.type))])
                for row in range(rows)
            ]
            _add_products(builder, totals, at, depth, starts, loader, size)
            for number, row in enumerate(totals):
                first = builder.gep(out, [builder.mul(out_step, _number(number, out_step.type))])
                halves = builder.bitcast(first, EIGHT.as_pointer())
                for half, total in enumerate(row):
                    place = builder.gep(halves, [_number(half)])
                    builder.store(builder.load(total), place, align=4)
            return context.get_dummy_value()

        return types.void(panel, types.intp, x, types.intp, sums, types.intp), emit

    return tile


tile1, tile2, tile3, tile4 = (_tile(rows) for rows in range(1, ROWS + 1))
