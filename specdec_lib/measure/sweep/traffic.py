"""Bytes that a sweep's passes move, and their seconds at a machine's roofline."""

import math
from collections.abc import Mapping
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
    width, inner = (
        config.hidden_size,
        getattr(config, "n_inner", None)
        or getattr(config, "intermediate_size", None)
        or 4 * config.hidden_size,
    )
    heads = config.num_attention_heads
    if inner != 4 * width or getattr(config, "num_key_value_heads", heads) != heads:
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
    import pandas as pd

    return pd.Series(
        [
            sum(_bytes(row, name, shapes) for name in _models(row))
            for row in table.to_dict("records")
        ],
        index=table.index,
    )


def _bytes(row: dict, name: str, shapes: Mapping[str, ModelShape]) -> float:
    _refuse_unknown(name, shapes)
    return bytes_moved(
        shapes[name],
        passes=row[f"{name}_passes"],
        rows=row[f"{name}_rows"],
        context_tokens=row[f"{name}_context_tokens"],
    )


def seconds_at(
    table: "DataFrame", shapes: Mapping[str, ModelShape], machines: Mapping[str, Machine]
) -> "Series":
    """Seconds per row of a sweep if every pass took its roofline time; a pass has the mean rows and
    context of its generation.

    machines    per model, because the fixed time of a pass is the model's own

    Looking up n-grams, verifying and everything else outside the models is taken as free.
    """
    import pandas as pd

    return pd.Series(
        [
            sum(_seconds(row, name, shapes, machines) for name in _models(row))
            for row in table.to_dict("records")
        ],
        index=table.index,
    )


def _seconds(
    row: dict, name: str, shapes: Mapping[str, ModelShape], machines: Mapping[str, Machine]
) -> float:
    _refuse_unknown(name, shapes)
    _refuse_unknown(name, machines)
    passes = row[f"{name}_passes"]
    rows, context = (
        math.ceil(row[f"{name}_rows"] / passes),
        math.ceil(row[f"{name}_context_tokens"] / passes),
    )
    return passes * roofline_seconds(shapes[name], machines[name], rows=rows, context=context)


def _models(row: dict) -> list[str]:
    """The models that ran: a column of another setting's model is NaN."""
    return [
        key.removesuffix("_passes")
        for key, passes in row.items()
        if key.endswith("_passes") and passes > 0
    ]


def _refuse_unknown(name: str, known: Mapping[str, object]) -> None:
    if name not in known:
        raise ValueError(
            f"the model {name!r} ran and is not described; there are {', '.join(known) or 'none'}"
        )
