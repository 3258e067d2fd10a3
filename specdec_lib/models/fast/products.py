"""What a step of the inner loops adds to their sums: products of each row's numbers and of the
sixteen columns of a panel, as LLVM code.

Weights lie in panels of sixteen columns: as float32, [columns ÷ 16, depth, 16]; or as bytes,
[columns ÷ 16, depth ÷ 32, 576]: 32 × 16 numbers from 0 to 255 in groups of four, then for each
column the step and the lowest value as float16. Bytes are multiplied with rows of eight bits, see
`quantise`; sums of 32 products are whole numbers, and so exact.
"""

from functools import reduce
from typing import Any

import numba.core.config
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils

COLUMNS = 16  # of a panel
BLOCK = 32  # weights of a column with one step
RECORD = BLOCK * COLUMNS + 4 * COLUMNS  # bytes of a block of sixteen columns
ROW_RECORD = BLOCK // 4 + 2  # 32-bit words of a row's block: its numbers, scale and scaled sum
config: Any = numba.core.config  # it reads the environment
FEATURES = {} if config.CPU_NAME else binding.get_host_cpu_features()
DOT_PRODUCTS = FEATURES.get("avx512vnni", False)
AVX2 = FEATURES.get("avx2", False)
SMALL = 16  # of bytes below it, sums of 32 products need 16 bits and no more

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
WIDE = ir.VectorType(BYTE, 32)
PAIRS = ir.VectorType(INT, 8)
QUARTER = ir.VectorType(INT, 4)


def pointer(builder, base, offset, kind):
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


def _add_float32(builder, totals, places, rows, small):
    """Each row's number times the columns of one depth."""
    weights = [builder.load(pointer(builder, place, 0, FLOATS), align=4) for place in places]
    for row, sums in zip(rows, totals, strict=True):
        value = _splat(builder, builder.load(pointer(builder, row, 0, FLOAT)), FLOATS)
        for weight, total in zip(weights, sums, strict=True):
            builder.store(_fma(builder, value, weight, builder.load(total)), total)


def _add_blocks(builder, totals, places, rows, small):
    """`_add_block` by the quickest sums of products."""
    if DOT_PRODUCTS or not AVX2:
        sums_of = _whole_sums if DOT_PRODUCTS else _whole_sums_of_pairs
        return _add_block(builder, totals, places, rows, sums_of)
    with builder.if_else(small) as (then, otherwise):
        with then:
            _add_block(builder, totals, places, rows, _whole_sums_of_small)
        with otherwise:
            _add_block(builder, totals, places, rows, _whole_sums_of_pairs)


def _add_block(builder, totals, places, rows, sums_of):
    """Each row's 32 numbers times those of the columns and steps, plus its sum times the lowest."""
    found = sums_of(builder, places, rows)
    ends = [
        [
            builder.fpext(builder.load(pointer(builder, place, offset, HALVES), align=1), FLOATS)
            for offset in (BLOCK * COLUMNS, BLOCK * COLUMNS + 2 * COLUMNS)
        ]
        for place in places
    ]
    for row, sums, its in zip(rows, found, totals, strict=True):
        scale, scaled_sum = (
            _splat(builder, builder.load(pointer(builder, row, BLOCK + offset, FLOAT)), FLOATS)
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
            builder.load(pointer(builder, place, COLUMNS * one, BYTES), align=1) for place in places
        ]
        for row, sums in zip(rows, found, strict=True):
            four = _splat(builder, builder.load(pointer(builder, row, one, INT)), INTS)
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
                    builder.zext(builder.load(pointer(builder, place, at, FEW), align=1), SHORTS)
                    for at in (offset, offset + 16)
                ]
                for row, its in zip(rows, sums, strict=True):
                    four = _splat(builder, builder.load(pointer(builder, row, one, INT)), QUARTER)
                    four = builder.sext(builder.bitcast(four, FEW), SHORTS)
                    for at, weight in enumerate(weights):
                        its[at] = builder.add(its[at], _pair_products(builder, weight, four))
            for its, own in zip(sums, found, strict=True):
                own[number].append(_pair_sums(builder, its))
    every = ir.Constant(INTS, [*range(COLUMNS)])
    return [[builder.shuffle_vector(*halves, every) for halves in own] for own in found]


def _whole_sums_of_small(builder, places, rows):
    """The same where no number of the columns exceeds 15: sums of two neighbouring products of
    bytes, of which eight fit 16 bits.
    """
    zeros = ir.Constant(SHORTS, [0] * 16)
    found = [[[zeros, zeros] for _ in places] for _ in rows]
    for one in range(0, BLOCK, 4):
        offsets = [COLUMNS * one + half for half in (0, 32)]
        groups = [
            [builder.load(pointer(builder, place, at, WIDE), align=1) for at in offsets]
            for place in places
        ]
        for row, own in zip(rows, found, strict=True):
            four = _splat(builder, builder.load(pointer(builder, row, one, INT)), PAIRS)
            four = builder.bitcast(four, WIDE)
            for sums, halves in zip(own, groups, strict=True):
                for half, group in enumerate(halves):
                    products = call(builder, "llvm.x86.avx2.pmadd.ub.sw", SHORTS, group, four)
                    sums[half] = builder.add(sums[half], products)
    ones = ir.Constant(SHORTS, [1] * 16)
    every = ir.Constant(INTS, [*range(COLUMNS)])
    return [
        [
            builder.shuffle_vector(*(_pair_products(builder, one, ones) for one in sums), every)
            for sums in own
        ]
        for own in found
    ]


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


def all_small(builder, block):
    """Whether all bytes of this block are below `SMALL`."""
    lines = [
        builder.load(pointer(builder, block, line, WIDE), align=1)
        for line in range(0, BLOCK * COLUMNS, 32)
    ]
    found = call(builder, "llvm.vector.reduce.or.v32i8", BYTE, reduce(builder.or_, lines))
    return builder.icmp_unsigned("<", found, ir.Constant(BYTE, SMALL))


FORMATS = {types.float32: (_add_float32, 4 * COLUMNS, 4), types.uint8: (_add_blocks, RECORD, 40)}
"""By the numbers of a panel: what adds a step's products, bytes of a step in panel and row."""
