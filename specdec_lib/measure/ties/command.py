"""`specdec ties`: greedy texts of a model written in three ways, and where
they part: rounding, or a bug?
"""

from collections.abc import Iterator

import torch

from specdec_lib.core.chance import Chance
from specdec_lib.core.commandline import Parser
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.ties.near_ties import BUG, EARLY, VERDICTS, near_tie
from specdec_lib.models.loading import DTYPES
from specdec_lib.workload import DOMAINS, WHOLE, Ladder, Prompt, load_ladder, load_prompts, neutral

EQUAL = "equal"  # said of texts


def written(ladder: Ladder, prompt: tuple[int, ...], tokens: int) -> dict[str, tuple[int, ...]]:
    """The target's greedy text by way: plain decoding, speculative decoding with a tree of 16
    guesses, and `generate` of Hugging Face.
    """
    model, drafts = (
        ladder.target.model,
        {"plain": NoDraft(), "speculative": TreeDraft(ladder.draft, budget=16)},
    )
    found = {
        name: decode(ladder.target, draft, prompt, Chance(0), max_new_tokens=tokens).tokens
        for name, draft in drafts.items()
    }
    given = torch.tensor([prompt], device=model.device)
    options = {
        "attention_mask": torch.ones_like(given),
        "do_sample": False,
        "max_new_tokens": tokens,
        "eos_token_id": None,
        "pad_token_id": 0,
    }
    with neutral(ladder):
        return found | {
            "generate": tuple(model.generate(given, **options)[0, len(prompt) :].tolist())
        }


def compared(ladder: Ladder, asked: Prompt, tokens: int) -> Iterator[tuple[str, str]]:
    """The verdict and the report for each way of writing that is not plain decoding; "equal" is a
    verdict here.

    Raises ValueError if the prompt with so many more tokens does not fit the target.
    """
    prompt = ladder.encode(asked)
    if tokens < 1 or len(prompt) + tokens > ladder.target.max_positions:
        raise ValueError(
            f"--max-new-tokens is 1 to {ladder.target.max_positions - len(prompt)} after the prompt"
            f" {asked.name}, got {tokens}"
        )
    texts = written(ladder, prompt, tokens)
    for way in ("speculative", "generate"):
        tie = near_tie(ladder.target, prompt, texts["plain"], texts[way])
        verdict, said = (EQUAL, EQUAL) if tie is None else (tie.verdict, tie.report(ladder.text))
        yield verdict, f"{asked.name}, plain against {way}: {said}"


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, compare the texts, print every difference; exits with 1 if one is not
    rounding, 2 if it cannot do what it is asked.
    """
    parser = Parser("ties", "Where greedy texts part: rounding, or a bug?")
    parser.add_argument("--target", help="folder or hub name; default: the embedded target")
    parser.add_argument("--draft", help="folder or hub name; default: the embedded draft")
    parser.add_argument("--tokenizer", help="folder or hub name, where the target's has none")
    parser.add_argument("--dtype", default="bfloat16", choices=DTYPES)
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--prompts",
        default="code",
        help="code, math, prose, humaneval, gsm8k, mmlu, spec-bench, or a file: FILE.jsonl",
    )
    parser.add_argument(
        "--limit", type=int, default=8, help="the first so many prompts (default: 8)"
    )
    parser.add_argument("--max-new-tokens", type=int, default=64, help="per prompt (default: 64)")
    given = parser.parse_args(arguments)
    verdicts = []
    prompts = load_prompts(
        given.prompts, "held-out" if given.prompts in DOMAINS else WHOLE, given.limit
    )
    ladder = load_ladder(
        given.target,
        given.draft,
        tokenizer=given.tokenizer,
        device=given.device,
        dtype=given.dtype,
    )
    for asked in prompts:
        for verdict, report in compared(ladder, asked, given.max_new_tokens):
            verdicts.append(verdict)
            print(report)
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (EQUAL, *VERDICTS)))
    if BUG in verdicts or EARLY in verdicts:  # all ways write as many tokens
        raise SystemExit(1)
