"""How far the target's int8 edition is from the exact one, on the texts that the target writes at
temperature 1: the loss in nats per token, the Kullback-Leibler divergence, and how often both
choose the same likeliest token.
"""

import functools
from collections.abc import Sequence

import pandas as pd
from transformers import PreTrainedModel

from specdec_lib.core.context import Context
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import TokenTree
from specdec_lib.measure.cluster import Cluster, LadderRecipe, spread_rows
from specdec_lib.measure.ratios import Ratio, summarise
from specdec_lib.measure.row_cache import Row, RowCache, key_of
from specdec_lib.measure.settings.setting import WARM
from specdec_lib.measure.target_text import find_text
from specdec_lib.measure.text_writing import texts_after
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.fast.weights import EDITIONS
from specdec_lib.workload import Ladder, Prompt

LADDER = LadderRecipe(device="cpu", runtime="reference")
PLACE = DATA / "measured" / "editions.csv"


def measure_editions(prompts: Sequence[Prompt], cluster: Cluster | None = None) -> pd.DataFrame:
    """`summarise_editions` of the target on what it writes after these prompts."""
    ladder = LADDER.load()
    texts = texts_after(prompts, [WARM], ladder, cluster=cluster)
    items = [(key_of(prompt), (prompt, find_text(texts, prompt).tokens)) for prompt in prompts]
    rows = spread_rows(
        edition_rows, items, ladder, {}, RowCache(None), cluster=cluster, label="editions"
    )
    return summarise_editions(pd.DataFrame(rows)).round(6)


def edition_rows(ladder: Ladder, item: tuple[Prompt, tuple[int, ...]]) -> list[Row]:
    """`edition_sums` of the target on one prompt and its text."""
    prompt, text = item
    return edition_sums(_in_editions(ladder.target.model), ladder.encode(prompt), text)


@functools.lru_cache(maxsize=1)
def _in_editions(target: PreTrainedModel) -> tuple[FastModel, ...]:
    """The target in every edition, made once: packing its weights takes longer than a text."""
    return tuple(FastModel(target, "target", edition=edition) for edition in EDITIONS)


def edition_sums(
    models: Sequence[LanguageModel], prompt: tuple[int, ...], text: tuple[int, ...]
) -> list[dict]:
    """Per edition, the exact one first, sums over a text: tokens, loss, divergence, same choice."""
    context = Context.of(prompt)
    chain = TokenTree.of_paths(context, [text[:-1]])
    scored = [model.score(context, chain).double() for model in models]
    exact, *_ = scored = [logits.log_softmax(-1) for logits in scored]
    return [
        {
            "edition": edition,
            "tokens": len(text),
            "loss": -own[range(len(text)), text].sum().item(),
            "divergence": (exact.exp() * (exact - own)).sum().item(),
            "same": (exact.argmax(-1) == own.argmax(-1)).sum().item(),
        }
        for edition, own in zip(EDITIONS, scored, strict=True)
    ]


def summarise_editions(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per edition: per token, with 95 % intervals over texts."""
    ratios = {
        "loss": Ratio("loss", "tokens"),
        "divergence": Ratio("divergence", "tokens"),
        "same_choice": Ratio("same", "tokens", share=True),
    }
    found = summarise(rows, ["edition"], ratios)
    found.insert(1, "texts", found.pop("prompts"))
    found.insert(2, "tokens", [*rows.groupby("edition", sort=False).tokens.sum()])
    return found
