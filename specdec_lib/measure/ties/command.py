"""`specdec ties`: compares greedy texts of a model written in three ways, and says whether rounding
or a bug parts them. Exits with 1 if a difference is not rounding.
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


def greedy_texts(
    ladder: Ladder, prompt: tuple[int, ...], tokens: int
) -> dict[str, tuple[int, ...]]:
    """The target's greedy text by way: plain decoding, speculative decoding with a tree of 16
    guesses, and `generate` of Hugging Face.
    """
    drafts = {"plain": NoDraft(), "speculative": TreeDraft(ladder.draft, budget=16)}
    found = {
        name: decode(ladder.target, draft, prompt, Chance(0), max_new_tokens=tokens).tokens
        for name, draft in drafts.items()
    }
    model = ladder.target.model
    given = torch.tensor([prompt], device=model.device)
    options = {
        "attention_mask": torch.ones_like(given),
        "do_sample": False,
        "max_new_tokens": tokens,
        "eos_token_id": None,
        "pad_token_id": 0,
    }
    with neutral(ladder):
        made = model.generate(given, **options)
    return found | {"generate": tuple(made[0, len(prompt) :].tolist())}


def reports(ladder: Ladder, prompt: Prompt, tokens: int) -> Iterator[tuple[str, str]]:
    """The verdict and the report for each way of writing that is not plain decoding; "equal" is a
    verdict here.

    Raises ValueError if the prompt with so many more tokens does not fit the target.
    """
    given = ladder.encode(prompt)
    if tokens < 1 or len(given) + tokens > ladder.target.max_positions:
        raise ValueError(
            f"--max-new-tokens is 1 to {ladder.target.max_positions - len(given)} after the prompt"
            f" {prompt.name}, got {tokens}"
        )
    texts = greedy_texts(ladder, given, tokens)
    for way in ("speculative", "generate"):
        tie = near_tie(ladder.target, given, texts["plain"], texts[way])
        verdict, report = (tie.verdict, tie.report(ladder.text)) if tie else (EQUAL, EQUAL)
        yield verdict, f"{prompt.name}, plain against {way}: {report}"


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, compare the texts, print every difference."""
    given = _parser().parse_args(arguments)
    verdicts = []
    split = "held-out" if given.prompts in DOMAINS else WHOLE
    prompts = load_prompts(given.prompts, split, given.limit)
    options = {"tokenizer": given.tokenizer, "device": given.device, "dtype": given.dtype}
    ladder = load_ladder(given.target, given.draft, **options)
    for prompt in prompts:
        for verdict, report in reports(ladder, prompt, given.max_new_tokens):
            verdicts.append(verdict)
            print(report)
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (EQUAL, *VERDICTS)))
    if BUG in verdicts or EARLY in verdicts:  # all ways write as many tokens
        raise SystemExit(1)


def _parser() -> Parser:
    parser = Parser("ties", __doc__.partition(": ")[2])
    parser.add_argument("--target", help="folder or hub name; default: the embedded target")
    parser.add_argument("--draft", help="folder or hub name; default: the embedded draft")
    parser.add_argument("--tokenizer", help="folder or hub name, where the target's has none")
    parser.add_argument("--dtype", default="bfloat16", choices=DTYPES)
    parser.add_argument("--device", default="auto")
    for name, default in {"--prompts": "code", "--limit": 8, "--max-new-tokens": 64}.items():
        parser.add_common(name, default)
    return parser
