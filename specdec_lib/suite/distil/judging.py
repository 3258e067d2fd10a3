"""How well a student guesses on lessons that it did not learn from."""

from collections.abc import Sequence

import pandas as pd
import torch
from transformers import LlamaForCausalLM

from specdec_lib.suite.distil.lessons import Lesson
from specdec_lib.suite.distil.training import Batch


@torch.inference_mode()
def judge(
    student: LlamaForCausalLM, lessons: Sequence[Lesson], head: Sequence[int]
) -> pd.DataFrame:
    """One row per domain and way of writing (greedy or at temperature 1), and one of all.

    first      share of answer tokens where the student's likeliest token is the target's
    best_4     share where the target's likeliest is among the student's four
    overlap    mean of Σ min(target, student): the acceptance rate of one guess at temperature 1

    The target's distribution is the one within the head. A token outside it counts as missed in
    `written`, the share of written tokens that are the student's likeliest.
    """
    place_of = torch.full((student.config.vocab_size,), -1)
    place_of[list(head)] = torch.arange(len(head))
    rows = student.lm_head.weight.detach()[list(head)]
    found = []
    for lesson in sorted(lessons, key=lambda one: len(one.conversation.ids)):
        one = lesson.conversation
        batch = Batch([lesson], place_of)
        logits = (batch.hidden(student).to(rows.dtype) @ rows.T).float()
        best = logits.topk(4).indices
        guessed = logits.softmax(dim=-1).gather(1, batch.places)
        rest = torch.minimum(1 - batch.probs.sum(1), 1 - guessed.sum(1)).clamp(min=0)
        measured = {
            "first": best[:, 0] == batch.places[:, 0],
            "best_4": (best == batch.places[:, :1]).any(1),
            "overlap": torch.minimum(guessed, batch.probs).sum(1) + rest,
            "written": best[:, 0] == batch.written,
        }
        sums = {name: float(values.float().sum()) for name, values in measured.items()}
        way = "greedy" if one.greedy else "T = 1"
        found.append({"domain": one.domain or "unknown", "way": way, "tokens": len(best), **sums})
    table = pd.DataFrame(found)
    every = pd.concat([table, table.assign(domain="all")]).groupby(["domain", "way"]).sum()
    return pd.concat(
        [every[["tokens"]], every.drop(columns="tokens").div(every["tokens"], axis=0)], axis=1
    )
