"""`specdec ties`: compares greedy texts of a model written in three ways, and says whether rounding
or a bug parts them. Exits with 1 if a difference is not rounding.
"""

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.race.hugging import GENERATE, hugging_contenders
from specdec_lib.measure.ties.near_ties import BUG, EARLY, VERDICTS, near_tie
from specdec_lib.models.loading import DTYPES
from specdec_lib.workload import DOMAINS, WHOLE, Ladder, load_ladder, load_prompts, neutral

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
    with neutral(ladder):
        [generate] = hugging_contenders(GENERATE, model, model, Sampler(0))
        return found | {"generate": generate.run(prompt, tokens, 0).tokens}


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, compare the texts, print every difference."""
    given = _parser().parse_args(arguments)
    verdicts, tokens = [], given.max_new_tokens
    split = "held-out" if given.prompts in DOMAINS else WHOLE
    prompts = load_prompts(given.prompts, split, given.limit)
    options = {"tokenizer": given.tokenizer, "device": given.device, "dtype": given.dtype}
    ladder = load_ladder(given.target, given.draft, **options)
    for prompt in prompts:
        context = ladder.encode(prompt)
        most = ladder.target.max_positions - len(context)
        if not 1 <= tokens <= most:
            raise ValueError(
                f"--max-new-tokens is 1 to {most} after the prompt {prompt.name}, got {tokens}"
            )
        texts = greedy_texts(ladder, context, tokens)
        for way in ("speculative", "generate"):
            tie = near_tie(ladder.target, context, texts["plain"], texts[way])
            verdicts.append(tie.verdict if tie else EQUAL)
            report = tie.report(ladder.text) if tie else EQUAL
            print(f"{prompt.name}, plain against {way}: {report}")
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (EQUAL, *VERDICTS)))
    if BUG in verdicts or EARLY in verdicts:  # all ways write as many tokens
        raise SystemExit(1)


def _parser() -> Parser:
    parser = Parser("ties", __doc__.partition(": ")[2])
    add = parser.add_argument
    add("--target", help="folder or hub name; default: the embedded target")
    add("--draft", help="folder or hub name; default: the embedded draft")
    add("--tokenizer", help="folder or hub name, where the target's has none")
    add("--dtype", default="bfloat16", choices=DTYPES)
    add("--device", default="auto")
    for name, default in {"--prompts": "chat", "--limit": 8, "--max-new-tokens": 64}.items():
        parser.add_common(name, default)
    return parser
