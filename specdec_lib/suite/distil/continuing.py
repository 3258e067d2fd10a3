"""`specdec distil continue`: a draft continues stored answers, and the target judges its words.

A draft that has learnt from the target's own text alone meets, from its second guess on, contexts
that it wrote itself. Lessons on its continuations are about those (Agarwal et al. 2024,
"On-policy distillation").
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, write_whole
from specdec_lib.models.batched import BatchedPasses, draw
from specdec_lib.models.students import assemble
from specdec_lib.suite.distil.lessons import add_sources, read_head, teach
from specdec_lib.suite.distil.text import Conversation, list_shards, pack, read_text
from specdec_lib.suite.setup import load_target

CONTINUED_TOKENS = 16  # about as far as a draft guesses ahead
SEQUENCES = 64


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the continuations, unless they are there, and the lessons on them."""
    parser = Parser("distil continue", "let a draft continue answers, and teach it on those")
    parser.add_argument("draft", type=Path, help="the file that `specdec distil train` wrote")
    add_sources(parser)
    parser.add_common("--limit", None, "answers, drawn at random (default: all)")
    parser.add_common("--seed", 0)
    parser.add_common("--out", cache_folder() / "continued")
    given = parser.parse_args(arguments)
    target, texts, head = load_target(), read_text(given.text), read_head(given.lessons)
    if not list_shards(given.out):
        chosen = Random(given.seed).sample(texts, min(given.limit or len(texts), len(texts)))
        student = assemble(target, given.draft)
        continued = list(continue_answers(student, chosen, head, seed=given.seed))
        write_whole(given.out / "000.safetensors", pack(continued))
    teach(target, read_text(given.out), head, given.out / "lessons")


def continue_answers(
    student: LlamaForCausalLM,
    conversations: Sequence[Conversation],
    head: Sequence[int],
    *,
    seed: int,
) -> Iterator[Conversation]:
    """Each conversation up to a random place of its answer, and what the student writes from there.

    What the student wrote counts as the answer. It is greedy where the answer was.
    """
    random, generator = Random(seed), torch.Generator().manual_seed(seed)
    cuts = [one.start + random.randrange(one.answer_tokens) for one in conversations]
    begun = sorted(zip(cuts, conversations, strict=True), key=lambda one: one[0])
    for first in range(0, len(begun), SEQUENCES):
        some = begun[first : first + SEQUENCES]
        texts = [one.ids[:cut] for cut, one in some]
        greedy = torch.tensor([one.greedy for _, one in some])
        longer = extend(student, texts, CONTINUED_TOKENS, head, generator, greedy=greedy)
        for (cut, one), text in zip(some, longer, strict=True):
            yield one._replace(ids=tuple(text), start=cut, done=False)


def extend(
    student: LlamaForCausalLM,
    texts: Sequence[Sequence[int]],
    new: int,
    head: Sequence[int],
    generator: torch.Generator,
    *,
    greedy: Tensor,
    temperature: float = 1.0,
) -> list[list[int]]:
    """Each text with `new` tokens of the student after it.

    greedy         per text: the likeliest token of the head, else one drawn at `temperature`
    """
    places, longer = torch.tensor(head), [list(text) for text in texts]
    longest = max(map(len, texts)) + new
    passes = BatchedPasses(student, len(texts), longest, head=head)
    for step in range(longest - 1):
        at = [min(step, len(text) - 1) for text in longer]
        tokens = torch.tensor([text[place] for text, place in zip(longer, at, strict=True)])
        logits = passes.logits(tokens, torch.tensor(at))
        if step >= min(map(len, texts)) - 1:
            chosen = places[draw(logits, temperature, generator, greedy=greedy)].tolist()
            for text, begun, token in zip(longer, texts, chosen, strict=True):
                if len(text) == step + 1 < len(begun) + new:
                    text.append(token)
    return longer
