"""The inner loops of the fast CPU runtime: sums of products in registers, for a few rows and
sixteen columns, in the order of the depth whatever the number of rows.

Weights lie in panels of sixteen columns: as float32, [columns ÷ 16, depth, 16]; or as bytes,
[columns ÷ 16, depth ÷ 32, 576]: 32 × 16 numbers from 0 to 255 in groups of four, then for each
column the step and the lowest value as float16. Bytes are multiplied with rows of eight bits, see
`quantise`; sums of 32 products are whole numbers, and so exact. Source: Van Zee and van de Geijn
2015 (BLIS), for a tile of sums in registers.
"""

import hashlib
import inspect
import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, no_type_check

import numba.core.config
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from specdec_lib.models.fast.code_cache import CheckedCache

COLUMNS = 16  # of a panel
BLOCK = 32  # weights of a column with one step
RECORD = BLOCK * COLUMNS + 4 * COLUMNS  # bytes of a block of sixteen columns
ROW_RECORD = BLOCK // 4 + 2  # 32-bit words of a row's block: its numbers, scale and scaled sum
config: Any = numba.core.config  # it reads the environment
THREADS: int = config.NUMBA_NUM_THREADS
FEATURES = {} if config.CPU_NAME else binding.get_host_cpu_features()
DOT_PRODUCTS = FEATURES.get("avx512vnni", False)
AVX2 = FEATURES.get("avx2", False)
# of a tile: weights come once for all its rows; of two float32 panels at a time for few rows
ROWS, TOGETHER, FEW_ROWS = (16, 2, 2) if DOT_PRODUCTS else (4, 1, 0)

HERE = Path(__file__).parent
COMPILED = (*sorted(HERE.glob("*.py")), HERE.parent / "katz" / "trie.py")
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in COMPILED)).hexdigest()[:16]
if not config.CACHE_DIR and os.access(HERE, os.W_OK):
    # Numba's cache checks the date of one file; what is compiled here depends on all of these
    config.CACHE_DIR = str(HERE / "__pycache__" / f"compiled-{DIGEST}")


def compiled(fastmath: set[str] | bool = False, parallel: dict | bool = False) -> Callable:
    """A decorator that compiles a function with Numba, and stores the result."""
    options: dict[str, Any] = {"fastmath": fastmath, "parallel": parallel}
    compile_it = njit(error_model="numpy", **options)

    def compile_and_store(function: Callable) -> Callable:
        # without the checks that tests wrap every function in
        dispatcher: Any = compile_it(inspect.unwrap(function))
        dispatcher._cache = CheckedCache(dispatcher.py_func)  # what `cache=True` sets, but checked
        return dispatcher

    return compile_and_store


def emitted(function: Callable) -> Any:
    """A decorator for a function that writes LLVM code; compiled functions call it without its
    first argument.
    """
    return no_type_check(intrinsic(function))


FLOAT = ir.FloatType()
HALF = ir.HalfType()
INT = ir.IntType(32)
BYTE = ir.IntType(8)
FLOATS = ir.VectorType(FLOAT, COLUMNS)
INTS = ir.VectorType(INT, COLUMNS)
HALVES = ir.VectorType(HALF, COLUMNS)
BYTES = ir.VectorType(BYTE, 4 * COLUMNS)
SHORTS = ir.VectorType(ir.IntType(16), 16)
FEW = ir.VectorType(BYTE, 16)
PAIRS = ir.VectorType(INT, 8)
QUARTER = ir.VectorType(INT, 4)
FETCH = [ir.Constant(INT, one) for one in (0, 0, 1)]  # to read, and to leave the caches to others


def _at(builder, base, offset, kind):
    """A pointer to a value of this kind, so many bytes behind the base."""
    place = builder.gep(base, [ir.Constant(ir.IntType(64), offset)])
    return builder.bitcast(place, kind.as_pointer())


def _splat(builder, value, kind):
    """A vector of the same number throughout."""
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(INT, 0))
    everywhere = ir.Constant(ir.VectorType(INT, kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, nothing, everywhere)


def call(builder, name, kind, *args, flags=()):
    """The result, of this kind, of a function of LLVM."""
    function = ir.FunctionType(kind, [one.type for one in args])
    found = cgutils.get_or_insert_function(builder.module, function, name)
    return builder.call(found, args, fastmath=flags)


def _fma(builder, x, y, total):
    return call(builder, "llvm.fma.v16f32", FLOATS, x, y, total)


def _add_float32(builder, totals, places, rows):
    """Each row's number times the columns of one depth."""
    weights = [builder.load(_at(builder, place, 0, FLOATS), align=4) for place in places]
    for row, sums in zip(rows, totals, strict=True):
        value = _splat(builder, builder.load(_at(builder, row, 0, FLOAT)), FLOATS)
        for weight, total in zip(weights, sums, strict=True):
            builder.store(_fma(builder, value, weight, builder.load(total)), total)


def _add_block(builder, totals, places, rows):
    """Each row's 32 numbers times those of the columns and steps, plus its sum times the lowest."""
    found = (_whole_sums if DOT_PRODUCTS else _whole_sums_of_pairs)(builder, places, rows)
    ends = [
        [
            builder.fpext(builder.load(_at(builder, place, offset, HALVES), align=1), FLOATS)
            for offset in (BLOCK * COLUMNS, BLOCK * COLUMNS + 2 * COLUMNS)
        ]
        for place in places
    ]
    for row, sums, its in zip(rows, found, totals, strict=True):
        scale, scaled_sum = (
            _splat(builder, builder.load(_at(builder, row, BLOCK + offset, FLOAT)), FLOATS)
            for offset in (0, 4)
        )
        for (step, low), whole, total in zip(ends, sums, its, strict=True):
            scaled = builder.fmul(builder.sitofp(whole, FLOATS), scale)
            added = _fma(builder, scaled, step, builder.load(total))
            builder.store(_fma(builder, scaled_sum, low, added), total)


def _whole_sums(builder, places, rows):
    """The sums of 32 products, by AVX-512 VNNI: four products in one instruction."""
    found = [[ir.Constant(INTS, [0] * COLUMNS) for _ in places] for _ in rows]
    name = "llvm.x86.avx512.vpdpbusd.512"
    for one in range(0, BLOCK, 4):
        groups = [
            builder.load(_at(builder, place, COLUMNS * one, BYTES), align=1) for place in places
        ]
        for row, sums in zip(rows, found, strict=True):
            four = _splat(builder, builder.load(_at(builder, row, one, INT)), INTS)
            four = builder.bitcast(four, BYTES)
            sums[:] = [
                call(builder, name, INTS, total, group, four)
                for total, group in zip(sums, groups, strict=True)
            ]
    return found


def _whole_sums_of_pairs(builder, places, rows):
    """The same by 16-bit products of eight columns, as AVX2 multiplies in one instruction."""
    zeros = ir.Constant(PAIRS, [0] * 8)
    found = [[[] for _ in places] for _ in rows]
    for number, place in enumerate(places):
        for half in range(0, 2 * COLUMNS, 16):
            sums = [[zeros, zeros] for _ in rows]
            for one in range(0, BLOCK, 4):
                offset = COLUMNS * one + 2 * half
                weights = [
                    builder.zext(builder.load(_at(builder, place, at, FEW), align=1), SHORTS)
                    for at in (offset, offset + 16)
                ]
                for row, its in zip(rows, sums, strict=True):
                    four = _splat(builder, builder.load(_at(builder, row, one, INT)), QUARTER)
                    four = builder.sext(builder.bitcast(four, FEW), SHORTS)
                    for at, weight in enumerate(weights):
                        its[at] = builder.add(its[at], _pair_products(builder, weight, four))
            for its, own in zip(sums, found, strict=True):
                own[number].append(_pair_sums(builder, its))
    every = ir.Constant(INTS, [*range(COLUMNS)])
    return [[builder.shuffle_vector(*halves, every) for halves in own] for own in found]


def _pair_products(builder, x, y):
    """The sums of two neighbouring products, of sixteen numbers of 16 bits each."""
    if AVX2:
        return call(builder, "llvm.x86.avx2.pmadd.wd", PAIRS, x, y)
    products = builder.mul(builder.sext(x, INTS), builder.sext(y, INTS))
    return _pair_sums(builder, [products])


def _pair_sums(builder, vectors):
    """The sums of neighbours, of one vector of sixteen or two of eight whole numbers."""
    vectors = [*vectors, ir.Constant(vectors[0].type, ir.Undefined)][:2]
    evens, odds = (
        builder.shuffle_vector(*vectors, ir.Constant(PAIRS, [*range(first, 16, 2)]))
        for first in (0, 1)
    )
    return builder.add(evens, odds)


FORMATS = {types.float32: (_add_float32, 4 * COLUMNS, 4), types.uint8: (_add_block, RECORD, 40)}
"""By the numbers of a panel: what adds a step's products, bytes of a step in panel and row."""


@emitted
def add_products(typing, panels, panel, together, depth, x, row, rows, sums, column):
    """Write sums of rows of x from `row` over adjoining panels to columns of `sums`."""
    add, *sizes = FORMATS[panels.dtype]

    def emit(context, builder, signature, args):
        arrays = [
            context.make_array(signature.args[at])(context, builder, args[at]) for at in (0, 4, 7)
        ]
        panel, together, depth, row, rows, column = (args[at] for at in (1, 2, 3, 5, 6, 8))
        steps = [cgutils.unpack_tuple(builder, one.strides)[0] for one in arrays]
        offsets = [builder.mul(*pair) for pair in zip(steps, (panel, row, row), strict=True)]
        offsets[2] = builder.add(offsets[2], builder.mul(column, ir.Constant(depth.type, 4)))
        given = [
            builder.gep(builder.bitcast(one.data, BYTE.as_pointer()), [offset])
            for one, offset in zip(arrays, offsets, strict=True)
        ]
        whole = depth.type
        done = builder.append_basic_block("done")
        case = builder.add(builder.mul(together, ir.Constant(whole, 16)), rows)
        switch = builder.switch(case, done)
        few = product(range(2, TOGETHER + 1), range(1, FEW_ROWS + 1))
        for counts in [*((1, rows) for rows in range(1, ROWS + 1)), *few]:
            block = builder.append_basic_block("tile")
            switch.add_case(ir.Constant(whole, 16 * counts[0] + counts[1]), block)
            builder.position_at_end(block)
            totals = _tile(builder, add, sizes, counts, given[:2], steps[:2], depth)
            for number, its in enumerate(totals):
                at = builder.mul(steps[2], ir.Constant(whole, number))
                first = builder.gep(given[2], [at])
                for one, total in enumerate(its):
                    place = _at(builder, first, 4 * COLUMNS * one, FLOATS)
                    builder.store(builder.load(total), place, align=4)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    number = types.intp
    return types.void(panels, *[number] * 3, x, number, number, sums, number), emit


def _tile(builder, add, sizes, counts, given, steps, depth):
    """Emit the loop over the depth; the places of the sums, by row and panel."""
    zeros = ir.Constant(FLOATS, [0.0] * COLUMNS)
    whole = depth.type

    def places(base, step, count):
        return [
            builder.gep(base, [builder.mul(step, ir.Constant(whole, one))]) for one in range(count)
        ]

    panels, rows = (places(*each) for each in zip(given, steps, counts, strict=True))
    totals = [[cgutils.alloca_once_value(builder, zeros) for _ in panels] for _ in rows]
    for its in totals:
        for total in its:
            builder.store(zeros, total)
    with cgutils.for_range(builder, depth) as loop:
        offset, along = (builder.mul(loop.index, ir.Constant(whole, one)) for one in sizes)
        here = [builder.gep(panel, [offset]) for panel in panels]
        next_panels = builder.mul(steps[0], ir.Constant(whole, len(panels)))
        for place in here:
            for line in range(0, sizes[0], 64):
                ahead = builder.gep(place, [builder.add(next_panels, ir.Constant(whole, line))])
                call(builder, "llvm.prefetch.p0", ir.VoidType(), ahead, *FETCH)
        add(builder, totals, here, [builder.gep(row, [along]) for row in rows])
    return totals
