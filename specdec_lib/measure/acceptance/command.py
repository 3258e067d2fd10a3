"""`specdec measure acceptance`: holds theory against measurement at full size, for notebook 02.

A wide tree on the development code prompts predicts what a dozen other trees yield on the held-out
ones, and `data/measured/predicted.csv` is what comes of it. Each prompt is decoded once; its ranks
settle every round of every fixed tree (see `replay`), so what a tree yields is counted along the
text. `--decode` decodes with every tree instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.decode import Generation, decode
from specdec_lib.core.files import DATA, write_whole
from specdec_lib.core.tree import Shape
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.acceptance.prediction import (
    compare_predictions,
    errors,
    predicted_shapes,
    predictions,
)
from specdec_lib.measure.acceptance.ranks import replayed_guesses, replayed_tokens
from specdec_lib.measure.acceptance.rates import tokens
from specdec_lib.measure.acceptance.records import collect
from specdec_lib.measure.replay.shape_rounds import Taken, taken_ranks
from specdec_lib.workload import Ladder, Prompt, load_ladder, load_prompts, seeds

if TYPE_CHECKING:
    from pandas import DataFrame

PLACE = DATA / "measured" / "predicted.csv"
TEMPERATURES = (0.0, 1.0)
QUICK = (4, 2, 1, 1)
WIDE = (6, 3, 2, 1, 1, 1)
COLUMNS = ["temperature", "name", "predictor", "predicted", "measured", "low", "high"]


def played(
    ladder: Ladder,
    drafts: Mapping[str, TreeDraft],
    prompts: Sequence[Prompt],
    sampler: Sampler,
    *,
    seed: int,
    max_new_tokens: int,
) -> Iterator[tuple[dict[str, object], Generation, Chance]]:
    """Every prompt decoded with every draft, under its labels and with its chance."""
    from tqdm.auto import tqdm

    for prompt, prompt_seed in zip(
        tqdm(prompts, desc=f"T = {sampler.temperature:g}", mininterval=1),
        seeds(prompts, seed),
        strict=True,
    ):
        chance = Chance(prompt_seed, sampler)
        for name, draft in drafts.items():
            limits = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
            yield (
                {"draft": name, "prompt": prompt.name},
                decode(ladder.target, draft, ladder.encode(prompt), chance, **limits),
                chance,
            )


def texts(
    ladder: Ladder, prompts: Sequence[Prompt], sampler: Sampler, *, seed: int, max_new_tokens: int
) -> list[Taken]:
    """`taken_ranks` of the target's text for each prompt."""
    draft = TreeDraft(ladder.draft, widths=QUICK)
    decoded = played(
        ladder, {"": draft}, prompts, sampler, seed=seed, max_new_tokens=max_new_tokens
    )
    return [taken_ranks(generation, draft, chance) for _, generation, chance in decoded]


def predicted_from(known: Sequence[Taken]) -> tuple[dict[str, Shape], "DataFrame"]:
    """The trees, and what the development texts say of them; the wide tree is replayed along these
    texts.
    """
    trees = predicted_shapes(known)
    return trees, predictions(trees, replayed_guesses(Shape.of_widths(WIDE), known), known)


def decoded_tokens(
    ladder: Ladder,
    trees: Mapping[str, Shape],
    prompts: Sequence[Prompt],
    sampler: Sampler,
    *,
    seed: int,
    max_new_tokens: int,
) -> "DataFrame":
    """`tokens` of each tree, every prompt decoded with every tree."""
    drafts = {name: TreeDraft(ladder.draft, shape=shape) for name, shape in trees.items()}
    decoded = played(ladder, drafts, prompts, sampler, seed=seed, max_new_tokens=max_new_tokens)
    return tokens(collect((labels, generation) for labels, generation, _ in decoded)[1], ["draft"])


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    import pandas as pd

    parser = Parser("measure acceptance", __doc__.partition(": ")[2])
    parser.add_argument(
        "--prompts",
        type=int,
        default=120,
        help="the first so many prompts of each split (default: all 120)",
    )
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--decode",
        action="store_true",
        help="decode every held-out prompt with every tree: the same numbers, much later",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the table and leave data/measured alone"
    )
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    splits = [load_prompts("code", split, given.prompts) for split in ("development", "held-out")]
    limits = {"seed": given.seed, "max_new_tokens": given.max_new_tokens}
    tables = []
    for temperature in TEMPERATURES:
        sampler = Sampler(temperature)
        trees, predicted = predicted_from(texts(ladder, splits[0], sampler, **limits))
        if given.decode:
            measured = decoded_tokens(ladder, trees, splits[1], sampler, **limits)
        else:
            measured = replayed_tokens(trees, texts(ladder, splits[1], sampler, **limits))
        tables.append(compare_predictions(predicted, measured).assign(temperature=temperature))
    table = pd.concat(tables)
    print(errors(table, ["temperature", "predictor"]).round(4).to_string(index=False))
    if given.dry_run:
        print(table[COLUMNS].round(4).to_string(index=False))
        return
    PLACE.parent.mkdir(exist_ok=True)
    write_whole(PLACE, table[COLUMNS].round(6).to_csv(index=False).encode())
