"""The fastest of many candidates for each method of the race of ideas, by the clock, on development
prompts.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.contenders import our_contenders
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.racing import WARM_UP, race
from specdec_lib.measure.row_cache import Row
from specdec_lib.measure.settings.ideas import METHODS, Candidate
from specdec_lib.measure.target_text import TargetText, every_domain, write_text
from specdec_lib.workload import DOMAINS, Ladder

STAGES = (2, 4)  # development prompts that each stage adds
TUNING = 64  # new tokens per development prompt, at most
KEPT = 1 / 3  # of the candidates, from stage to stage


def candidate_names(candidates: Mapping[str, list[Candidate]]) -> dict[str, list[str]]:
    """By method the names of its candidates."""
    found: dict[str, list[str]] = {}
    for candidate in chain.from_iterable(candidates.values()):
        for method, one in candidate.items():
            found.setdefault(method, []).append(one.name)
    return found


def all_among(candidates: Mapping[str, list[Candidate]], chosen: Mapping[str, str]) -> bool:
    """Whether a setting is chosen for every method, and is still a candidate."""
    names = candidate_names(candidates)
    return all(chosen.get(method) in names[method] for method in METHODS)


def tuned_settings(
    ladder: Ladder,
    sampler: Sampler,
    candidates: Mapping[str, list[Candidate]],
    quiet: Quiet,
    *,
    tokens: int,
    seed: int,
) -> list[Row]:
    """One row, with the name of each method's fastest setting: on development prompts of every
    domain in turn, of so many new `tokens` at most.
    """
    prompts = [
        one
        for number in range(math.ceil(sum(STAGES) / len(DOMAINS)) + 1)
        for one in every_domain("development", number + 1)[number :: number + 1]
    ]
    write = partial(write_text, ladder, sampler=sampler, seed=seed)
    texts = [write(prompt, max_new_tokens=min(TUNING, tokens)) for prompt in prompts]
    texts.sort(key=lambda text: text.loops)
    found = {}
    for group, grid in candidates.items():
        best = grid[0] if len(grid) == 1 else fastest(ladder, grid, texts, seed, quiet)
        found |= {method: one.name for method, one in best.items()}
        print(
            f"  {group}: {', '.join(dict.fromkeys(one.name for one in best.values()))}", flush=True
        )
    return [found]


def fastest(
    ladder: Ladder,
    grid: Sequence[Candidate],
    texts: Sequence[TargetText],
    seed: int,
    quiet: Quiet,
) -> Candidate:
    """The candidate whose methods together need the fewest seconds: all race on a few texts, the
    better ones on more.
    """
    left = list(grid)
    seconds: dict[tuple[str, str], float] = {}
    used = 0
    for added in STAGES:
        settings = {(method, s.name): s for one in left for method, s in one.items()}
        racing = our_contenders(ladder.target, [*settings.values()], ladder.target.runtime)
        for one in racing:
            one.run(texts[0].prompt_tokens, WARM_UP, seed)
        for text in texts[used : used + added]:
            raced = race(racing, text, ladder.target, seed=seed, quiet=quiet)
            for key, trial in zip(settings, raced, strict=True):
                seconds[key] = seconds.get(key, 0.0) + (trial.seconds or 0.0)
        used += added
        left.sort(key=lambda one: sum(seconds[method, s.name] for method, s in one.items()))
        left = left[: max(2, math.ceil(KEPT * len(left)))]
    return left[0]
