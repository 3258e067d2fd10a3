"""The cost of a decoder's pass on an ideal machine: operations, bytes, and the seconds of the
slower of the two.

The decoder is like GPT-2: an MLP four times as wide, as many key as query heads. Rows are the
tokens of one pass (root included), `context` is the tokens cached before it.
"""

from dataclasses import dataclass
from numbers import Integral, Real

# widths of activations that a pass writes and reads per row and layer: two norms 2, queries, keys
# and values 3, attention 1, its projection 1, two residual sums 2, MLP 4 + 4 + 1; fused attention's
# scores never reach memory
INTERMEDIATE = 18


@dataclass(frozen=True)
class ModelShape:
    """The size of a decoder.

    vocabulary          0 leaves the output matrix out
    bytes_per_number    of weights, cache and activations alike: 2 in half precision
    """

    layers: int
    width: int
    vocabulary: int
    bytes_per_number: float = 2.0

    def __post_init__(self) -> None:
        if min(self.layers, self.width) < 1 or self.vocabulary < 0 or not self.bytes_per_number > 0:
            raise ValueError(
                "layers and width are at least 1, vocabulary 0 or more and bytes_per_number above"
                f" 0, got {self}"
            )

    @property
    def weights(self) -> int:
        """The weights that a pass reads; biases, norms and embedding rows are left out."""
        return 12 * self.layers * self.width**2 + self.vocabulary * self.width


@dataclass(frozen=True)
class Machine:
    """The peak rates of a machine, and the fixed time of a pass: launches and interpreter."""

    name: str
    bytes_per_second: float
    flops_per_second: float
    pass_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not (self.bytes_per_second > 0 and self.flops_per_second > 0 and self.pass_seconds >= 0):
            raise ValueError(f"peaks are above 0 and pass_seconds is 0 or more, got {self}")

    @property
    def ridge(self) -> float:
        """The arithmetic intensity, in operations per byte, above which memory is not the limit."""
        return self.flops_per_second / self.bytes_per_second


RTX_4090 = Machine("RTX 4090", 1008e9, 165.2e12)  # half-precision tensor cores, dense


def pass_flops(model: ModelShape, rows: Integral, context: Integral) -> float:
    """Operations of one pass: two per weight and row, and attention to the context and among all
    rows (a mask saves nothing).
    """
    if rows < 1 or context < 0:
        raise ValueError(
            f"a pass has at least 1 row and a context of 0 tokens or more, got rows={rows},"
            f" context={context}"
        )
    rows, context = int(rows), int(context)  # numpy's integers may overflow
    return float(
        2 * rows * model.weights + 4 * model.layers * model.width * rows * (context + rows)
    )


def bytes_moved(
    model: ModelShape, *, passes: Real, rows: Real, context_tokens: Real, activations: bool = True
) -> float:
    """Bytes to and from memory of many passes: each reads the weights and the cached keys and
    values once, and writes and reads those of its own rows.

    rows              of all passes together
    context_tokens    the sum of the lengths of their contexts
    activations       count activations and logits too

    Raises ValueError if there are fewer rows than passes or a count is negative.
    """
    if not (rows >= passes >= 0 and context_tokens >= 0):
        raise ValueError(
            f"a pass has at least 1 row, and counts are 0 or more; got passes={passes},"
            f" rows={rows}, context_tokens={context_tokens}"
        )
    numbers = float(passes) * model.weights + 2 * model.layers * model.width * (
        float(context_tokens) + 2 * float(rows)
    )
    if activations:
        numbers += float(rows) * (2 * INTERMEDIATE * model.layers * model.width + model.vocabulary)
    return float(numbers * model.bytes_per_number)


def roofline_seconds(
    model: ModelShape,
    machine: Machine,
    *,
    rows: Integral,
    context: Integral,
    activations: bool = True,
) -> float:
    """Seconds of one pass: the longer of arithmetic and memory at their peaks, plus the machine's
    fixed time.

    Source: Williams et al. 2009.
    """
    arithmetic = pass_flops(model, rows, context) / machine.flops_per_second
    moved = bytes_moved(model, passes=1, rows=rows, context_tokens=context, activations=activations)
    return max(arithmetic, moved / machine.bytes_per_second) + machine.pass_seconds


def arithmetic_intensity(
    model: ModelShape, rows: Integral, context: Integral, *, activations: bool = True
) -> float:
    """Operations per byte of one pass."""
    return pass_flops(model, rows, context) / bytes_moved(
        model, passes=1, rows=rows, context_tokens=context, activations=activations
    )
