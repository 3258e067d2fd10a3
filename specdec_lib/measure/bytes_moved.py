"""The sizes of models; bytes that a sweep's passes move, and seconds at a machine's roofline."""

import math
from collections.abc import Callable, Mapping

import pandas as pd
from torch.nn import Embedding
from transformers import PreTrainedModel

from specdec_lib.core.protocols import LanguageModel
from specdec_lib.models.cut_head import CutHead
from specdec_lib.models.reading import projections_of
from specdec_lib.theory import Machine, ModelShape, bytes_moved, roofline_seconds
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import number, price_list

# models of the papers that have a model's place
STAGED = {"target": "oracle parameters, nominal", "draft": "draft parameters"}
CASCADE = {"target": "t5-xxl", "middle": "t5-base", "draft": "t5-small"}
PARTS = ("a_pass", "staged_paper", "cascade_paper")


def model_shape(model: LanguageModel, *, bytes_per_number: float = 2.0) -> ModelShape:
    """The size of a decoder of GPT-2's or Llama's kind, else ValueError; a cut head has its
    frequent tokens alone.
    """
    network = getattr(model, "model", None)
    if not isinstance(network, PreTrainedModel):
        raise ValueError(f"{model.name} is no network of transformers, so has no layers")
    config = network.config.get_text_config()
    head = network.get_output_embeddings()
    width = config.hidden_size
    heads = config.num_attention_heads
    others = config.to_dict()
    size = others.get("head_dim") or width // heads
    shape = ModelShape(
        config.num_hidden_layers,
        width,
        len(head.frequent) if isinstance(head, CutHead) else model.vocabulary,
        bytes_per_number,
        query_width=heads * size,
        key_width=(others.get("num_key_value_heads") or heads) * size,
        inner_width=others.get("n_inner") or others.get("intermediate_size"),
        matrices=3 if any(".gate_" in name for name, _ in network.named_modules()) else 2,
        projections=projections_of(network),
    )
    parts = (one for one in network.modules() if not isinstance(one, Embedding) and one is not head)
    weights = (weight for one in parts for weight in one.parameters(recurse=False))
    found = sum(weight.numel() for weight in weights if weight.dim() > 1)
    wanted = shape.layers * shape.layer_weights + shape.projections
    if found != wanted:
        raise ValueError(
            f"{model.name} is not of GPT-2's or Llama's kind: its layers have {found:,} weights,"
            f" not {wanted:,}"
        )
    return shape


def size_table(ladder: Ladder) -> pd.DataFrame:
    """A row per model, the largest first, in millions of parameters: model; layers; head, of a cut
    one the frequent tokens' rows; a_pass, the sum; staged_paper and cascade_paper, the models of
    that place there, with embeddings (or NaN); and the share of the target's of these three.
    """
    prices = price_list("ms")
    rows = []
    for model in ladder.models:
        shape = model_shape(model)
        name = model.name
        layers = ladder.card["models"][name]["parameters"] / 1e6
        head = shape.vocabulary * shape.width / 1e6
        staged = number("staged.text.setup", STAGED[name]) if name in STAGED else math.nan
        cascade = prices[CASCADE[name]] if name in CASCADE else math.nan
        rows.append((name, layers, head, layers + head, staged, cascade))
    found = pd.DataFrame(rows, columns=["model", "layers", "head", *PARTS])
    return found.assign(**{f"{part}_share": found[part] / found[part].iloc[0] for part in PARTS})


def generation_bytes(table: pd.DataFrame, shapes: Mapping[str, ModelShape]) -> pd.Series:
    """Bytes per row of a sweep: weights, keys and values, and activations of all models' passes,
    each charged the context up to the round's root; the prompt and n-grams are left out.

    shapes    by the models' names in the sweep; others may stand for them, such as the paper's

    Raises ValueError if a model ran that has no shape.
    """

    def moved(name: str, passes: float, rows: float, context: float) -> float:
        return bytes_moved(shapes[name], passes=passes, rows=rows, context_tokens=context)

    return _sums(table, shapes, moved)


def seconds_at(
    table: pd.DataFrame, shapes: Mapping[str, ModelShape], machines: Mapping[str, Machine]
) -> pd.Series:
    """Seconds per row of a sweep if every pass took its roofline time; a pass has the mean rows and
    context of its generation. Everything outside the models is taken as free.

    machines    per model, because the fixed time of a pass is the model's own
    """

    def seconds(name: str, passes: float, rows: float, context: float) -> float:
        mean_rows = math.ceil(rows / passes)
        mean_context = math.ceil(context / passes)
        return passes * roofline_seconds(
            shapes[name], machines[name], rows=mean_rows, context=mean_context
        )

    return _sums(table, shapes, seconds)


def _sums(
    table: pd.DataFrame, shapes: Mapping[str, ModelShape], cost: Callable[..., float]
) -> pd.Series:
    """Per row the costs of the models that ran; a column of another setting's model is NaN."""
    total = pd.Series(0.0, table.index)
    for name in table.filter(regex="_passes$").columns.str.removesuffix("_passes"):
        columns = [f"{name}_{part}" for part in ("passes", "rows", "context_tokens")]
        ran = table[columns[0]] > 0
        if ran.any() and name not in shapes:
            there = ", ".join(shapes) or "none"
            raise ValueError(f"the model {name!r} ran and is not described; there are {there}")
        total[ran] += [cost(name, *counts) for counts in table.loc[ran, columns].to_numpy(float)]
    return total
