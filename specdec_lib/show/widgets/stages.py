"""One stage or two, chain or tree, whatever scouts: what a setting moves and passes beside its
one-stage draft and plain decoding.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import ipywidgets
import pandas as pd

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Generation
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.sweep import model_shape, stacks
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import check_names, choice, of_text, slider
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.trying import Trial
from specdec_lib.theory import ModelShape, bytes_moved
from specdec_lib.workload import Ladder, Prompt

SHAPES, SCOUTS = ("chain", "tree"), ("none", "n-gram", "Max-Gram", "draft, for the middle model")
BUDGETS, DEPTHS, SCOUT_BUDGETS = range(1, 33), range(1, 13), range(1, 17)
START = {
    "shape": "tree",
    "budget": 16,
    "depth": 8,
    "scout": "n-gram",
    "scout_budget": 8,
    "temperature": 0.0,
    "top_k": None,
    "seed": 0,
    "text": "",
}
PRESETS = {
    "chain, one stage": {"shape": "chain", "budget": 5, "scout": "none"},
    "tree, one stage": {"shape": "tree", "budget": 16, "scout": "none"},
    "the paper's: tree, n-gram scout": {
        "shape": "tree",
        "budget": 16,
        "scout": "n-gram",
        "scout_budget": 8,
    },
}
PLAIN, ONE, TWO = "plain decoding", "one stage", "two stages"
METRICS = (
    "tokens per round",
    "draft passes per round",
    "target passes per token",
    "bytes per token ÷ plain decoding's",
)


def stage_explorer(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    *,
    start: Mapping[str, Any] | None = None,
    max_new_tokens: int = 32,
) -> Panel:
    """Knobs for a staged draft over `figures.stages`: counted passes, tokens and bytes of one text
    under this setting, its one-stage draft and none.

    ladder            on the fast runtime a change shows in a fraction of a second
    start             where knobs stand first: shape, budget, depth, scout, scout_budget,
                      temperature, top_k, seed, prompt, text
    max_new_tokens    that are decoded

    Bytes are those of half-precision weights, caches and activations; the n-gram table is taken as
    free.
    Raises ValueError if there is no prompt, a model is not of GPT-2's kind, whose bytes alone are
    counted, or a knob starts where it cannot stand.
    """
    trial = Trial(ladder, prompts, max_new_tokens)
    shapes = {model.name: model_shape(model) for model in ladder.models}
    scouts = _scouts(ladder)
    presets = {name: one for name, one in PRESETS.items() if one["scout"] in scouts}

    @lru_cache(256)
    def played(
        draft: tuple[Any, ...], sampler: Sampler, prompt: str, text: str, seed: int
    ) -> Generation:
        return trial.generation(
            _draft(ladder, sampler, *draft), trial.context(prompt, text), Chance(seed, sampler)
        )

    def draw(
        shape: str, budget: int, depth: int, scout: str, scout_budget: int, **at: Any
    ) -> Shown:
        given = (
            Sampler(at["temperature"], top_k=at["top_k"]),
            at["prompt"],
            at["text"],
            at["seed"],
        )
        model = "middle" if scout == SCOUTS[-1] else "draft"
        sizes = (shape, budget, depth, model)
        drafts = {PLAIN: (), f"{ONE}: {model}": (*sizes, "none", 0)}
        if scout != "none":
            drafts[f"{TWO}: {model} ← {scout.partition(',')[0]}"] = (*sizes, scout, scout_budget)
        table = _counted({name: played(draft, *given) for name, draft in drafts.items()}, shapes)
        return Shown(
            (figures.stages(table.assign(low=table.value, high=table.value)),),
            _words(table, shape, budget),
        )

    first = START | {
        "prompt": trial.names[0],
        "scout": next(name for name in (START["scout"], "Max-Gram") if name in scouts),
    }
    return Panel(
        _knobs(trial.names, scouts, first | dict(start or {})),
        draw,
        presets=presets,
        heights=(470,),
    )


def _scouts(ladder: Ladder) -> list[str]:
    """Those whose parts the ladder has."""
    parts = {"n-gram": ladder.katz, SCOUTS[-1]: ladder.middle}
    return [name for name in SCOUTS if name not in parts or parts[name] is not None]


def _draft(ladder: Ladder, sampler: Sampler, *setting: Any) -> Draft:
    """The draft of a setting; none is plain decoding."""
    if not setting:
        return NoDraft()
    shape, budget, depth, model, scout, scout_budget = setting
    match = ladder.match(model, sampler)
    one = ChainDraft(getattr(ladder, model), budget, match=match)
    if shape == "tree":
        one = TreeDraft(getattr(ladder, model), budget=budget, depth=depth, match=match)
    if scout == "none":
        return one
    if scout == "n-gram":
        return StagedTree(one, stacks.scout(ladder, sampler, budget=scout_budget), guided=2)
    if scout == "Max-Gram":
        return StagedTree(one, replace(ladder.max_gram, length=scout_budget), guided=1)
    inner = TreeDraft(
        ladder.draft,
        budget=scout_budget,
        depth=min(depth, 6),
        match=ladder.match("draft", sampler, obeyed="middle"),
    )
    return StagedTree(one, inner, guided=1)


def _counted(
    generations: Mapping[str, Generation], shapes: Mapping[str, ModelShape]
) -> pd.DataFrame:
    """A row per setting and metric."""
    plain, rows = _bytes_per_token(generations[PLAIN], shapes), []
    for levels, (name, one) in enumerate(generations.items(), 1):
        drafting = sum(
            used.passes
            for played in one.rounds
            for model, used in played.usage.items()
            if model != "target"
        )
        values = (
            one.tokens_per_round,
            drafting / len(one.rounds),
            1 / one.tokens_per_round,
            _bytes_per_token(one, shapes) / plain,
        )
        rows += [
            {"stack": name, "levels": levels, "metric": metric, "value": value}
            for metric, value in zip(METRICS, values, strict=True)
        ]
    return pd.DataFrame(rows)


def _bytes_per_token(generation: Generation, shapes: Mapping[str, ModelShape]) -> float:
    """Of every pass of every model, the target's over each round's tree."""
    total = 0.0
    for played in generation.rounds:
        context = played.tree.root_position
        total += bytes_moved(
            shapes["target"], passes=1, rows=len(played.tree), context_tokens=context
        )
        for name, used in played.usage.items():
            if name != "target":
                total += bytes_moved(
                    shapes[name],
                    passes=used.passes,
                    rows=used.rows,
                    context_tokens=used.passes * context,
                )
    return total / len(generation.tokens)


def _words(table: pd.DataFrame, shape: str, budget: int) -> str:
    """What the figure shows, in a sentence per setting."""
    lines = []
    for name, own in table.groupby("stack", sort=False):
        value = own.set_index("metric").value
        passes, moved = value[METRICS[1]], value[METRICS[3]]
        lines.append(
            f"<b>{html.escape(str(name))}</b>: {value[METRICS[0]]:.2f} tokens and {passes:.2f}"
            f" draft passes per round, {moved:.2f} of the bytes"
        )
    return (
        f"A {shape} of {budget}, one text of the target: its tokens are the same in every"
        " setting.<br>" + "<br>".join(lines)
    )


def _knobs(
    names: Sequence[str], scouts: Sequence[str], start: Mapping[str, Any]
) -> dict[str, ipywidgets.ValueWidget]:
    check_names(start, (*START, "prompt"))
    return {
        "shape": choice("shape", SHAPES, start["shape"], "of the draft's guesses"),
        "budget": slider(
            "budget", BUDGETS, start["budget"], tooltip="guesses, nodes without the root"
        ),
        "depth": slider("depth", DEPTHS, start["depth"], tooltip="deepest guess of a tree, nodes"),
        "scout": choice(
            "scout", scouts, start["scout"], "who guesses for the draft, in its own passes"
        ),
        "scout_budget": slider(
            "scout budget",
            SCOUT_BUDGETS,
            start["scout_budget"],
            tooltip="guesses of the scout below a node",
        ),
    } | of_text(names, start)
