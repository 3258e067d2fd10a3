"""The sizes of models; bytes that a sweep's passes move, and seconds at a machine's roofline."""

import math
from collections.abc import Callable, Mapping

import pandas as pd
from torch.nn import Embedding

from specdec_lib.core.protocols import LanguageModel
from specdec_lib.models.cut_head import CutHead
from specdec_lib.theory import Machine, ModelShape, bytes_moved, roofline_seconds
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import number, price_list

# models of the papers that have a model's place
STAGED = {"target": "oracle parameters, nominal", "draft": "draft parameters"}
CASCADE = {"target": "t5-xxl", "middle": "t5-base", "draft": "t5-small"}
PARTS = ("a_pass", "staged_paper", "cascade_paper")


def model_shape(model: LanguageModel, *, bytes_per_number: float = 2.0) -> ModelShape:
    """The size of a decoder of GPT-2's or Llama's kind; a cut head has its frequent tokens alone.
    Raises ValueError for a model that has other weights than the matrices of these.
    """
    network = model.model
    config, head = network.config.get_text_config(), network.get_output_embeddings()
    width, heads, others = config.hidden_size, config.num_attention_heads, config.to_dict()
    size = others.get("head_dim") or width // heads
    shape = ModelShape(
        config.num_hidden_layers,
        width,
        len(head.frequent) if isinstance(head, CutHead) else model.vocabulary,
        bytes_per_number,
        query_width=heads * size,
        key_width=(others.get("num_key_value_heads") or heads) * size,
        inner_width=others.get("n_inner") or others.get("intermediate_size"),
        matrices=3 if any("gate_proj" in name for name, _ in network.named_modules()) else 2,
    )
    layers = [
        one for one in network.modules() if not isinstance(one, Embedding) and one is not head
    ]
    parts = (part for one in layers for part in one.parameters(recurse=False))
    found = sum(part.numel() for part in parts if part.dim() > 1)
    if found != shape.layers * shape.layer_weights:
        wanted, other = shape.layers * shape.layer_weights, "is not of GPT-2's or Llama's kind"
        raise ValueError(f"{model.name} {other}: its layers have {found:,} weights, not {wanted:,}")
    return shape


def size_table(ladder: Ladder) -> pd.DataFrame:
    """A row per model of the ladder, the largest first, in millions of parameters: model; layers,
    without embeddings; head, the output matrix, of a cut one the frequent tokens' rows; a_pass, the
    sum; staged_paper and cascade_paper, the models of that place there, with embeddings (or NaN);
    and the share of the target's of these three.  Raises ValueError as `model_shape` does.
    """
    prices, rows = price_list("ms"), []
    for model in ladder.models:
        shape, name = model_shape(model), model.name
        layers = ladder.card["models"][name]["parameters"] / 1e6
        head = shape.vocabulary * shape.width / 1e6
        staged = number("staged.text.setup", STAGED[name]) if name in STAGED else math.nan
        rows.append((name, layers, head, layers + head, staged, prices[CASCADE[name]]))
    found = pd.DataFrame(rows, columns=["model", "layers", "head", *PARTS])
    return found.assign(**{f"{part}_share": found[part] / found[part].iloc[0] for part in PARTS})


def generation_bytes(table: pd.DataFrame, shapes: Mapping[str, ModelShape]) -> pd.Series:
    """Bytes per row of a sweep: weights, keys and values, and activations of every pass of every
    model.

    shapes    by the models' names in the sweep; others may stand for them, such as the paper's

    A pass is charged the context up to the round's root; reading the prompt and the n-gram table,
    and what earlier passes of the round cached beyond the root, are left out.
    Raises ValueError if a model ran that has no shape.
    """

    def moved(name: str, passes: float, rows: float, context: float) -> float:
        return bytes_moved(shapes[name], passes=passes, rows=rows, context_tokens=context)

    return _sums(table, shapes, moved)


def seconds_at(
    table: pd.DataFrame, shapes: Mapping[str, ModelShape], machines: Mapping[str, Machine]
) -> pd.Series:
    """Seconds per row of a sweep if every pass took its roofline time; a pass has the mean rows and
    context of its generation.

    machines    per model, because the fixed time of a pass is the model's own

    Looking up n-grams, verifying and everything else outside the models is taken as free.
    """

    def seconds(name: str, passes: float, rows: float, context: float) -> float:
        mean = {"rows": math.ceil(rows / passes), "context": math.ceil(context / passes)}
        return passes * roofline_seconds(shapes[name], machines[name], **mean)

    return _sums(table, shapes.keys() & machines.keys(), seconds)


def _sums(table: pd.DataFrame, known: Mapping | set, cost: Callable[..., float]) -> pd.Series:
    """Per row the costs of the models that ran; a column of another setting's model is NaN."""

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
