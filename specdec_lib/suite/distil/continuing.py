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
from specdec_lib.models.batched import BatchedPasses
from specdec_lib.models.students import assemble
from specdec_lib.suite.distil.command import TEXT
from specdec_lib.suite.distil.lessons import teach
from specdec_lib.suite.distil.teaching import load_target, read_head, read_text
from specdec_lib.suite.distil.text import Conversation, list_shards, pack

CONTINUED_TOKENS = 16  # about as far as a draft guesses ahead
SEQUENCES = 64


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the continuations, unless they are there, and the lessons on them."""
    parser = Parser("distil continue", "let a draft continue answers, and teach it on those")
    parser.add_argument("draft", type=Path, help="the file that `specdec distil train` wrote")
    parser.add_argument("--text", type=Path, default=TEXT, help="the folder of shards")
    parser.add_argument("--lessons", type=Path, default=cache_folder() / "lessons")
    parser.add_common("--limit", None, "answers, drawn at random (default: all)")
    parser.add_common("--seed", 0)
    parser.add_common("--out", cache_folder() / "continued")
    given = parser.parse_args(arguments)
    target, texts, head = load_target(), read_text(given.text), read_head(given.lessons)
    if not list_shards(given.out):
        given.out.mkdir(parents=True, exist_ok=True)
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
        yield from _continue_batch(student, begun[first : first + SEQUENCES], head, generator)


def _continue_batch(
    student: LlamaForCausalLM,
    begun: Sequence[tuple[int, Conversation]],
    head: Sequence[int],
    generator: torch.Generator,
) -> Iterator[Conversation]:
    """The continuations of some conversations, cut at about the same place."""
    places, greedy = torch.tensor(head), torch.tensor([one.greedy for _, one in begun])
    texts = [list(one.ids[:cut]) for cut, one in begun]
    longest = max(map(len, texts)) + CONTINUED_TOKENS
    passes = BatchedPasses(student, len(begun), longest, head=head)
    for step in range(longest - 1):
        tokens = torch.tensor([text[min(step, len(text) - 1)] for text in texts])
        positions = torch.tensor([min(step, len(text) - 1) for text in texts])
        logits = passes.logits(tokens, positions)
        chosen = places[_choose(logits, greedy, generator)].tolist()
        for (cut, _), text, token in zip(begun, texts, chosen, strict=True):
            if len(text) == step + 1 < cut + CONTINUED_TOKENS:
                text.append(token)
    for (cut, one), text in zip(begun, texts, strict=True):
        yield Conversation(tuple(text), cut, one.greedy, False, one.domain)


def _choose(logits: Tensor, greedy: Tensor, generator: torch.Generator) -> Tensor:
    """The place of each sequence's next token: the likeliest, or one drawn at temperature 1."""
    drawn = torch.multinomial(logits.float().softmax(dim=-1), 1, generator=generator)[:, 0]
    return torch.where(greedy, logits.argmax(dim=-1), drawn)
