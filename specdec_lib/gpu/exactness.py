"""`python -m specdec_lib.gpu.exactness`: whether the embedded models write on this device what they should, into data/measured/exactness_<gpu>.csv.

In float32 every method must write, token for token, what plain decoding writes; a difference fails the command. In bfloat16 a row's numbers depend
on what is computed beside it: counted is how many texts part from plain decoding's, by how many nats the worse of the two tokens lay below the
target's choice where they did, how far the same row's logits move with the way it is computed, and how many differences that does not explain.
"""

import math
from collections.abc import Mapping, Sequence

import torch

from specdec_lib.chance import Chance, Sampler
from specdec_lib.context import Context
from specdec_lib.gpu.contenders import Write, drafts, graphed, looped, shapes
from specdec_lib.gpu.setting import Kept, Row, parser, show, table_path
from specdec_lib.lm import CachedModel
from specdec_lib.runtime.graphs import GraphModel
from specdec_lib.ties import ROUNDING, moved, near_tie
from specdec_lib.workload import Ladder, load_ladder, load_prompts, seeds

SAMPLERS = {"greedy": Sampler(0), "top-k 50": Sampler(1.0, top_k=50)}
KEYS = ("dtype", "sampling", "runtime", "method")
COLUMNS = (*KEYS, "prompts", "tokens", "texts_that_part", "share", "median_margin", "largest_margin", "numeric_noise", "bugs")


def writers(ladder: Ladder, sampler: Sampler, device: str) -> dict[tuple[str, str], Write]:
    """Every method in every runtime; plain decoding by the reference comes first."""
    models = {"reference loop": CachedModel, "graph loop": GraphModel}
    found = {}
    for runtime, kind in models.items():
        target, draft = kind(ladder.target.model, "target"), kind(ladder.draft.model, "draft")
        for method, guesser in drafts(draft, ladder.katz).items():
            found[runtime, method] = looped(target, guesser, sampler, device)
    for method, shape in shapes().items():
        draft_model = ladder.draft.model if shape.guesses else None
        found["whole rounds", method] = graphed(ladder.target.model, draft_model, shape, sampler)
    return found


def measured(ladder: Ladder, sampling: str, prompts: Mapping[int, Sequence[int]], tokens: int, device: str) -> list[Row]:
    """A row per runtime and method.

    prompts    by seed
    """
    sampler, (first, *others) = SAMPLERS[sampling], writers(ladder, SAMPLERS[sampling], device).items()
    right = {seed: first[1](prompt, tokens, seed).tokens for seed, prompt in prompts.items()}
    noise = max(max(moved(ladder.target, Context.of(prompt)).values()) for prompt in prompts.values())
    rows = []
    for (runtime, method), write in others:
        made = {seed: write(prompt, tokens, seed).tokens for seed, prompt in prompts.items()}
        found = [near_tie(ladder.target, prompt, right[seed], made[seed], Chance(seed, sampler)) for seed, prompt in prompts.items()]
        parted = sorted(tie.margin for tie in found if tie is not None)
        rows.append(
            {
                "sampling": sampling,
                "runtime": runtime,
                "method": method,
                "prompts": len(prompts),
                "tokens": len(prompts) * tokens,
                "texts_that_part": len(parted),
                "share": len(parted) / len(prompts),
                "median_margin": parted[len(parted) // 2] if parted else math.nan,
                "largest_margin": max(parted, default=math.nan),
                "numeric_noise": noise,
                "bugs": sum(tie is not None and tie.verdict != ROUNDING for tie in found),
            }
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure what is missing, print the table; exits with 1 if a text parted in float32."""
    options = parser("exactness", __doc__)
    options.add_argument("--dtypes", default="float32,bfloat16")
    options.add_argument("--prompts", type=int, default=16)
    options.add_argument("--tokens", type=int, default=96)
    given = options.parse_args(arguments)
    count, tokens = (1, 6) if given.tiny else (given.prompts, given.tokens)
    torch.backends.cuda.matmul.allow_tf32 = False
    kept = Kept(table_path(given, "exactness"), COLUMNS, KEYS)
    asked = load_prompts("code", "held-out", count)
    for dtype in given.dtypes.split(","):
        ladder = load_ladder(device=given.device, dtype=dtype)
        prompts = {seed: ladder.encode(prompt) for seed, prompt in zip(seeds(asked, 0), asked, strict=True)}
        for sampling in SAMPLERS:
            if not kept.has(dtype=dtype, sampling=sampling):
                kept.add([{"dtype": dtype} | row for row in measured(ladder, sampling, prompts, tokens, given.device)], given.device)
    print(show(kept.rows, COLUMNS))
    wrong = [row for row in kept.rows if row["dtype"] == "float32" and int(row["texts_that_part"])]
    if wrong:
        raise SystemExit(f"in float32 {len(wrong)} methods wrote another text than plain decoding")


if __name__ == "__main__":
    main()
