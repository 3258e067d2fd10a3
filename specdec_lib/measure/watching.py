"""The race to watch: five methods write the same answer, each alone on this machine, and the moment
at which each token was there is kept.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import pandas as pd

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Round
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import FirstDraft, NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.measure.contenders import time_rounds
from specdec_lib.measure.machine import clocked_file, clocked_here, machine_name
from specdec_lib.measure.near_ties import ROUNDING, near_tie
from specdec_lib.measure.options import RACE_TOKENS
from specdec_lib.measure.quiet import watch
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts, copies
from specdec_lib.measure.settings.names import cascade_name, chain_name, tree_name
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.workload import Ladder

PLAIN_LANE = "plain decoding"
CHAIN_LENGTH = 4
TREE_SIZE = (8, 5)  # guesses, and how deep
SCOUTED = 2  # guesses of the n-gram table for the draft model
OWN_GUESSES = 3  # of the model at the head of the cascade
COPIED, LEAST = 8, 2  # tokens of a copy at most, and those that must be equal before it
RECORDED = """method setting number round token source seconds same model request temperature top_k
    seed edition cores date threads machine state""".split()


def watched_settings(ladder: Ladder, sampler: Sampler) -> list[Setting]:
    """The five lanes: plain decoding, and methods of both papers at usual sizes, with the ladder's
    middle model where it has one, else its draft. Nothing is tuned; without an n-gram table there
    is no staged tree.
    """
    drafts = LadderDrafts(ladder, sampler)
    model = "draft" if ladder.middle is None else "middle"
    tree = drafts.tree(*TREE_SIZE, model=model)
    shape = tree_name(model, *TREE_SIZE)
    entries = ((OWN_GUESSES, 0), (0, COPIED))
    chain = drafts.chain(CHAIN_LENGTH, model=model)
    lanes: dict[str, tuple[str, Draft]] = {
        PLAIN_LANE: ("token by token", NoDraft()),
        "chain": (chain_name(model, CHAIN_LENGTH), chain),
    }
    if ladder.katz is not None:
        fed = StagedTree(tree, drafts.scout(SCOUTED), guided=1)
        lanes["staged tree"] = (f"{shape}; n-gram scout of {SCOUTED}", fed)
    cascade = drafts.cascade((model,), entries)
    behind = FirstDraft((copies(COPIED, LEAST), tree), LEAST)
    lanes |= {
        "vertical cascade": (cascade_name((model,), entries), cascade),
        "tree behind copies": (f"copies of up to {COPIED}, else {shape}", behind),
    }
    return [Setting(name, draft, sampler, method=method) for method, (name, draft) in lanes.items()]


def record_race(
    ladder: Ladder,
    request: str,
    sampler: Sampler,
    *,
    seed: int = 0,
    max_new_tokens: int = RACE_TOKENS,
    say: Callable[[str], object] = lambda _: None,
) -> pd.DataFrame:
    """A row per method and token: `number` (from 0), `round`, `token` (its text), `source` (who
    guessed it), `seconds` (from the end of reading the request until the token's round ended) and
    `same` (whether plain decoding has it there too); and what the race was about.

    request    put to the model as a user's turn
    say        is told the name of each method before it runs

    Raises ValueError for a request that the target cannot read, and if a method writes another
    text than plain decoding by more than rounding.
    """
    check_request(request)
    prompt = Context.of(ladder.encode(request))
    chance = Chance(seed, sampler)
    found = []
    plain: tuple[int, ...] = ()
    for setting in watched_settings(ladder, sampler):
        say(setting.method)
        watched = watch(partial(_timed, ladder, setting, prompt, chance, max_new_tokens))
        tokens = tuple(token for _, one in watched.found for token in one.emitted)
        plain = plain or tokens
        same = _equal(ladder, prompt, plain, tokens, chance, setting.method)
        table = _token_rows(watched.found, ladder)
        table = table.assign(method=setting.method, setting=setting.name, cores=watched.cores)
        found.append(table.assign(same=same))
    model = ladder.card.get("target", ladder.target.name)
    about = {"model": model, "request": request, "seed": seed, "date": time.strftime("%Y-%m-%d")}
    about |= {"temperature": sampler.temperature, "top_k": sampler.top_k or 0}
    about["edition"] = getattr(ladder.target, "edition", "exact")
    network = getattr(ladder.target, "model", None)
    about |= {**clocked_here(), "machine": machine_name(str(getattr(network, "device", "cpu")))}
    return pd.concat(found, ignore_index=True).assign(**about)[RECORDED]


def check_request(request: str) -> None:
    """Raise ValueError for a request that is empty."""
    if not request.strip():
        raise ValueError("a race needs a request to answer, got an empty one")


def _timed(
    ladder: Ladder, setting: Setting, prompt: Context, chance: Chance, most: int
) -> list[tuple[float, Round]]:
    """Each round of one method, with the seconds after which it ended; the method has run once
    before, for the first passes of a shape set things up.
    """
    asked = (ladder.target, setting.draft, prompt.tokens, chance)
    run: dict[str, Any] = {"max_new_tokens": most, "stop_tokens": ladder.stop_tokens}
    time_rounds(*asked, **run)
    done, _ = time_rounds(*asked, **run)
    return [*zip(accumulate(one.seconds for one in done), done, strict=True)]


def _token_rows(played: Sequence[tuple[float, Round]], ladder: Ladder) -> pd.DataFrame:
    """A row per token of some rounds, each of which ended after so many seconds."""
    rows = [
        (number, ladder.text(token), source, seconds)
        for number, (seconds, one) in enumerate(played)
        for token, source in zip(one.emitted, one.sources, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["round", "token", "source", "seconds"])
    return table.assign(number=range(len(table)))


def _equal(
    ladder: Ladder,
    prompt: Context,
    plain: Sequence[int],
    tokens: Sequence[int],
    chance: Chance,
    method: str,
) -> list[bool]:
    """Per token whether the text is still that of plain decoding; rounding alone may part them."""
    tie = near_tie(ladder.target, prompt.tokens, plain, tokens, chance)
    if tie is None:
        return [True] * len(tokens)
    if tie.verdict != ROUNDING:
        raise ValueError(f"{method} does not write what the target does: {tie.report(ladder.text)}")
    return [number < tie.place for number in range(len(tokens))]


def race_speeds(recording: pd.DataFrame) -> pd.DataFrame:
    """A row per method of a recorded race, in its order: tokens, rounds, seconds,
    `tokens_per_second`, `ratio` (its speed ÷ plain decoding's) and `same` (whether its text is
    plain decoding's to the end).
    """
    methods = recording.groupby("method", sort=False)
    found = methods.agg(
        setting=("setting", "first"),
        tokens=("token", "size"),
        rounds=("round", "nunique"),
        seconds=("seconds", "max"),
        same=("same", "all"),
    ).reset_index()
    found["tokens_per_second"] = found["tokens"] / found["seconds"]
    plain = found.set_index("method")["tokens_per_second"][PLAIN_LANE]
    return found.assign(ratio=found["tokens_per_second"] / plain)


def stored_watched(machine: str = "") -> pd.DataFrame:
    """The recorded race of a machine, "" being the README's; ValueError if there is none."""
    place = clocked_file("watched", machine or RACED)
    if not place.is_file():
        raise ValueError(f"no recorded race is stored in {place}; `specdec watch` records one")
    texts = {"token": str, "request": str}
    return pd.read_csv(place, dtype=texts, keep_default_na=False)
