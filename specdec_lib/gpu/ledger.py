"""`python -m specdec_lib.gpu.ledger`: where the seconds of a round go on this device, into data/measured/ledger_<gpu>.csv.

Whole rounds, each part a graph of its own, the device asked for the time after each; the same rounds as one graph beside it, which is how they are
played; and our loop over graph models, staged drafts included, under the stopwatch of the latency package. Models have GPT-2 large's shape and 40
million weights, random ones unless checkpoints are given: a pass takes as long whatever the weights are, the number of accepted guesses does not.
"""

import time
from collections.abc import Mapping, Sequence

import numpy as np
from transformers import GPT2LMHeadModel

from specdec_lib.chance import Chance, Sampler
from specdec_lib.gpu.contenders import drafts, graphed, shapes
from specdec_lib.gpu.setting import Kept, Row, parser, random_model, recipe, show, table_path, wait
from specdec_lib.gpu.training import katz_path, trained
from specdec_lib.latency.ledger import run
from specdec_lib.latency.wrapping import Stopwatch, watched, watched_chance, watched_rule
from specdec_lib.ngram import Katz
from specdec_lib.runtime.graphs import GraphModel
from specdec_lib.runtime.rounds import GraphRounds
from specdec_lib.theory import Shape
from specdec_lib.verify import look_up

SAMPLERS = {"greedy": Sampler(0), "top-k 50": Sampler(1.0, top_k=50)}
KEYS = ("runtime", "method", "sampling", "part")
COLUMNS = (*KEYS, "round_seconds", "share", "rounds", "tokens_per_round", "wall_seconds", "plain_wall_seconds")
HOST = "host and synchronisation"


class Parts:
    """Seconds per part of whole rounds: after each part the device is waited for."""

    def __init__(self, device: str) -> None:
        self.device, self.seconds = device, {}
        self.since = time.perf_counter()

    def start(self) -> None:
        """From now on time counts."""
        wait(self.device)
        self.seconds, self.since = {}, time.perf_counter()

    def __call__(self, part: str) -> None:
        wait(self.device)
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self.since
        self.since = now

    def close(self, wall: float) -> dict[str, float]:
        """All parts and what the host did between them."""
        return self.seconds | {HOST: wall - sum(self.seconds.values())}


def in_whole_rounds(models: Mapping[str, GPT2LMHeadModel], shape: Shape, sampler: Sampler, prompt: Sequence[int], tokens: int) -> Row:
    """Seconds by part, and of the whole with and without looking."""
    device = str(models["target"].device)
    draft, watch = models["draft"] if shape.guesses else None, Parts(device)
    plain = graphed(models["target"], draft, shape, sampler)
    rounds = GraphRounds(models["target"], draft, shape, sampler, watch=watch)
    for warm in (True, False):
        written = plain(prompt, tokens, 0)
        playing = rounds.rounds(prompt, 0, max_new_tokens=tokens)
        watch.start()
        started, made = time.perf_counter(), []
        for emitted in playing:
            made.append(emitted)
            watch.since = time.perf_counter()
        wall = time.perf_counter() - started
        if warm:
            continue
        return {"seconds": watch.close(wall), "rounds": len(made), "tokens": tokens, "wall": wall, "plain": written.seconds}


def in_the_loop(models: Mapping[str, GPT2LMHeadModel], katz: Katz, sampler: Sampler, prompt: Sequence[int], tokens: int) -> dict[str, Row]:
    """The same for every method in our loop."""
    target, draft = (GraphModel(models[name], name) for name in ("target", "draft"))
    settings = {"max_new_tokens": tokens, "stop_tokens": (), "clock": time.perf_counter}
    found = {}
    for method, guesser in drafts(draft, katz).items():
        chance = Chance(0, sampler)
        run(target, guesser, prompt, chance, rule=look_up, **settings)
        plain = run(target, guesser, prompt, chance, rule=look_up, **settings)[2]
        watch = Stopwatch()
        timed = {"rule": watched_rule(look_up, watch), "watch": watch}
        made, played, wall, lap = run(*watched(target, guesser, watch), prompt, watched_chance(chance, watch), **settings | timed)
        seconds: dict[str, float] = {}
        for (part, _), spent in lap.seconds.items():
            seconds[part] = seconds.get(part, 0.0) + spent
        found[method] = {"seconds": seconds, "rounds": played, "tokens": made, "wall": wall, "plain": plain}
    return found


def table_for(draft: str, checkpoints: str | None, vocabulary: int) -> Katz:
    """The n-gram table that the headline counted, or one of a made-up text."""
    path = katz_path(checkpoints, draft) if checkpoints else None
    if path is not None and path.is_file():
        return Katz.load(path)
    return Katz.fit([np.arange(4000) % 97], vocabulary)


def rows(runtime: str, method: str, sampling: str, found: Row) -> list[Row]:
    """A row per part."""
    whole = {"rounds": found["rounds"], "tokens_per_round": found["tokens"] / found["rounds"]}
    whole |= {"wall_seconds": found["wall"], "plain_wall_seconds": found["plain"]}
    labels = {"runtime": runtime, "method": method, "sampling": sampling}
    return [
        labels | {"part": part, "round_seconds": seconds / found["rounds"], "share": seconds / found["wall"]} | whole
        for part, seconds in found["seconds"].items()
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure what is missing, and print the table."""
    options = parser("ledger", __doc__)
    options.add_argument("--dtype", default="bfloat16")
    options.add_argument("--tokens", type=int, default=128)
    options.add_argument("--checkpoints", help="folder of `specdec_lib.gpu.training`; without it weights are random")
    options.add_argument("--draft", default="draft of 2 layers")
    given = options.parse_args(arguments)
    tokens, positions = (5, 64) if given.tiny else (given.tokens, 1024)
    models = {}
    for role, name in (("target", "target"), ("draft", given.draft)):
        shape = recipe(name, tiny=given.tiny, positions=positions)
        random = given.checkpoints is None
        models[role] = random_model(shape, given.device, given.dtype) if random else trained(given.checkpoints, name, given.device, given.dtype)
    katz = table_for(given.draft, given.checkpoints, models["draft"].config.vocab_size)
    prompt = tuple(range(1, 9 if given.tiny else 65))
    kept = Kept(table_path(given, "ledger"), COLUMNS, KEYS)
    for sampling, sampler in SAMPLERS.items():
        if not kept.has(sampling=sampling):
            for method, shape in shapes().items():
                found = in_whole_rounds(models, shape, sampler, prompt, tokens)
                kept.add(rows("whole rounds", method, sampling, found), given.device)
            for method, found in in_the_loop(models, katz, sampler, prompt, tokens).items():
                kept.add(rows("graph loop", method, sampling, found), given.device)
    print(show(kept.rows, ("runtime", "method", "sampling", "part", "round_seconds", "share")))


if __name__ == "__main__":
    main()
