"""Result files of Spec-Bench: small ones in the published form, made here, with numbers worked out by hand."""

import copy
import json
import math

import pytest

from specdec_lib.chance import Sampler
from specdec_lib.draft import ChainDraft, NoDraft
from specdec_lib.specbench import Answer, Choice, answers, common, convention, differences, read, score, write
from specdec_lib.sweep import Setting, generations
from specdec_lib.workload import Prompt, load_prompts


def line(question, category, tokens, seconds, accepted, turns=None, model="ours"):
    choice = {"index": 0, "turns": turns or ["text"] * len(tokens), "idxs": [3] * len(tokens), "new_tokens": tokens, "wall_time": seconds}
    choice["accept_lengths"] = accepted
    return {"question_id": question, "category": category, "answer_id": "x", "model_id": model, "choices": [choice], "tstamp": 1.5}


# 81: two turns, 30 tokens in 3 s; 161: 90 tokens in 3 s; 241: 12 tokens in 4 s.  All: 132 tokens in 10 s, 44 rounds.
OWN = [
    line(81, "writing", [10, 20], [1.0, 2.0], [3] * 10),
    line(161, "translation", [90], [3.0], [5] * 10 + [2] * 20),
    line(241, "coding", [12], [4.0], [3] * 4),
]
# 20 tokens a second everywhere but in 81, where it is 10
BASE = [
    line(241, "coding", [12], [0.6], [1] * 12, model="plain"),
    line(161, "translation", [90], [4.5], [1] * 90, model="plain"),
    line(81, "writing", [10, 20], [1.0, 2.0], [1] * 30, model="plain"),
]


def stored(path, lines):
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path):
    return stored(tmp_path / "own.jsonl", OWN), stored(tmp_path / "base.jsonl", BASE)


def changed(lines, number, **choice):
    lines = copy.deepcopy(lines)
    lines[number]["choices"][0] |= choice
    return lines


def test_rates_are_sums_over_sums_per_task_and_overall(files):
    table = score(read(files[0])).set_index("task")
    assert list(table.index) == ["mt_bench", "translation", "overall"] and table.questions.tolist() == [2, 1, 3]
    assert table.tokens_per_second.tolist() == pytest.approx([42 / 7, 30, 13.2])
    assert table.mean_of_rates.tolist() == pytest.approx([(10 + 3) / 2, 30, 43 / 3])
    assert table.tokens_per_round.tolist() == pytest.approx([42 / 14, 3, 3]) and table.accepted_per_round["overall"] == pytest.approx(2)
    assert (table.bonus == "counted").all() and table.tokens["overall"] == 132 and table.seconds["overall"] == 10


def test_the_mean_of_rates_is_another_number_and_is_called_so(files):
    table = score(read(files[0])).set_index("task")
    assert table.mean_of_rates["overall"] > 1.08 * table.tokens_per_second["overall"]


def test_a_speed_up_is_paired_by_question_whatever_the_order(files):
    table = score(*map(read, files)).set_index("task")
    assert table.speed_up.tolist() == pytest.approx([(42 / 7) / (42 / 3.6), 30 / 20, 13.2 / (132 / 8.1)])
    assert table.ratio_of_means["overall"] == pytest.approx((43 / 3) / (50 / 3))
    assert table.mean_of_ratios["overall"] == pytest.approx((1 + 1.5 + 3 / 20) / 3)
    assert table.speed_up_low["overall"] < table.speed_up["overall"] < table.speed_up_high["overall"]


def test_intervals_are_over_questions_drawn_together():
    own = [line(number, "qa", [tokens], [tokens / 10], [1] * tokens) for number, tokens in enumerate((5, 50, 500))]
    base = [line(number, "qa", [tokens], [tokens / 5], [1] * tokens) for number, tokens in enumerate((5, 50, 500))]
    table = score(parsed(own), parsed(base)).iloc[-1]
    assert (table.speed_up_low, table.speed_up, table.speed_up_high) == pytest.approx((2, 2, 2))


def parsed(lines):
    """The same without a file."""
    made = []
    for one in lines:
        [choice] = one["choices"]
        told = (tuple(choice[name]) for name in ("turns", "new_tokens", "wall_time", "accept_lengths"))
        made.append(Answer(one["question_id"], one["category"], one["model_id"], (Choice(0, *told),)))
    return made


@pytest.mark.parametrize(
    "lengths,told,per_round",
    [([3] * 10, "counted", 3.0), ([2] * 10, "left out", 3.0), ([3] * 9 + [2], "counted", 2.9), ([1] * 10, "unclear", 1.0), ([], "absent", math.nan)],
)
def test_whether_the_targets_own_token_is_counted_is_told_from_the_sums(lengths, told, per_round):
    own = parsed([line(1, "qa", [30], [2.0], lengths)])
    assert convention(own) == told
    table = score(own).iloc[-1]
    assert table.tokens_per_round == pytest.approx(per_round, nan_ok=True) and table.bonus == told


def test_where_rounds_are_few_the_nearer_convention_is_taken_and_neither_of_two_equally_near():
    few = parsed([line(number, "qa", [4], [1.0], [3]) for number in range(5)])  # both within a token per turn
    assert convention(few) == "left out" and score(few).iloc[-1].tokens_per_round == 4
    assert convention(parsed([line(number, "qa", [4], [1.0], [4]) for number in range(5)])) == "counted"
    assert convention(parsed([line(1, "qa", [7], [1.0], [3, 3])])) == "unclear"


def test_all_choices_of_a_question_count(tmp_path):
    lines = copy.deepcopy(OWN)
    lines[1]["choices"].append(lines[1]["choices"][0] | {"index": 1, "wall_time": [6.0]})
    table = score(read(stored(tmp_path / "two.jsonl", lines))).set_index("task")
    assert table.tokens_per_second["translation"] == pytest.approx(180 / 9)


def test_failed_answers_are_left_out_on_both_sides_and_counted(tmp_path, files):
    own = read(stored(tmp_path / "failed.jsonl", changed(OWN, 1, turns=["ERROR"])))
    for sides in ((own, read(files[1])), (read(files[0]), read(stored(tmp_path / "b.jsonl", changed(BASE, 1, turns=["ERROR"]))))):
        table = score(*sides).set_index("task")
        assert table.failed.tolist() == [0, 1, 1] and table.questions.tolist() == [2, 0, 2]
        assert table.tokens["overall"] == 42 and math.isnan(table.speed_up["translation"])
    with pytest.raises(ValueError, match="nothing to score: 1 answers, of which 1 failed"):
        score([own[1]])


def test_missing_and_extra_questions_are_named(files):
    own, base = map(read, files)
    with pytest.raises(ValueError, match=r"the baseline lacks 81 \(2 turns\); `common`"):
        score(own, base[:2])
    with pytest.raises(ValueError, match=r"turn: the result lacks 161 \(1 turn\);"):
        score([own[0], own[2]], base)
    kept = common(own[:2], base[:2])
    assert [[answer.question for answer in side] for side in kept[:2]] == [[161], [161]] and kept[2] == [241, 81]
    assert score(*kept[:2]).speed_up.iloc[-1] == pytest.approx(1.5)


def test_a_question_with_other_turns_is_no_pair(files, tmp_path):
    fewer = read(stored(tmp_path / "fewer.jsonl", changed(BASE, 2, turns=["text"], new_tokens=[10], wall_time=[1.0])))
    with pytest.raises(ValueError, match=r"the baseline lacks 81 \(2 turns\), the result lacks 81 \(1 turn\)"):
        score(read(files[0]), fewer)


def test_equal_texts_are_equal_whatever_the_order_of_the_files(files):
    assert differences(*map(read, files)) == []


def test_the_first_difference_is_found_and_a_longer_text_is_told_apart():
    own = parsed([line(1, "qa", [5, 5], [1.0, 1.0], [5, 5], ["The cat sat.", "Yes"]), line(2, "qa", [5], [1.0], [5], ["and so on and"])])
    base = parsed([line(2, "qa", [5], [1.0], [5], ["and so on"]), line(1, "qa", [5, 5], [1.0, 1.0], [5, 5], ["The cow sat.", "Yes"])])
    first, second = differences(own, base)
    assert (first.question, first.turn, first.place, first.own, first.baseline, first.longer) == (1, 0, 5, "at sat.", "ow sat.", False)
    assert (second.question, second.place, second.own, second.baseline, second.longer) == (2, 9, " and", "", True)


def test_a_missing_last_question_or_turn_is_not_passed_over():
    own = parsed([line(1, "qa", [5, 5], [1.0, 1.0], [5, 5], ["a", "b"])])
    base = parsed([line(1, "qa", [5], [1.0], [5], ["a"])])
    [found] = differences(own, base)
    assert (found.turn, found.own, found.baseline, found.longer) == (1, "b", "", False)
    with pytest.raises(ValueError, match="no question is in both files: 1 and 1 answers"):
        differences(own, parsed([line(2, "qa", [5], [1.0], [5])]))


@pytest.mark.parametrize(
    "damage,complaint",
    [
        (lambda one: one.pop("question_id"), "line 2: the field 'question_id' is missing"),
        (lambda one: one.pop("choices"), "line 2: the field 'choices' is missing"),
        (lambda one: one.update(category=None), "line 2: 'category' is a text, got null"),
        (lambda one: one.update(choices=[]), "line 2: 'choices' has at least 1 entry, got 0"),
        (lambda one: one.update(question_id=81), r"line 2: question 81 was there before \(line 1\)"),
        (lambda one: one["choices"][0].pop("wall_time"), "line 2, choice 0: the field 'wall_time' is missing"),
        (lambda one: one["choices"][0].update(wall_time=["3"]), r"choice 0: 'wall_time\[0\]' is a number, got a text"),
        (lambda one: one["choices"][0].update(wall_time=[3.0, 1.0]), "each turn has its new_tokens and wall_time, got 1 turns, 1 and 2"),
        (lambda one: one["choices"][0].update(wall_time=[0.0]), "times are above 0"),
        (lambda one: one["choices"][0].update(new_tokens=[9.5]), r"'new_tokens\[0\]' is a whole number, got a number \(9.5\)"),
        (lambda one: one["choices"][0].update(accept_lengths=[3, None]), r"'accept_lengths\[1\]' is a whole number, got null"),
        (lambda one: one["choices"][0].update(accept_lengths=[-1]), "counts at least 0"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, damage, complaint):
    lines = copy.deepcopy(OWN)
    damage(lines[1])
    with pytest.raises(ValueError, match=rf"own\.jsonl, {complaint}" if complaint.startswith("line") else complaint):
        read(stored(tmp_path / "own.jsonl", lines))


def test_a_line_that_was_cut_short_is_named(tmp_path, files):
    files[0].write_text(files[0].read_text()[:-40])
    with pytest.raises(ValueError, match=r"own\.jsonl, line 3: it is not JSON"):
        read(files[0])


def test_a_file_without_accept_lengths_is_read(tmp_path):
    lines = copy.deepcopy(OWN)
    for one in lines:
        del one["choices"][0]["accept_lengths"]
    table = score(read(stored(tmp_path / "old.jsonl", lines)))
    assert table.bonus.iloc[0] == "absent" and table.tokens_per_second.iloc[-1] == pytest.approx(13.2)


def test_generations_of_ours_come_back_as_they_were_written(ladder, tmp_path):
    prompt = load_prompts("code", "development", 1)[0]
    asked = [prompt, Prompt("spec-bench/161", prompt.text + "\n", "spec-bench/translation", "held-out", "here")]
    played = {
        name: list(generations([Setting(name, draft, Sampler(0))], asked, ladder, max_new_tokens=12, progress=False))
        for name, draft in (("plain", NoDraft()), ("chain", ChainDraft(ladder.draft, 3)))
    }
    found = {}
    for name, rows in played.items():
        write(tmp_path / f"{name}.jsonl", answers(rows, ladder))
        found[name] = read(tmp_path / f"{name}.jsonl")
        assert found[name] == answers(rows, ladder) and convention(found[name]) == "counted"
    assert [(answer.question, answer.category, answer.model) for answer in found["chain"]] == [
        (prompt.name, "code", "chain"),
        (161, "translation", "chain"),
    ]
    assert differences(found["chain"], found["plain"]) == []
    table = score(found["chain"], found["plain"]).iloc[-1]
    made = [generation for _, _, generation in played["chain"]]
    assert table.tokens_per_round == pytest.approx(sum(len(one.tokens) for one in made) / sum(len(one.rounds) for one in made))
    with pytest.raises(ValueError, match=r"of one method; got 4 and 161, .* twice"):
        write(tmp_path / "both.jsonl", found["chain"] + found["plain"])
    assert not (tmp_path / "both.jsonl").exists()
