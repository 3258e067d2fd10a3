"""The explorer of stages: a draft with a scout, without it, and plain decoding."""

import html
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from specdec_lib.core.chance import Sampler
from specdec_lib.core.decode import Generation
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.sweep.grid import Setting, generation_row
from specdec_lib.measure.sweep.traffic import generation_bytes, model_shape
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import choice, slider, text_knobs
from specdec_lib.show.widgets.panel import Panel, Shown, Values
from specdec_lib.show.widgets.trying import DraftTrial, TreeSize, guesser, offered_by
from specdec_lib.theory import ModelShape
from specdec_lib.workload import Ladder, Prompt

SCOUTS = "none", "n-gram", "Max-Gram", "draft, for the middle model"
NO_SCOUT, TABLE, COPIES, MODEL = SCOUTS
PRESETS = {
    "chain, one stage": {"shape": "chain", "budget": 5, "scout": NO_SCOUT},
    "tree, one stage": {"shape": "tree", "budget": 16, "scout": NO_SCOUT},
    "the paper's: tree, n-gram scout": dict(shape="tree", budget=16, scout=TABLE, scout_budget=8),
}
HEIGHT = 470  # pixels
PLAIN = "plain decoding"
TOKENS, PASSES = "tokens per round", "draft passes per round"
BYTES = "bytes per token ÷ plain decoding's"
BELOW = "guesses of the scout below a node"
SCOUT = "what guesses for the draft, in its own passes"


def stage_explorer(
    ladder: Ladder, prompts: Sequence[Prompt], *, start: Values | None = None
) -> Panel:
    """Knobs for a staged draft over `figures.stages`: counted passes, tokens and bytes of one text
    under this setting, its one-stage draft and none; `start` says where some of its knobs start.

    Bytes are those of half-precision weights, caches and activations; n-grams are taken as free.
    Raises ValueError if there is no prompt, a model is of another kind than `model_shape` knows,
    or a knob starts where it cannot stand.
    """
    trial, scouts = DraftTrial(ladder, prompts), offered_by(ladder, SCOUTS)
    shapes = {model.name: model_shape(model) for model in ladder.models}

    def draw(
        shape: str, budget: int, depth: int, scout: str, scout_budget: int, **at: Any
    ) -> Shown:
        model = "middle" if scout == MODEL else "draft"
        size = (shape, budget, depth, model)
        drafts = {PLAIN: (), f"one stage: {model}": (*size, NO_SCOUT, 0)}
        if scout != NO_SCOUT:
            name = f"two stages: {model} ← {scout.partition(',')[0]}"
            drafts[name] = (*size, scout, scout_budget)
        played = {name: trial.generation(at, _draft, *draft) for name, draft in drafts.items()}
        counts = _counts(played, prompts[0], shapes)
        lines = [
            f"A {shape} of {budget}, one text of the target: its tokens are the same throughout."
        ]
        for name, row in counts.iterrows():
            lines.append(
                f"<b>{html.escape(name)}</b>: {row[TOKENS]:.2f} tokens and {row[PASSES]:.2f} draft"
                f" passes per round, {row[BYTES]:.2f} of the bytes"
            )
        counts = counts.assign(levels=range(1, 1 + len(counts))).rename_axis("stack").reset_index()
        table = counts.melt(["stack", "levels"], var_name="metric")
        figure = figures.stages(table.assign(low=table.value, high=table.value))
        return Shown((figure,), "<br>".join(lines))

    knobs = {
        "shape": choice(("chain", "tree"), "of the draft's guesses", start="tree"),
        "budget": slider(range(1, 33), 16, "guesses, nodes without the root"),
        "depth": slider(range(1, 13), 8, "deepest guess of a tree, nodes"),
        "scout": choice(scouts, SCOUT, start=scouts[1]),
        "scout_budget": slider(range(1, 17), 8, BELOW, label="scout budget"),
    }
    knobs |= text_knobs(trial.prompts, temperature=0.0)
    presets = {name: one for name, one in PRESETS.items() if one["scout"] in scouts}
    return Panel(knobs, draw, start=start, presets=presets, heights=(HEIGHT,))


def _draft(ladder: Ladder, sampler: Sampler, *setting: Hashable) -> Draft:
    """The draft of a shape, budget, depth, model, scout and its budget; without them, plain
    decoding.
    """
    if not setting:
        return NoDraft()
    shape, budget, depth, model, scout, most = setting
    one = guesser(ladder, sampler, model, TreeSize(budget, depth))
    if shape == "chain":
        one = ChainDraft(one.model, budget, match=one.match)
    if scout == NO_SCOUT:
        return one
    depths = {TABLE: 6, COPIES: most, MODEL: min(depth, 6)}
    size = TreeSize(most, depths[scout])
    below = guesser(ladder, sampler, scout.partition(",")[0], size, obeyed=model)
    return StagedTree(one, below, guided=2 if scout == TABLE else 1)


def _counts(
    generations: Mapping[str, Generation], prompt: Prompt, shapes: Mapping[str, ModelShape]
) -> pd.DataFrame:
    """A row of counts per setting; plain decoding comes first."""
    rows = pd.DataFrame(
        [generation_row(Setting(name, NoDraft()), prompt, one) for name, one in generations.items()]
    )
    moved = generation_bytes(rows, shapes) / rows.tokens
    drafting = rows.filter(regex="_passes$").drop(columns="target_passes").sum(axis=1)
    values = {
        TOKENS: rows.tokens / rows.rounds,
        PASSES: drafting / rows.rounds,
        "target passes per token": rows.rounds / rows.tokens,
        BYTES: moved / moved[0],
    }
    return pd.DataFrame(values).set_index(rows.draft)
