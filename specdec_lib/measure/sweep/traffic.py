"""Bytes that a sweep's passes move, and their seconds at a machine's roofline."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from specdec_lib.core.protocols import LanguageModel
from specdec_lib.theory import Machine, ModelShape, bytes_moved, roofline_seconds

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def model_shape(model: LanguageModel, *, bytes_per_number: float = 2.0) -> ModelShape:
    """The size of a decoder of GPT-2's kind: MLP of four widths, as many key as query heads.

    Raises ValueError for another kind.
    """
    config = model.model.config.get_text_config()
    width, heads, others = config.hidden_size, config.num_attention_heads, config.to_dict()
    inner = others.get("n_inner") or others.get("intermediate_size") or 4 * width
    if inner != 4 * width or others.get("num_key_value_heads", heads) != heads:
        raise ValueError(
            f"{model.name} is not of GPT-2's kind: its MLP has {inner} numbers for a width of"
            f" {width}, or it shares key heads"
        )
    return ModelShape(config.num_hidden_layers, width, model.vocabulary, bytes_per_number)


def generation_bytes(table: "DataFrame", shapes: Mapping[str, ModelShape]) -> "Series":
    """Bytes per row of a sweep: weights, keys and values, and activations of every pass of every
    model.

    shapes    by the models' names in the sweep; others may stand for them, such as the paper's

    A pass is charged the context up to the round's root; what earlier passes of the round cached
    beyond it is left out, and so are the reading of the prompt and the n-gram table.
    Raises ValueError if a model ran that has no shape.
    """

    def moved(name: str, passes: float, rows: float, context: float) -> float:
        return bytes_moved(shapes[name], passes=passes, rows=rows, context_tokens=context)

    return _sums(table, shapes, moved)


def seconds_at(
    table: "DataFrame", shapes: Mapping[str, ModelShape], machines: Mapping[str, Machine]
) -> "Series":
    """Seconds per row of a sweep if every pass took its roofline time; a pass has the mean rows and
    context of its generation.

    machines    per model, because the fixed time of a pass is the model's own

    Looking up n-grams, verifying and everything else outside the models is taken as free.
    """

    def seconds(name: str, passes: float, rows: float, context: float) -> float:
        mean = {"rows": math.ceil(rows / passes), "context": math.ceil(context / passes)}
        return passes * roofline_seconds(shapes[name], machines[name], **mean)

    return _sums(table, shapes.keys() & machines.keys(), seconds)


def _sums(table: "DataFrame", known: Mapping | set, cost: Callable[..., float]) -> "Series":
    """Per row the costs of the models that ran; a column of another setting's model is NaN."""
    import pandas as pd

    def total(row: dict) -> float:
        names = [key.removesuffix("_passes") for key in row if key.endswith("_passes")]
        ran = [name for name in names if row[f"{name}_passes"] > 0]
        if missing := [name for name in ran if name not in known]:
            raise ValueError(
                f"the model {missing[0]!r} ran and is not described; there are"
                f" {', '.join(known) or 'none'}"
            )
        parts = ("passes", "rows", "context_tokens")
        return sum(cost(name, *(row[f"{name}_{part}"] for part in parts)) for name in ran)

    return pd.Series([total(row) for row in table.to_dict("records")], index=table.index)
