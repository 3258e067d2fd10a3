"""Weights of eight bits: blocks of 32 as whole numbers of a step above a low."""

import numpy as np
from jaxtyping import Float32

from specdec_lib.models.fast.arithmetic import LINEAR_IN_LANES
from specdec_lib.models.fast.tiles import compiled


def block_steps(
    blocks: Float32[np.ndarray, "outs blocks 32"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The whole numbers (uint8), steps and lows (float16) of blocks: those of Q4_1 and Q8_0 in GGUF
    where they give the very weights back, else 255 steps from lowest to highest.
    """
    low = np.empty(blocks.shape[:2], np.float32)
    high = np.empty_like(low)
    block_ends(blocks, low, high)
    size = np.maximum(high, -low)
    *found, _ = _in_steps(blocks, (high - low) / 255, low)
    for step, start in (((high - low) / 15, low), (size / 127, size / 127 * -128)):
        *tried, same = _in_steps(blocks, step, start)
        for old, new in zip(found, tried, strict=True):
            old[same] = new[same]
    numbers, steps, lows = found
    return numbers, steps, lows


def _in_steps(blocks: np.ndarray, step: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, ...]:
    """The nearest whole numbers of rounded steps, and whether blocks come back exactly."""
    step = step.astype(np.float16)
    low = low.astype(np.float16)
    numbers = np.empty(blocks.shape, np.uint8)
    same = np.empty(step.shape, np.bool_)
    count_steps(blocks, step.astype(np.float32), low.astype(np.float32), numbers, same)
    return numbers, step, low, same


@compiled(LINEAR_IN_LANES)
def block_ends(blocks, low, high):
    """Write the least and the largest weight of each block."""
    for row in range(blocks.shape[0]):
        for block in range(blocks.shape[1]):
            least = blocks[row, block, 0]
            most = least
            for one in range(blocks.shape[2]):
                weight = blocks[row, block, one]
                least = min(least, weight)
                most = max(most, weight)
            low[row, block] = least
            high[row, block] = most


@compiled()
def count_steps(blocks, steps, lows, numbers, same):
    """Write the nearest whole numbers of steps above the lows, and which blocks they give back."""
    for row in range(blocks.shape[0]):
        for block in range(blocks.shape[1]):
            step = steps[row, block]
            low = lows[row, block]
            inverse = np.float32(1.0) / step if step > 0 else np.float32(0.0)
            wrong = 0
            for one in range(blocks.shape[2]):
                weight = blocks[row, block, one]
                number = min(max(np.rint((weight - low) * inverse), 0.0), 255.0)
                numbers[row, block, one] = np.uint8(number)
                wrong += np.float32(step * np.float32(number)) + low != weight
            same[row, block] = wrong == 0
