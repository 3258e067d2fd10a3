"""`specdec measure editions`: how far the target's int8 edition is from the exact one, on the texts
that the target wrote at temperature 1 after held-out prompts: the loss in nats per token, the
Kullback-Leibler divergence, and how often both choose the same likeliest token.
"""

import functools
from collections.abc import Sequence

import pandas as pd
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import TokenTree
from specdec_lib.measure.cluster import LadderRecipe, opened, spread_rows
from specdec_lib.measure.commands.commandline import parse_measurement, write_csv
from specdec_lib.measure.ratios import Ratio, summarise
from specdec_lib.measure.row_cache import Row, RowCache
from specdec_lib.measure.target_text import every_domain, find_text, stored_texts
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.fast.weights import EDITIONS
from specdec_lib.workload import Ladder, Prompt

PLACE = DATA / "measured" / "editions.csv"


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    given = parse_measurement("measure editions", __doc__, [PLACE], arguments, 8, counts=True)
    texts = stored_texts([Sampler(1.0)])
    prompts = every_domain("held-out", given.limit)
    items = [(prompt.name, (prompt, find_text(texts, prompt).tokens)) for prompt in prompts]
    recipe = LadderRecipe(device="cpu", runtime="reference")
    with opened(given.scheduler, recipe) as cluster:
        rows = spread_rows(
            edition_rows,
            items,
            recipe.load(),
            {},
            RowCache(None),
            cluster=cluster,
            label="editions",
        )
    table = summarise_editions(pd.DataFrame(rows)).round(6)
    print(table.to_string(index=False))
    write_csv(table, PLACE)


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
