"""The cost of a decoder's pass on an ideal machine, in operations, bytes and seconds. Rows are the
tokens of one pass (root included), `context` is the tokens cached before it.
"""

from dataclasses import dataclass
from typing import Annotated, cast

from specdec_lib.core.kinds import Within, checked

Positive = Annotated[float, Within(2.0**-50)]


@checked
@dataclass(frozen=True)
class ModelShape:
    """The size of a decoder; its last four sizes are those of GPT-2's kind where none are given.

    vocabulary               tokens that the output matrix scores
    bytes_per_number         of weights, cache and activations alike
    query_width, key_width   heads × their size, of queries and of keys; None is `width`
    inner_width, matrices    of the MLP, 3 matrices where it has a gate; None is four times `width`
    projections              weights beside the layers, charged to every pass, such as those through
                             which a draft reads its target
    """

    layers: Annotated[int, Within(1)]
    width: Annotated[int, Within(1)]
    vocabulary: Annotated[int, Within(0)]
    bytes_per_number: Positive = 2.0
    query_width: int | None = None
    key_width: int | None = None
    inner_width: int | None = None
    matrices: int = 2
    projections: Annotated[int, Within(0)] = 0

    def __post_init__(self) -> None:
        for name, times in {"query_width": 1, "key_width": 1, "inner_width": 4}.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, times * self.width)

    @property
    def widths(self) -> tuple[int, int, int]:
        """Of queries, keys and the MLP."""
        found = (self.query_width, self.key_width, self.inner_width)
        return cast(tuple[int, int, int], found)  # none is None any more

    @property
    def weights(self) -> int:
        """The weights that a pass reads; biases, norms and embedding rows are left out."""
        inner = self.layers * self.layer_weights + self.projections
        return inner + self.vocabulary * self.width

    @property
    def layer_weights(self) -> int:
        """The weights of a layer."""
        return self.width * self._columns

    @property
    def layer_activations(self) -> int:
        """Numbers that a row writes and reads in a layer, with two norms, projections and sums."""
        return 6 * self.width + self._columns

    @property
    def _columns(self) -> int:
        """Of queries and their projection, keys and values, and the MLP."""
        query, key, inner = self.widths
        return 2 * query + 2 * key + self.matrices * inner


@checked
@dataclass(frozen=True)
class Machine:
    """The peak rates of a machine, and the fixed time of a pass: launches and interpreter."""

    name: str
    bytes_per_second: Positive
    flops_per_second: Positive
    pass_seconds: Annotated[float, Within(0)] = 0.0

    @property
    def ridge(self) -> float:
        """The arithmetic intensity, in operations per byte, above which memory is not the limit."""
        return self.flops_per_second / self.bytes_per_second


# the papers' GPUs and a later one, half-precision tensor cores, dense, by their data sheets
RTX_4090 = Machine("RTX 4090", 1008e9, 165.2e12)
A40 = Machine("A40", 696e9, 149.7e12)
H100 = Machine("H100", 3350e9, 989e12)


@checked
def pass_flops(
    model: ModelShape,
    rows: Annotated[int, Within(1)],
    context: Annotated[int, Within(0)],
) -> float:
    """Operations of one pass: two per weight and row, and attention to the context and all rows."""
    rows = int(rows)  # numpy's integers may overflow
    context = int(context)
    query, *_ = model.widths
    attention = 4 * model.layers * query * (context + rows)
    return float(rows * (2 * model.weights + attention))


@checked
def bytes_moved(
    model: ModelShape,
    *,
    passes: float,
    rows: float,
    context_tokens: float,
    activations: bool = True,
) -> float:
    """Bytes to and from memory of many passes: each reads the weights and the cached keys and
    values once, and writes and reads those of its own rows; activations and logits too, if so said.

    rows, context_tokens    of all passes together
    """
    passes = float(passes)
    rows = float(rows)
    context = float(context_tokens)
    if not (rows >= passes >= 0 and context >= 0):
        raise ValueError(
            "a pass has at least 1 row, and counts are 0 or more;"
            f" got {passes:g} passes, {rows:g} rows and {context:g} context tokens"
        )
    _, key, _ = model.widths
    numbers = passes * model.weights + 2 * model.layers * key * (context + 2 * rows)
    if activations:
        numbers += rows * (2 * model.layers * model.layer_activations + model.vocabulary)
    return float(numbers * model.bytes_per_number)


@checked
def arithmetic_intensity(
    model: ModelShape, rows: int, context: int, *, activations: bool = True
) -> float:
    """Operations per byte of one pass."""
    moved = bytes_moved(model, passes=1, rows=rows, context_tokens=context, activations=activations)
    return pass_flops(model, rows, context) / moved


@checked
def roofline_seconds(
    model: ModelShape,
    machine: Machine,
    *,
    rows: int,
    context: int,
    activations: bool = True,
) -> float:
    """Arithmetic or memory at their peaks (Williams et al. 2009), and a pass's fixed time."""
    arithmetic = pass_flops(model, rows, context) / machine.flops_per_second
    moved = bytes_moved(model, passes=1, rows=rows, context_tokens=context, activations=activations)
    return max(arithmetic, moved / machine.bytes_per_second) + machine.pass_seconds
