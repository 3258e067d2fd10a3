"""The inner loops of the fast CPU runtime: sums of products in registers, for a few rows and
sixteen columns, in the order of the depth whatever the number of rows. Source: Van Zee and van de
Geijn 2015 (BLIS), for a tile of sums in registers.

Where a tile has few rows (without AVX-512), the depth goes by in stretches that the first cache
holds: all tiles take one before the next, which is fetched meanwhile, each tile its share. So
weights are read from memory while they are multiplied.
"""

import hashlib
import inspect
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, no_type_check

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from specdec_lib.models.fast.code_cache import CheckedCache
from specdec_lib.models.fast.products import (
    BYTE,
    COLUMNS,
    DOT_PRODUCTS,
    FLOATS,
    FORMATS,
    INT,
    RECORD,
    all_small,
    call,
    config,
    pointer,
)

THREADS: int = config.NUMBA_NUM_THREADS
# of a tile: weights come once for all its rows; of two float32 panels at a time for few rows
ROWS, TOGETHER, FEW_ROWS = (16, 2, 2) if DOT_PRODUCTS else (6, 1, 0)
# bytes of a panel that all tiles take in turn; 0 where one tile has all rows: the whole depth
STRETCH = 0 if DOT_PRODUCTS else 6144
# bytes from what is multiplied to what is fetched, where there are no stretches
AHEAD = 8192
# a prefetch's arguments: to read; into all caches; data. Into the first cache alone, a panel ahead,
# a pass takes 3 times as long on an Intel Xeon with AVX-512; of four rows a fifth more on AMD's
FETCH = [ir.Constant(INT, one) for one in (0, 3, 1)]

HERE = Path(__file__).parent
COMPILED = (*sorted(HERE.glob("*.py")), HERE.parent / "katz" / "trie.py")
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in COMPILED)).hexdigest()[:16]


def compiled(fastmath: set[str] | bool = False, parallel: dict | bool = False) -> Callable:
    """A decorator that compiles a function with Numba, and stores the result."""
    options: dict[str, Any] = {"fastmath": fastmath, "parallel": parallel}
    compile_it = njit(error_model="numpy", **options)

    def compile_and_store(function: Callable) -> Callable:
        # without the checks that tests wrap every function in
        dispatcher: Any = compile_it(inspect.unwrap(function))
        dispatcher._cache = CheckedCache(dispatcher.py_func, DIGEST)  # what `cache=True` sets
        return dispatcher

    return compile_and_store


def emitted(function: Callable) -> Any:
    """A decorator for a function that writes LLVM code; compiled functions call it without its
    first argument.
    """
    return no_type_check(intrinsic(function))


@emitted
def add_products(typing, panels, panel, together, x, row, rows, sums, column, stretch):
    """Write sums of rows of x from `row` over adjoining panels to columns of `sums`, or add to them
    what a stretch of the depth brings.

    stretch    its first step and its number of steps (numbers of depth, or blocks of them); which
               share, of how many, of the next is fetched; whether its bytes are below `SMALL`
    """
    add, *sizes = FORMATS[panels.dtype]

    def emit(context, builder, signature, args):
        arrays = [
            context.make_array(signature.args[at])(context, builder, args[at]) for at in (0, 3, 6)
        ]
        panel, together, row, rows, column = (args[at] for at in (1, 2, 4, 5, 7))
        start, *stretch = cgutils.unpack_tuple(builder, args[8])
        whole = start.type
        strides = [cgutils.unpack_tuple(builder, one.strides)[0] for one in arrays]
        offsets = [builder.mul(*pair) for pair in zip(strides, (panel, row, row), strict=True)]
        within = [builder.mul(start, ir.Constant(whole, one)) for one in sizes]
        within.append(builder.mul(column, ir.Constant(whole, 4)))
        given = [
            builder.gep(builder.bitcast(one.data, BYTE.as_pointer()), [builder.add(*pair)])
            for one, *pair in zip(arrays, offsets, within, strict=True)
        ]
        fresh = builder.icmp_signed("==", start, ir.Constant(whole, 0))
        done = builder.append_basic_block("done")
        case = builder.add(builder.mul(together, ir.Constant(whole, 16)), rows)
        switch = builder.switch(case, done)
        few = product(range(2, TOGETHER + 1), range(1, FEW_ROWS + 1))
        for counts in [*((1, rows) for rows in range(1, ROWS + 1)), *few]:
            block = builder.append_basic_block("tile")
            switch.add_case(ir.Constant(whole, 16 * counts[0] + counts[1]), block)
            builder.position_at_end(block)
            _tile(builder, add, sizes, counts, given, strides, fresh, stretch)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    number = types.intp
    five = types.UniTuple(number, 5)
    return types.void(panels, number, number, x, number, number, sums, number, five), emit


@emitted
def block_is_small(typing, panels, panel, step):
    """Whether the bytes of this block of a panel are below `SMALL`."""

    def emit(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        within = builder.mul(args[2], ir.Constant(args[2].type, RECORD))
        offset = builder.add(builder.mul(stride, args[1]), within)
        block = builder.gep(builder.bitcast(array.data, BYTE.as_pointer()), [offset])
        return all_small(builder, block)

    return types.boolean(panels, types.intp, types.intp), emit


def _tile(builder, add, sizes, counts, given, strides, fresh, stretch):
    """Emit the loop over a stretch of the depth, and the writing of its sums."""
    whole = strides[0].type
    panels, rows, outs = (
        [builder.gep(base, [builder.mul(stride, ir.Constant(whole, one))]) for one in range(count)]
        for base, stride, count in zip(given, strides, (*counts, counts[1]), strict=True)
    )
    places = [
        [pointer(builder, out, 4 * COLUMNS * one, FLOATS) for one in range(counts[0])]
        for out in outs
    ]
    zeros = ir.Constant(FLOATS, [0.0] * COLUMNS)
    totals = [[cgutils.alloca_once_value(builder, zeros) for _ in its] for its in places]
    both = [pair for its in zip(totals, places, strict=True) for pair in zip(*its, strict=True)]
    for total, _ in both:
        builder.store(zeros, total)
    with builder.if_then(builder.not_(fresh)):
        for total, place in both:
            builder.store(builder.load(place, align=4), total)
    steps, *share, small = stretch
    small = builder.icmp_signed("!=", small, ir.Constant(whole, 0))
    ahead, stride = _ahead(builder, sizes[0], (steps, *share))
    with cgutils.for_range(builder, steps) as loop:
        offset, along = (builder.mul(loop.index, ir.Constant(whole, one)) for one in sizes)
        here = [builder.gep(panel, [offset]) for panel in panels]
        fetched = builder.add(ahead, builder.mul(loop.index, stride))
        for panel, line in product(panels, range(0, sizes[0], 64)):
            place = builder.gep(panel, [builder.add(fetched, ir.Constant(whole, line))])
            call(builder, "llvm.prefetch.p0", ir.VoidType(), place, *FETCH)
        add(builder, totals, here, [builder.gep(row, [along]) for row in rows], small)
    for total, place in both:
        builder.store(builder.load(total), place, align=4)


def _ahead(builder, size, share):
    """Where in a panel fetching begins, and how far it goes on in a step. In stretches: in the next
    stretch, at this tile's share of it. Else `AHEAD`, as fast as the panel is read.
    """
    steps, part, parts = share
    whole = steps.type
    if not STRETCH:
        return ir.Constant(whole, AHEAD), ir.Constant(whole, size)
    own = builder.sdiv(ir.Constant(whole, size), parts)
    begun = builder.mul(builder.mul(part, steps), own)
    return builder.add(begun, ir.Constant(whole, STRETCH // size * size)), own
