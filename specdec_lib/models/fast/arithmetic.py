"""Arithmetic of the compiled pass; the order of each sum depends on its row alone."""

import math
from typing import Any, no_type_check

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.extending import overload
from numba.np.arrayobj import populate_array

from specdec_lib.models.fast.products import (
    AVX2,
    BLOCK,
    BYTE,
    COLUMNS,
    DOT_PRODUCTS,
    FLOAT,
    FLOATS,
    RECORD,
    ROW_RECORD,
    call,
)
from specdec_lib.models.fast.tiles import (
    FEW_ROWS,
    ROWS,
    STRETCH,
    TOGETHER,
    add_products,
    block_is_small,
    compiled,
    emitted,
)

NONE, GELU_TANH, GELU, SILU = range(4)  # activations
# flags of LLVM: the first keeps sums in their order, the second may reorder sums of a fixed length
LINEAR_IN_ORDER = {"contract"}
LINEAR_IN_LANES = {"contract", "reassoc", "nsz"}


@emitted
def strip(typing, x, row, first, count):
    """So many numbers of one row of a matrix, from the place `first`, as a view; the matrix must
    outlive it. A slice would count two references, each by a locked instruction.
    """
    if not isinstance(x, types.Array) or x.ndim != 2 or x.layout != "C":
        raise errors.TypingError(f"a strip is cut from a contiguous matrix, got {x}")
    kind = types.Array(x.dtype, 1, "C")
    number = types.intp

    def emit(context, builder, signature, args):
        whole = context.make_array(signature.args[0])(context, builder, args[0])
        step, size = cgutils.unpack_tuple(builder, whole.strides)
        offset = builder.add(builder.mul(args[1], step), builder.mul(args[2], size))
        first = builder.gep(builder.bitcast(whole.data, BYTE.as_pointer()), [offset])
        data = builder.bitcast(first, whole.data.type)
        view = context.make_array(kind)(context, builder)
        populate_array(
            view,
            data=data,
            shape=[args[3]],
            strides=[size],
            itemsize=whole.itemsize,
            meminfo=None,
        )
        return view._getvalue()

    return kind(x, number, number, number), emit


@emitted
def largest_lanes(typing, numbers, vectors, sizes):
    """The largest of so many vectors of sixteen numbers, or of their sizes; −∞ of no vector."""

    def emit(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        lanes = builder.bitcast(data, FLOATS.as_pointer())
        largest = cgutils.alloca_once_value(builder, ir.Constant(FLOATS, [-math.inf] * COLUMNS))
        with cgutils.for_range(builder, args[1]) as loop:
            found = builder.load(builder.gep(lanes, [loop.index]), align=4)
            absolute = call(builder, "llvm.fabs.v16f32", FLOATS, found)
            found = builder.select(args[2], absolute, found)
            before = builder.load(largest)
            more = builder.fcmp_ordered(">", found, before)
            builder.store(builder.select(more, found, before), largest)
        whole = builder.load(largest)
        return call(builder, "llvm.vector.reduce.fmax.v16f32", FLOAT, whole, flags=("nnan",))

    return types.float32(numbers, types.intp, types.boolean), emit


@compiled(LINEAR_IN_ORDER)
def exponential(x):
    """e to the x in float32, to two units in the last place, for −87…88 (Cephes, Moshier 1992)."""
    x = min(max(x, np.float32(-87.0)), np.float32(88.0))
    whole = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    rest = x - whole * np.float32(0.693359375) + whole * np.float32(2.12194440e-4)
    series = np.float32(1.9875691500e-4)
    series = series * rest + np.float32(1.3981999507e-3)
    series = series * rest + np.float32(8.3334519073e-3)
    series = series * rest + np.float32(4.1665795894e-2)
    series = series * rest + np.float32(1.6666665459e-1)
    series = series * rest + np.float32(5.0000001201e-1)
    series = series * rest * rest + rest + np.float32(1.0)
    return series * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)


@compiled(LINEAR_IN_ORDER)
def gelu_tanh(x):
    """GPT-2's activation function at one number."""
    inner = np.float32(1.5957691216) * (x + np.float32(0.044715) * x * x * x)
    return x / (np.float32(1.0) + exponential(-inner))


@compiled(LINEAR_IN_ORDER)
def gelu(x):
    """The exact GELU at one number: its error function is that of Abramowitz and Stegun 1964,
    7.1.26, to 1.5e-7.
    """
    size = abs(x) * np.float32(0.70710678)
    part = np.float32(1.0) / (np.float32(1.0) + np.float32(0.3275911) * size)
    series = np.float32(1.061405429)
    series = series * part - np.float32(1.453152027)
    series = series * part + np.float32(1.421413741)
    series = series * part - np.float32(0.284496736)
    series = series * part + np.float32(0.254829592)
    outside = series * part * exponential(-size * size)
    share = outside if x < 0 else np.float32(2.0) - outside
    return np.float32(0.5) * x * share


@compiled()
def largest_of(numbers, sizes):
    """The largest of some numbers, or of their absolute values."""
    vectors = len(numbers) // COLUMNS
    largest = largest_lanes(numbers, vectors, sizes)
    for one in range(vectors * COLUMNS, len(numbers)):
        largest = max(largest, abs(numbers[one]) if sizes else numbers[one])
    return largest


@compiled()
def adjoining(x):
    """How many panels `panel_sums` takes at a time for these prepared rows."""
    return TOGETHER if x.ndim == 2 and len(x) <= FEW_ROWS else 1


@compiled()
def panel_sums(panels, panel, together, depth, x, sums, column):
    """Write prepared x [rows, …] times adjoining panels of this depth to columns of `sums`."""
    parts = (len(x) + ROWS - 1) // ROWS
    most = stretch_steps(panels, depth)
    for start in range(0, depth, most):
        steps = min(most, depth - start)
        small = len(x) > 1 and bytes_are_small(panels, panel, start, steps)
        first = 0
        for part in range(parts):
            rows = (len(x) - first + parts - part - 1) // (parts - part)
            stretch = (start, steps, part, parts, int(small))
            add_products(panels, panel, together, x, first, rows, sums, column, stretch)
            first += rows


@no_type_check
def stretch_steps(panels, depth) -> Any:
    """How much of the depth is taken at a time: numbers of float32 panels, or blocks of bytes."""


@no_type_check
@overload(stretch_steps)
def _stretch_steps(panels, depth):
    steps = STRETCH // (RECORD if panels.dtype == types.uint8 else 4 * COLUMNS)
    return (lambda panels, depth: steps) if STRETCH else (lambda panels, depth: depth)


@no_type_check
def bytes_are_small(panels, panel, start, steps) -> Any:
    """Whether a stretch of a panel is of bytes that are multiplied sooner for being small."""


@no_type_check
@overload(bytes_are_small)
def _bytes_are_small(panels, panel, start, steps):
    if panels.dtype != types.uint8 or DOT_PRODUCTS or not AVX2:
        return lambda panels, panel, start, steps: False

    def small(panels, panel, start, steps):
        for step in range(start, start + steps):
            if not block_is_small(panels, panel, step):
                return False
        return True

    return small


@compiled(LINEAR_IN_LANES)
def quantise(x):
    """Rows of eight bits: per 32 numbers, these as −127 to 127, their scale, scale times sum."""
    count, width = x.shape
    records = np.zeros((count, (width + BLOCK - 1) // BLOCK, ROW_RECORD), np.float32)
    whole = records.view(np.int8).reshape(count, -1)
    for row in range(count):
        for block in range(records.shape[1]):
            first = block * BLOCK
            part = strip(x, row, first, min(BLOCK, width - first))
            out = strip(whole, row, 4 * ROW_RECORD * block, BLOCK)
            largest = largest_of(part, True)
            scale = largest / np.float32(127.0)
            inverse = np.float32(127.0) / largest if largest > 0 else np.float32(0.0)
            total = np.int32(0)
            for one in range(len(part)):
                number = np.int32(np.rint(part[one] * inverse))
                out[one] = number
                total = np.int32(total + number)
            records[row, block, BLOCK // 4] = scale
            records[row, block, BLOCK // 4 + 1] = scale * np.float32(total)
    return records


@no_type_check
def prepared(x, panels):
    """Quantise rows to int8 if the panels are int8, else return them as they are."""


@no_type_check
@overload(prepared)
def _prepared(x, panels):
    if panels.dtype == types.uint8:
        return lambda x, panels: quantise(x)
    return lambda x, panels: x


@compiled(LINEAR_IN_ORDER)
def linear_panels(linear, layer, number, size, x, y, activation, added):
    """Write so many panels of x Wᵀ + bias, activated, to y, or add them; x is prepared."""
    panels, biases = linear
    weights = panels[layer]
    most = adjoining(x)
    last = min(size * (number + 1), len(weights))
    sums = np.empty((len(x), most * COLUMNS), np.float32)
    for panel in range(size * number, last, most):
        together = min(most, last - panel)
        panel_sums(weights, panel, together, x.shape[1], x, sums, 0)
        column = panel * COLUMNS
        columns = together * COLUMNS
        bias = strip(biases, layer, column, columns)
        for row in range(len(x)):
            out = strip(y, row, column, columns)
            found = strip(sums, row, 0, columns)
            if added:
                for one in range(columns):
                    out[one] += found[one] + bias[one]
            elif activation == NONE:
                for one in range(columns):
                    out[one] = found[one] + bias[one]
            elif activation == GELU_TANH:
                for one in range(columns):
                    out[one] = gelu_tanh(found[one] + bias[one])
            else:
                for one in range(columns):
                    out[one] = gelu(found[one] + bias[one])


@compiled(LINEAR_IN_LANES)
def layer_norm(x, weight, bias, epsilon, centred, y):
    """Write the layer norm of each row of x to y; RMS norm where it is not centred."""
    width = len(weight)
    for row in range(len(x)):
        mean = np.float32(0.0)
        if centred:
            for one in range(width):
                mean += x[row, one]
            mean /= np.float32(width)
        spread = np.float32(0.0)
        for one in range(width):
            spread += (x[row, one] - mean) * (x[row, one] - mean)
        scale = np.float32(1.0) / np.sqrt(spread / np.float32(width) + epsilon)
        for one in range(width):
            y[row, one] = (x[row, one] - mean) * scale * weight[one] + bias[one]


@compiled(LINEAR_IN_LANES)
def mean_square(numbers):
    """The mean of some numbers' squares."""
    total = np.float32(0.0)
    for one in range(len(numbers)):
        total += numbers[one] * numbers[one]
    return total / np.float32(len(numbers))


@compiled(LINEAR_IN_LANES)
def exponentiate(scores):
    """Replace scores by e to the score less the largest, and return their sum."""
    largest = largest_of(scores, False)
    for one in range(len(scores)):
        scores[one] = exponential(scores[one] - largest)
    total = np.float32(0.0)
    for one in range(len(scores)):
        total += scores[one]
    return total
