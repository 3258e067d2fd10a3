"""Who races: every method at the setting that is fastest on development prompts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, Contender, ours
from specdec_lib.measure.race.families import ON_TREES, OURS, TOKEN_BY_TOKEN, drafts, trees
from specdec_lib.measure.race.harness import TargetText
from specdec_lib.measure.race.hugging import ASSIST, HF, LOOKUP, hugging_contenders
from specdec_lib.measure.race.llama_cpp import llama_cpp
from specdec_lib.measure.race.tuning import as_precise, calibrate, tune_contenders
from specdec_lib.workload import Ladder

BUILT_ON = 3  # of the best trees
FINALISTS = ("staged", "cascade", "copies first")
Say = Callable[[str], None]


@dataclass(frozen=True)
class TunedSetting:
    """The setting of a method that was fastest on development prompts, of so many tried."""

    setting: str
    ms_per_token: float
    tried: int


@dataclass(frozen=True)
class Lineup:
    """What tuning settled under one sampler: plain values, from which contenders are built again.

    best        a choice by method
    built_on    the trees that staged drafts and tails were built on
    chosen      which of `FINALISTS` was fastest on development prompts, if several were tuned
    precision   in which Hugging Face is faster, "" where it does not race, and what the other took
    """

    best: dict[str, TunedSetting] = field(default_factory=dict)
    built_on: tuple[str, ...] = ()
    chosen: str = ""
    precision: str = ""
    note: str = ""


def tune_lineup(
    ladders: Mapping[str, Ladder],
    sampler: Sampler,
    texts: Sequence[TargetText],
    *,
    stages: Sequence[int],
    most: int | None,
    seed: int,
    methods: Sequence[str] = OURS,
    hugging: bool = True,
    say: Say = print,
) -> Lineup:
    """Every method at its best setting on these texts of development prompts.

    ladders    by runtime; methods are tuned on the last one
    stages     prompts that each stage of the tuning adds
    most       settings per method that are tried, spread over its grid; None is all
    """
    (runtime, ladder), lineup = list(ladders.items())[-1], Lineup()
    found: dict[str, Contender] = {}

    def settle(method: str, grid: Sequence[Contender]) -> list[str]:
        tried = spread(grid, most)
        left = tune_contenders(tried, texts, ladder.target, stages=stages, seed=seed)
        found[method] = left[0].contender
        choice = TunedSetting(found[method].setting, left[0].ms_per_token, left[0].tried)
        lineup.best[method] = choice
        say(f"  {method}: {choice.setting}: {_told(choice)}")
        return [one.contender.setting for one in left]

    for method in methods:
        grid = _grid(ladder, runtime, sampler, method, lineup.built_on)
        left = settle(method, list(grid.values()))
        if method == "tree":
            lineup = replace(lineup, built_on=tuple(left[:BUILT_ON]))
    if hugging:
        network, note = calibrate(next(iter(ladders.values())), sampler, texts[0])
        precision = str(network.dtype).removeprefix("torch.")
        lineup = replace(lineup, precision=precision, note=note)
        for method in (ASSIST, LOOKUP):
            settle(method, [*_hugging(ladders, sampler, method, network).values()])
    finalists = [found[method] for method in FINALISTS if method in found]
    if len(finalists) > 1:
        final = tune_contenders(finalists, texts, ladder.target, stages=[sum(stages)], seed=seed)
        lineup = replace(lineup, chosen=final[0].contender.method)
    return lineup


def spread(grid: Sequence[Contender], most: int | None) -> list[Contender]:
    """At most so many contenders, evenly over their grid; None is all."""
    size = min(most or len(grid), len(grid))
    return [grid[at * len(grid) // size] for at in range(size)]


def contenders(
    ladders: Mapping[str, Ladder], sampler: Sampler, lineup: Lineup
) -> tuple[list[Contender], list[Contender]]:
    """Our methods beside plain decoding on the last runtime, and the others: plain decoding on
    every other runtime, Hugging Face's ways where it races, and llama.cpp where it runs the same
    edition of the target.
    """
    *slower, (runtime, ladder) = list(ladders.items())
    main, others = [_plain(ladder, runtime, sampler)], [_plain(b, a, sampler) for a, b in slower]
    for method, choice in lineup.best.items():
        if method not in HF:
            grid = _grid(ladder, runtime, sampler, method, lineup.built_on)
            main.append(_noted(grid[choice.setting], f"{_told(choice)} on development prompts"))
    if lineup.precision:
        plain = next(iter(ladders.values())).target.model
        network = as_precise(plain, lineup.precision)
        for method in HF:
            grid = _hugging(ladders, sampler, method, network)
            choice = lineup.best.get(method)
            setting = choice.setting if choice else TOKEN_BY_TOKEN
            note = f"{_told(choice)} on development prompts" if choice else lineup.note
            others.append(_noted(grid[setting], note))
    elif runtime == "int8" and (there := llama_cpp(sampler)):
        others.append(there)
    return main, others


def needed_for(method: str) -> tuple[str, ...]:
    """The methods to tune so that this one can be."""
    return ("tree", method) if method in ON_TREES else (method,)


def _grid(
    ladder: Ladder, runtime: str, sampler: Sampler, method: str, built_on: Sequence[str]
) -> dict[str, Contender]:
    """The contenders of one of our methods, by setting."""
    best = None
    if built_on and method in ON_TREES:
        every = trees(ladder, sampler)
        best = {name: every[name] for name in built_on}
    grid = drafts(ladder, sampler, method, best)
    labels = {"method": method, "runtime": runtime}
    return {n: ours(ladder.target, grid[n], sampler, setting=n, **labels) for n in grid}


def _hugging(
    ladders: Mapping[str, Ladder], sampler: Sampler, method: str, network: object
) -> dict[str, Contender]:
    """The contenders of one of Hugging Face's ways, by setting."""
    draft = as_precise(next(iter(ladders.values())).draft.model, network.dtype)
    return {one.setting: one for one in hugging_contenders(method, network, draft, sampler)}


def _plain(ladder: Ladder, runtime: str, sampler: Sampler) -> Contender:
    [plain] = _grid(ladder, runtime, sampler, AUTOREGRESSIVE, ()).values()
    return plain


def _told(choice: TunedSetting) -> str:
    return f"{choice.ms_per_token:.2f} ms per token, the best of {choice.tried}"


def _noted(contender: Contender, note: str) -> Contender:
    return replace(contender, setting=f"{contender.setting} [{note}]")
