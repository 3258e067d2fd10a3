"""The inner loops of the fast CPU runtime: sums of products in registers, for a few rows and
sixteen columns, in the order of the depth whatever the number of rows.

Weights lie in panels of sixteen columns: as float32, [columns ÷ 16, depth, 16]; or as bytes,
[columns ÷ 16, depth ÷ 32, 576]: 32 × 16 numbers from 0 to 255 in groups of four, then for each
column the step and the lowest value as float16.  Bytes are multiplied with rows of eight bits, see
`quantise`; sums of 32 products are whole numbers, and so exact.
Source: Van Zee and van de Geijn 2015 (BLIS), for a tile of sums in registers.
"""

import hashlib
import os
from pathlib import Path
from typing import no_type_check

from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

COLUMNS = 16  # of a panel
BLOCK = 32  # weights of a column with one step
RECORD = BLOCK * COLUMNS + 4 * COLUMNS  # bytes of a block of sixteen columns
ROW_RECORD = BLOCK // 4 + 2  # 32-bit words of a row's block: its numbers, scale and scaled sum
FEATURES = {} if config.CPU_NAME else binding.get_host_cpu_features()
WIDE, DOT_PRODUCTS = FEATURES.get("avx512f", False), FEATURES.get("avx512vnni", False)
ROWS = 8 if WIDE else 4  # of a tile: eight vectors of sums hide the latency of one

HERE = Path(__file__).parent
COMPILED = (
    *("tiles.py", "arithmetic.py", "attention.py"),
    *("kernels.py", "choices.py", "compiled_trees.py"),
)
DIGEST = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in COMPILED)).hexdigest()[:16]
if not config.CACHE_DIR and os.access(HERE, os.W_OK):
    # Numba's cache checks the date of one file; what is compiled here depends on all of these
    config.CACHE_DIR = str(HERE / "__pycache__" / f"compiled-{DIGEST}")

FLOAT, HALF, INT, BYTE = ir.FloatType(), ir.HalfType(), ir.IntType(32), ir.IntType(8)
FLOATS, INTS = ir.VectorType(FLOAT, COLUMNS), ir.VectorType(INT, COLUMNS)
HALVES, BYTES = ir.VectorType(HALF, COLUMNS), ir.VectorType(BYTE, 4 * COLUMNS)
LONG_INTS = ir.VectorType(INT, 4 * COLUMNS)


def _at(builder, base, offset, kind):
    """A pointer to a value of this kind, so many bytes behind the base."""
    place = builder.gep(base, [ir.Constant(ir.IntType(64), offset)])
    return builder.bitcast(place, kind.as_pointer())


def _splat(builder, value, kind):
    """A vector of sixteen times the same number."""
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(INT, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(INTS, [0] * COLUMNS))


def _fma(builder, x, y, total):
    kind = ir.FunctionType(FLOATS, [FLOATS] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v16f32")
    return builder.call(function, [x, y, total])


def _fetch(builder, place):
    """Ask for a place ahead of time; weights are used once per pass: the hint leaves the caches to
    other data.
    """
    kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT, INT, INT])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [place, *(ir.Constant(INT, one) for one in (0, 0, 1))])


def _add_float32(builder, totals, place, rows):
    """Each row's number times the columns of one depth."""
    weights = builder.load(builder.bitcast(place, FLOATS.as_pointer()), align=4)
    for row, total in zip(rows, totals, strict=True):
        value = _splat(builder, builder.load(builder.bitcast(row, FLOAT.as_pointer())), FLOATS)
        builder.store(_fma(builder, value, weights, builder.load(total)), total)


def _add_block(builder, totals, place, rows):
    """Each row's 32 numbers times those of the columns, times both steps, plus the row's sum times
    the lowest values.
    """
    groups = [
        builder.load(_at(builder, place, 4 * COLUMNS * one, BYTES), align=1)
        for one in range(BLOCK // 4)
    ]
    step, low = (
        builder.fpext(builder.load(_at(builder, place, offset, HALVES), align=1), FLOATS)
        for offset in (BLOCK * COLUMNS, BLOCK * COLUMNS + 2 * COLUMNS)
    )
    for row, total in zip(rows, totals, strict=True):
        found = ir.Constant(INTS, [0] * COLUMNS)
        for one, group in enumerate(groups):
            four = _splat(builder, builder.load(_at(builder, row, 4 * one, INT)), INTS)
            found = _dot(builder, found, group, builder.bitcast(four, BYTES))
        scale, scaled_sum = (
            _splat(builder, builder.load(_at(builder, row, BLOCK + offset, FLOAT)), FLOATS)
            for offset in (0, 4)
        )
        scaled = builder.fmul(builder.sitofp(found, FLOATS), scale)
        added = _fma(builder, scaled, step, builder.load(total))
        builder.store(_fma(builder, scaled_sum, low, added), total)


def _dot(builder, total, weights, numbers):
    """Add four products of unsigned weights and signed numbers to each of sixteen sums."""
    if DOT_PRODUCTS:
        kind = ir.FunctionType(INTS, [INTS, BYTES, BYTES])
        name = "llvm.x86.avx512.vpdpbusd.512"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, [total, weights, numbers])
    products = builder.mul(builder.zext(weights, LONG_INTS), builder.sext(numbers, LONG_INTS))
    nothing = ir.Constant(LONG_INTS, ir.Undefined)
    for one in range(4):
        every = ir.Constant(INTS, [*range(one, 4 * COLUMNS, 4)])
        total = builder.add(total, builder.shuffle_vector(products, nothing, every))
    return total


FORMATS = {types.float32: (_add_float32, 4 * COLUMNS, 4), types.uint8: (_add_block, RECORD, 40)}
"""By the type of a panel's numbers: what adds the products of one step, and the bytes that a panel
and a row advance by.
"""


@no_type_check
def _tile(rows):
    """A compiled function that writes the products of so many rows and a panel."""

    @intrinsic
    def tile(typing, panel, depth, x, x_step, sums, sums_step):
        add, size, row_size = FORMATS[panel.dtype]

        def emit(context, builder, signature, args):
            arrays = [
                context.make_array(signature.args[one])(context, builder, args[one]).data
                for one in (0, 2, 4)
            ]
            panel, source = (builder.bitcast(one, BYTE.as_pointer()) for one in arrays[:2])
            depth, step, out_step = (args[one] for one in (1, 3, 5))
            zeros = ir.Constant(FLOATS, [0.0] * COLUMNS)
            totals = [cgutils.alloca_once_value(builder, zeros) for _ in range(rows)]
            of = depth.type
            starts = [
                builder.gep(source, [builder.mul(step, ir.Constant(of, 4 * row))])
                for row in range(rows)
            ]
            with cgutils.for_range(builder, depth) as loop:
                place = builder.gep(panel, [builder.mul(loop.index, ir.Constant(of, size))])
                next_panel = builder.mul(depth, ir.Constant(of, size))
                for line in range(0, size, 64):
                    ahead = builder.add(next_panel, ir.Constant(of, line))
                    _fetch(builder, builder.gep(place, [ahead]))
                along = builder.mul(loop.index, ir.Constant(of, row_size))
                add(builder, totals, place, [builder.gep(start, [along]) for start in starts])
            for row, total in enumerate(totals):
                first = builder.gep(arrays[2], [builder.mul(out_step, ir.Constant(of, row))])
                place = builder.bitcast(first, FLOATS.as_pointer())
                builder.store(builder.load(total), place, align=4)
            return context.get_dummy_value()

        return types.void(panel, types.intp, x, types.intp, sums, types.intp), emit

    return tile


TILES = tuple(_tile(rows) for rows in range(1, 9))
tile1, tile2, tile3, tile4, tile5, tile6, tile7, tile8 = TILES
