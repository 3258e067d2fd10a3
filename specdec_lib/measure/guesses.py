"""How often a model's first guess, and one of its best four, is the target's own likeliest token,
along what the target writes: what every draft's acceptance follows from.
"""

from collections.abc import Sequence

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import LanguageModel, StateReader
from specdec_lib.core.tree import TokenTree
from specdec_lib.measure.cluster import Cluster, LadderRecipe, spread_rows
from specdec_lib.measure.ratios import Ratio, sampling_of, summarise
from specdec_lib.measure.row_cache import Row, RowCache, key_of
from specdec_lib.measure.target_text import TargetText
from specdec_lib.measure.text_writing import texts_after
from specdec_lib.workload import Ladder, Prompt

PLACE = DATA / "measured" / "guesses.csv"
SAMPLERS = (Sampler(0.0), Sampler(1.0))
LONG = 450  # tokens of a prompt above which it counts as long
WRITTEN = 128  # tokens of a text that are looked at, at most
BEST = 4


def measure_guesses(
    prompts: Sequence[Prompt], recipe: LadderRecipe, cluster: Cluster | None = None
) -> pd.DataFrame:
    """A row per domain (and "all" of them), length of the prompt, sampling of the text, and model:
    texts, tokens, and the shares of right guesses with 95 % intervals over texts.
    """
    ladder = recipe.load()
    texts = texts_after(prompts, SAMPLERS, ladder, max_new_tokens=WRITTEN, cluster=cluster)
    items = [
        (key_of(prompt), (prompt, [text for text in texts if text.is_of(prompt)]))
        for prompt in prompts
    ]
    rows = spread_rows(
        guess_rows, items, ladder, {}, RowCache(None), cluster=cluster, label="guesses"
    )
    return summarise_guesses(pd.DataFrame(rows))


def guess_rows(ladder: Ladder, item: tuple[Prompt, Sequence[TargetText]]) -> list[Row]:
    """A row per text of a prompt and model that drafts: its tokens, and how often guesses are
    right.
    """
    prompt, texts = item
    given = ladder.encode(prompt)
    context = Context.of(given)
    rows: list[Row] = []
    for text in texts:
        written = text.tokens[:WRITTEN]
        chain = TokenTree.of_paths(context, [written[:-1]])
        likeliest = ladder.target.score(context, chain).argmax(dim=-1)
        for model in ladder.models[1:]:
            best = logits_along(model, context, written).topk(BEST).indices
            right = best == likeliest[:, None]
            rows.append(
                {
                    "domain": prompt.domain,
                    "prompt": prompt.name,
                    "long": len(given) > LONG,
                    "sampling": sampling_of(text.sampler.temperature, text.sampler.top_k),
                    "model": model.name,
                    "tokens": len(written),
                    "first": int(right[:, 0].sum()),
                    "best": int(right.any(dim=1).sum()),
                }
            )
    return rows


def logits_along(
    model: LanguageModel, context: Context, written: tuple[int, ...]
) -> Float[Tensor, "tokens vocab"]:
    """A model's logits before each token that was written after a context. One that reads the
    target's states has those of all tokens before the guess, as at the root of every round.
    """
    if not isinstance(model, StateReader) or model.target is None:
        return model.score(context, TokenTree.of_paths(context, [written[:-1]]))
    rows = []
    for count in range(len(written)):
        here = context.extended(written[:count])
        rows.append(model.score(here, TokenTree.rooted(here)))
    return torch.cat(rows)


def summarise_guesses(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of `measure_guesses`."""
    shares = {
        "first_right": Ratio("first", "tokens", share=True),
        f"best_{BEST}_right": Ratio("best", "tokens", share=True),
    }
    keys = ["domain", "long", "sampling", "model"]
    whole = pd.concat([rows.assign(domain="all"), rows])
    found = summarise(whole, keys, shares)
    counts = whole.groupby(keys, sort=False).tokens.sum().rename("tokens")
    found = found.join(counts, on=keys).rename(columns={"prompts": "texts"})
    shown = [*keys, "texts", "tokens"]
    return found[[*shown, *(name for name in found if name not in shown)]].round(4)
