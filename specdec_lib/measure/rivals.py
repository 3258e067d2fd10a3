"""What a user would pick instead, by the clock: Hugging Face's ways of generating, each at the
setting that is fastest on development prompts, beside plain decoding on the compiled runtime.

A table that is half finished goes on: rows of the same code and drafts are not timed again.
"""

import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import torch
import transformers
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import cache_folder
from specdec_lib.measure.contenders import Contender, hugging_contenders, our_contenders
from specdec_lib.measure.fingerprints import short_digest
from specdec_lib.measure.machine import HERE, clocked_file, clocked_here
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import sampling_of
from specdec_lib.measure.row_cache import Row, RowCache, records
from specdec_lib.measure.settings.bench import bench_settings
from specdec_lib.measure.settings.ladder_drafts import racing_ladder
from specdec_lib.measure.settings.names import ASSIST, AUTOREGRESSIVE, GENERATE, HF, LOOKUP
from specdec_lib.measure.settings.setting import GREEDY, TOP_50
from specdec_lib.measure.target_text import every_domain, write_text
from specdec_lib.measure.tuned_methods import calibrate, in_precision, tune_contenders
from specdec_lib.workload import Ladder, Prompt, load_ladder

SAMPLERS = (GREEDY, TOP_50)
TUNING = 64  # new tokens of a development prompt, at most
STAGES = (1, 1)  # development prompts that each stage of the tuning adds
COLUMNS = """temperature top_k domain prompt method runtime setting tokens timed_tokens rounds
    seconds repetition cores date max_new_tokens threads state machine versions""".split()
WHO = ["method", "setting", "runtime"]
SAME = ["max_new_tokens", "threads", "state", "machine", "versions"]


def rivals_file(machine: str = HERE, *, published: bool = False) -> Path:
    """Where the race of a machine is stored; published prompts are not in the repository."""
    return clocked_file(f"rivals{'_published' if published else ''}", machine)


def race_rivals(
    place: Path | None, prompts: Sequence[Prompt], quiet: Quiet, *, tokens: int = 128, seed: int = 0
) -> pd.DataFrame:
    """What the table at a place is to be: what it holds of today's state, with these prompts raced
    that it lacks. A row per sampler, prompt, method and setting.

    tokens    new ones per prompt, at most
    """
    quiet.check()
    versions = f"python {platform.python_version()}, torch {torch.__version__}"
    versions += f", transformers {transformers.__version__}"
    same = {"max_new_tokens": tokens, **clocked_here(), "versions": versions}
    known = pd.DataFrame(columns=COLUMNS)
    if place is not None and place.is_file():
        known = pd.read_csv(place)
    for name in SAME:
        known = known[known[name] == same[name]]
    ladder = racing_ladder("exact")
    reference = load_ladder(device="cpu", runtime="reference")
    found = [known]
    for sampler in SAMPLERS:
        folder = cache_folder() / "rivals" / short_digest(repr((same, seed, sampler, quiet)))
        before = known[known.temperature == sampler.temperature]
        chosen = records(before[before.method.isin(HF)][WHO].drop_duplicates())
        if not chosen:
            tuned = partial(_tuned, ladder, reference, sampler, seed, quiet)
            chosen = RowCache(folder).rows("chosen", tuned)
        racing = _contenders(ladder, reference, sampler, chosen)
        due = [prompt for prompt in prompts if prompt.name not in set(before.prompt)]
        bar = tqdm(due, sampling_of(sampler.temperature, sampler.top_k), mininterval=1)
        limits = {"tokens": tokens, "seed": seed, "folder": folder, "quiet": quiet}
        raced = race_prompts(racing, ladder, bar, **limits)
        rows = [vars(trial) for trials in raced for trial in trials]
        about = {"temperature": sampler.temperature, "top_k": sampler.top_k or 0, **same}
        new = pd.DataFrame(rows, columns=None if rows else COLUMNS).assign(**about)
        new["domain"] = new.prompt.map({prompt.name: prompt.domain for prompt in due})
        found.append(new[COLUMNS])
    return pd.concat([one for one in found if len(one)] or [known], ignore_index=True)


def _tuned(
    ladder: Ladder, reference: Ladder, sampler: Sampler, seed: int, quiet: Quiet
) -> list[Row]:
    """The fastest precision of Hugging Face's ways, and the fastest setting of each: a row each."""
    prompts = every_domain("development", 1)[: sum(STAGES)]
    write = partial(write_text, ladder, sampler=sampler, seed=seed, max_new_tokens=TUNING)
    texts = [write(prompt) for prompt in prompts]
    options = {"texts": texts, "target": ladder.target, "stages": STAGES, "seed": seed}
    options["quiet"] = quiet
    tune = partial(tune_contenders, **options)
    precision, note = calibrate(reference.target.model, sampler, tune)
    print(f"  Hugging Face in {precision}: {note}", flush=True)
    target, draft = _networks(reference, precision)
    every = hugging_contenders(GENERATE, target, draft, sampler)
    for method in (ASSIST, LOOKUP):
        best, milliseconds = tune(hugging_contenders(method, target, draft, sampler))[0]
        print(f"  {method}: {best.setting}: {milliseconds:.2f} ms per token", flush=True)
        every.append(best)
    return [{name: getattr(one, name) for name in WHO} for one in every]


def _contenders(
    ladder: Ladder, reference: Ladder, sampler: Sampler, chosen: Sequence[Row]
) -> list[Contender]:
    """Plain decoding on the compiled runtime, and Hugging Face's ways at these settings."""
    plain = bench_settings(ladder, sampler, AUTOREGRESSIVE)
    found = our_contenders(ladder.target, plain, ladder.target.runtime)
    precision = str(chosen[0]["runtime"]).split()[-1]
    target, draft = _networks(reference, precision)
    for method in (GENERATE, ASSIST, LOOKUP):
        every = hugging_contenders(method, target, draft, sampler)
        names = {one["setting"] for one in chosen if one["method"] == method}
        found += [one for one in every if one.setting in names]
    return found


def _networks(reference: Ladder, precision: str) -> list[PreTrainedModel]:
    """The target and the one-layer draft of Hugging Face's ways in a number format."""
    return [in_precision(one.model, precision) for one in (reference.target, reference.draft)]
