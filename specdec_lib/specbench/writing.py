"""Generations of ours as a result file, for Spec-Bench's own scripts or for `score`."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from specdec_lib.decode import Generation
from specdec_lib.places import write_whole
from specdec_lib.specbench.answers import Answer, Choice
from specdec_lib.sweep import Setting
from specdec_lib.workload import Ladder, Pair, Prompt


def answers(played: Iterable[tuple[Setting, Prompt, Generation]], ladder: Ladder | Pair) -> list[Answer]:
    """What `sweep.generations` yields, as answers of one turn; the setting's name is the model's.

    A prompt of Spec-Bench gets its question number and category back, any other keeps its name and domain. Seconds hold the reading of the prompt,
    as the published ones do, and `accept_lengths` the target's own token of every round.
    """
    return [_answer(setting, prompt, generation, ladder) for setting, prompt, generation in played]


def _answer(setting: Setting, prompt: Prompt, generation: Generation, ladder: Ladder | Pair) -> Answer:
    seconds = sum(one.seconds for one in generation.rounds) + sum(used.seconds for used in generation.prefill.values())
    lengths = tuple(len(one.emitted) for one in generation.rounds)
    text = ladder.tokenizer.decode(list(generation.tokens))
    published, _, rest = prompt.name.partition("/")
    number = int(rest) if published == "spec-bench" and rest.isdigit() else prompt.name
    category = prompt.domain.partition("/")[2] or prompt.domain
    return Answer(number, category, setting.name, (Choice(0, (text,), (len(generation.tokens),), (seconds,), lengths),))


def write(path: str | Path, given: Sequence[Answer]) -> None:
    """A result file, whole or not at all.  Raises ValueError if there is no answer, or two to one question: a file holds one method."""
    numbers = [answer.question for answer in given]
    twice = sorted({str(number) for number in numbers if numbers.count(number) > 1})
    if not given or twice:
        raise ValueError(f"a result file holds one answer per question, of one method; got {len(given)} and {', '.join(twice) or 'none'} twice")
    write_whole(Path(path), "".join(f"{json.dumps(_line(answer), ensure_ascii=False)}\n" for answer in given).encode())


def _line(answer: Answer) -> dict[str, object]:
    choices = [
        {
            "index": choice.index,
            "turns": list(choice.turns),
            "decoding_steps": [len(choice.accept_lengths)],
            "new_tokens": list(choice.new_tokens),
            "wall_time": list(choice.seconds),
            "accept_lengths": list(choice.accept_lengths),
        }
        for choice in answer.choices
    ]
    return {"question_id": answer.question, "category": answer.category, "model_id": answer.model, "choices": choices}
