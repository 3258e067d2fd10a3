"""`specdec measure editions`: how far the target's int8 edition is from the exact one, on the texts
that the target wrote at temperature 1 after held-out prompts.

The table goes to data/measured/editions.csv: the loss of each edition in nats per token, the
Kullback-Leibler divergence from the exact one, and how often both choose the same likeliest token.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from tqdm import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.context import Context
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import TokenTree
from specdec_lib.measure.intervals import bootstrap, named_interval
from specdec_lib.measure.texts import Texts
from specdec_lib.models.fast.weights import EDITIONS
from specdec_lib.models.loading import fast_model
from specdec_lib.workload import DOMAINS, load_ladder, load_prompts

if TYPE_CHECKING:
    from pandas import DataFrame

PLACE = DATA / "measured" / "editions.csv"


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    import pandas as pd

    parser = Parser(
        "measure editions", __doc__.partition(": ")[2].partition("\n\n")[0], writes=[PLACE]
    )
    parser.add_common("--limit", 8, "of each domain")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    models = [fast_model(ladder.target, edition=edition) for edition in EDITIONS]
    (texts,) = Texts.stored((Sampler(1.0),))
    prompts = [one for domain in DOMAINS for one in load_prompts(domain, "held-out", given.limit)]
    rows = [
        row
        for prompt in tqdm(prompts, desc="editions", unit="prompt")
        for row in edition_sums(models, ladder.encode(prompt), texts.of(prompt))
    ]
    table = summarise_editions(pd.DataFrame(rows)).round(6)
    print(table.to_string(index=False))
    write_csv(table, PLACE)


def edition_sums(
    models: Sequence[LanguageModel], prompt: tuple[int, ...], text: tuple[int, ...]
) -> list[dict]:
    """Sums over a text for each edition, the exact one first: tokens, loss, divergence from the
    exact edition, and places with the same likeliest token.
    """
    context = Context.of(prompt)
    chain = TokenTree.of_paths(context, [text[:-1]]) if text[1:] else TokenTree.rooted(context)
    found, exact = [], None
    for edition, model in zip(EDITIONS, models, strict=True):
        log_probs = model.score(context, chain).double().log_softmax(-1)
        exact = log_probs if exact is None else exact
        found.append(
            {
                "edition": edition,
                "tokens": len(text),
                "loss": -log_probs[range(len(text)), text].sum().item(),
                "divergence": (exact.exp() * (exact - log_probs)).sum().item(),
                "same": (exact.argmax(-1) == log_probs.argmax(-1)).sum().item(),
            }
        )
    return found


def summarise_editions(rows: "DataFrame") -> "DataFrame":
    """A row per edition: per token, with 95 % intervals over texts."""
    import pandas as pd

    return pd.DataFrame(
        {"edition": edition, "texts": len(group), "tokens": group.tokens.sum()}
        | named_interval("loss", bootstrap(group.loss, group.tokens))
        | named_interval("divergence", bootstrap(group.divergence, group.tokens))
        | named_interval("same_choice", bootstrap(group.same, group.tokens))
        for edition, group in rows.groupby("edition", sort=False)
    )
