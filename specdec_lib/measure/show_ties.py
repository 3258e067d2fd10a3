"""`specdec ties`: compares greedy texts of a model written in three ways, and says whether rounding
or a bug parts them. Exits with 1 if a difference is not rounding.
"""

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.compare.command import add_models, load_given
from specdec_lib.measure.race.contenders import GENERATE, hugging_contenders
from specdec_lib.measure.ties import BUG, EARLY, VERDICTS, near_tie
from specdec_lib.workload import Ladder, neutral

EQUAL = "equal"


def greedy_texts(
    ladder: Ladder, prompt: tuple[int, ...], tokens: int
) -> dict[str, tuple[int, ...]]:
    """The target's text by plain and speculative decoding, and by `generate` of Hugging Face."""
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
    parser = Parser("ties", __doc__.partition(": ")[2])
    add_models(parser, "bfloat16", limit=8, max_new_tokens=64)
    given = parser.parse_args(arguments)
    verdicts, tokens = [], given.max_new_tokens
    prompts, ladder = load_given(given)
    for prompt in prompts:
        context = ladder.encode(prompt)
        if tokens > (most := ladder.target.max_positions - len(context)):
            after = f"after the prompt {prompt.name}, got {tokens}"
            raise ValueError(f"--max-new-tokens is 1 to {most} {after}")
        texts = greedy_texts(ladder, context, tokens)
        for way in ("speculative", "generate"):
            tie = near_tie(ladder.target, context, texts["plain"], texts[way])
            verdicts.append(tie.verdict if tie else EQUAL)
            report = tie.report(ladder.text) if tie else EQUAL
            print(f"{prompt.name}, plain against {way}: {report}")
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (EQUAL, *VERDICTS)))
    if BUG in verdicts or EARLY in verdicts:  # all ways write as many tokens
        raise SystemExit(1)
