"""`make memory`: many prompts in one process, by two threads on the same models: the memory that it
holds after each tenth, and whether every text is the one that a single thread writes.

First on models of random weights, then on the real ladder. The command fails if a text differs, or
the process holds over 5 % more at the end than in the middle.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from random import Random

import pandas as pd
import psutil
import torch
from tiny import tiny_ladder
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import FirstDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees import TreeDraft
from specdec_lib.workload import DOMAINS, Ladder, load_ladder, load_prompts

THREADS, PARTS, MOST_GROWTH = 2, 10, 1.05
SAMPLERS = (Sampler(), Sampler(1.0, top_k=50))
Task = tuple[tuple[int, ...], Chance]


def tasks(prompts: Iterable[Sequence[int]], count: int) -> list[Task]:
    """So many prompts, and again under other seeds if there are too few."""
    numbered = enumerate(islice(cycle(prompts), count))
    return [(tuple(one)[-200:], Chance(number, SAMPLERS[number % 2])) for number, one in numbered]


def run(ladder: Ladder, tasks: list[Task], tokens: int, label: str) -> pd.DataFrame:
    """A row per tenth of the tasks: megabytes held after it, seconds, and texts that differ from
    those of one thread, which writes every tenth task again.
    """
    draft = FirstDraft((MaxGram(None, 6, least=2), TreeDraft(ladder.draft, budget=6, depth=4)))

    def write(task: Task) -> tuple[int, ...]:
        prompt, chance = task
        limits = {"max_new_tokens": tokens, "stop_tokens": ladder.stop_tokens}
        return decode(ladder.target, draft, prompt, chance, **limits).tokens

    rows, began, process = [], time.monotonic(), psutil.Process()
    size = -(-len(tasks) // PARTS)
    with ThreadPoolExecutor(THREADS) as pool:
        for first in tqdm(range(0, len(tasks), size), desc=label):
            part = tasks[first : first + size]
            texts = list(pool.map(write, part))
            differing = sum(write(part[at]) != texts[at] for at in range(0, len(part), 10))
            row = {"models": label, "prompts": first + len(part), "differ": differing}
            row["seconds"] = round(time.monotonic() - began)
            rows.append(row | {"megabytes": round(process.memory_info().rss / 1e6)})
    return pd.DataFrame(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2])
    parser.add_argument("--random", type=int, default=10_000, help="prompts on random weights")
    parser.add_argument("--real", type=int, default=200, help="prompts on the real ladder")
    parser.add_argument("--max-new-tokens", type=int, default=16)
    given = parser.parse_args()
    torch.set_num_threads(1)
    ladder, draw = tiny_ladder(runtime="fast"), Random(0)
    words = range(ladder.target.vocabulary)
    prompts = [draw.choices(words, k=draw.randint(4, 40)) for _ in range(given.random)]
    found = [run(ladder, tasks(prompts, given.random), given.max_new_tokens, "random")]
    ladder = load_ladder(device="cpu", runtime="fast")
    prompts = [ladder.encode(one) for domain in DOMAINS for one in load_prompts(domain, "all")]
    found.append(run(ladder, tasks(prompts, given.real), given.max_new_tokens, "real"))
    table = pd.concat(found, ignore_index=True)
    print(table.to_string(index=False))
    held = table.groupby("models").megabytes
    growth = held.agg(lambda one: one.iloc[-1] / one.iloc[PARTS // 2])
    print("\nmegabytes at the end ÷ in the middle:", growth.round(3).to_dict())
    return int(table.differ.any() or (growth > MOST_GROWTH).any())


if __name__ == "__main__":
    sys.exit(main())
