"""How long one Max-Gram proposal takes: `python tests/max_gram_speed.py` prints microseconds by
kind of text and way of asking.

One thread's CPU time; each line is one text of which half is the prompt and the other half is
generated. Building the contexts is not timed, reading them is: the prompt is read at the first call
(shown apart), then every call reads the tokens that are new to it.
"""

import argparse
import random
import time
from collections.abc import Iterator
from statistics import median, quantiles

import numpy as np

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.models.tokenizers import load_tokenizer
from specdec_lib.workload import load_prompts
from specdec_lib.workload.ladder_files import target_folder

VOCABULARY = 49_152


def texts(size: int) -> dict[str, list[int]]:
    """One text of each kind, `size` tokens long."""
    chosen = random.Random(0)
    tokenizer, prompts = load_tokenizer(target_folder()), load_prompts("code", "development")
    code = tokenizer.encode("\n".join(prompt.text for prompt in prompts))
    phrase = [chosen.randrange(VOCABULARY) for _ in range(50)]
    fibonacci = ([0], [0, 1])
    while len(fibonacci[1]) < size:
        fibonacci = fibonacci[1], fibonacci[1] + fibonacci[0]
    return {
        "code": (code * (size // len(code) + 1))[:size],
        "Zipf noise": (
            np.minimum(np.random.default_rng(0).zipf(1.3, size), VOCABULARY) - 1
        ).tolist(),
        "coin flips": [chosen.randrange(2) for _ in range(size)],
        "a phrase of 50, repeated": (phrase * size)[:size],
        "one token": [7] * size,
        "Fibonacci word": fibonacci[1][:size],
        "all different": list(range(size)),
    }


def growing(text: list[int]) -> Iterator[Context]:
    """The prompt, then 1 to 5 more tokens from call to call."""
    chosen, context = random.Random(1), Context.of(text[: len(text) // 2])
    while len(context) < len(text):
        yield context
        context = context.extended(text[len(context) : len(context) + chosen.randint(1, 5)])


def branching(text: list[int]) -> Iterator[Context]:
    """The same, and from each context 4 guesses that the text does not hold, then 4 others, then
    the first 2 of these.
    """
    for context in growing(text):
        yield context
        for guesses in ([5, 6, 7, 8], [9, 8, 7, 6], [9, 8]):
            yield context.extended(guesses)


def alternating(text: list[int]) -> Iterator[Context]:
    """The same text and its mirror image, in turn."""
    for pair in zip(growing(text), growing(text[::-1]), strict=False):
        yield from pair


def seconds(draft: MaxGram, contexts: Iterator[Context]) -> list[float]:
    """Of each proposal."""
    taken, chance = [], Chance(0)
    for context in contexts:
        started = time.thread_time()
        draft.propose(context, chance)
        taken.append(time.thread_time() - started)
    return taken


def main() -> None:
    """Time every text in every way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=4096)
    given = parser.parse_args()
    table = np.arange(VOCABULARY)[::-1].copy()
    print(
        f"{'text':26}{'asked':13}{'window':>7}{'calls':>7}{'first ms':>10}"
        f"{'mean µs':>9}{'median':>8}{'99 %':>8}{'slowest':>9}"
    )
    for name, text in texts(given.tokens).items():
        for way in (growing, branching, alternating):
            for window in (None, 16):
                first, *rest = seconds(MaxGram(table, window=window), way(text))
                rest = rest[1:] if way is alternating else rest
                numbers = [
                    1e6 * value
                    for value in (
                        sum(rest) / len(rest),
                        median(rest),
                        quantiles(rest, n=100)[98],
                        max(rest),
                    )
                ]
                shown = "".join(
                    f"{number:{width}.0f}"
                    for number, width in zip(numbers, (9, 8, 8, 9), strict=True)
                )
                print(
                    f"{name:26}{way.__name__:13}{window or '-':>7}{len(rest):7}"
                    f"{1e3 * first:10.1f}{shown}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
