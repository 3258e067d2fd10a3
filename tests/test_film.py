"""A film strip: what each method waits for, pass by pass."""

import pytest
from tiny import tiny_ladder

from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.film import FIRST, ROUNDS, TOKENS, film
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts
from specdec_lib.measure.settings.setting import GREEDY
from specdec_lib.measure.target_text import write_text
from specdec_lib.theory import PassTable
from specdec_lib.workload import load_prompts

TABLES = {
    name: PassTable((1, 9), (64,), ((seconds, 2 * seconds),))
    for name, seconds in {"target": 0.01, "middle": 0.002, "draft": 0.001}.items()
}


def test_passes_follow_each_other_and_give_the_texts_tokens():
    """Control: a dearer pass makes the same rounds longer."""
    ladder = tiny_ladder()
    [prompt] = load_prompts("chat", "held-out", 1)
    text = write_text(ladder, prompt, GREEDY, max_new_tokens=TOKENS)
    drafts = LadderDrafts(ladder, GREEDY, matched=False)
    lanes = {"plain": NoDraft(), "chain": drafts.chain(2)}
    strip = film(ladder, lanes, prompt, [text], TABLES)
    for name, own in strip.groupby("method", sort=False):
        ends = own.start + own.milliseconds
        assert own.start.iloc[0] == 0 and own.start.iloc[1:].tolist() == ends.iloc[:-1].tolist()
        closing = own[own.model == "target"]
        assert len(closing) == ROUNDS and closing.inside.str.startswith("+").all()
        tokens = closing.inside.astype(int).sum()
        said = f"{tokens} tokens in {ends.iloc[-1]:.0f} ms"
        assert own.said.tolist() == [""] * (len(own) - 1) + [said]
        assert (own.model == "draft").sum() == (2 * ROUNDS if name == "chain" else 0)
    plain = strip[strip.method == "plain"]
    assert plain.milliseconds.tolist() == [10.0] * ROUNDS
    dear = TABLES | {"draft": TABLES["target"]}
    assert film(ladder, lanes, prompt, [text], dear).milliseconds.sum() > strip.milliseconds.sum()


def test_a_text_that_ends_too_early_is_refused():
    ladder = tiny_ladder()
    [prompt] = load_prompts("chat", "held-out", 1)
    text = write_text(ladder, prompt, GREEDY, max_new_tokens=TOKENS)
    stop = next(iter(ladder.stop_tokens))
    cut = type(text)(**{**vars(text), "tokens": (*text.tokens[:FIRST], stop)})
    with pytest.raises(ValueError, match=r"plain has . rounds in .* are needed"):
        film(ladder, {"plain": NoDraft()}, prompt, [cut], TABLES)
