"""The comparison of a pair of models: what is timed, what the table says, and what it comes to."""

import math
import re
from dataclasses import replace

import pandas as pd
import pytest
from own_models import gpt2, llama

from specdec_lib.core.chance import Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.compare import (
    FOREIGN,
    PLAIN,
    command,
    compare_methods,
    summary,
    verdict,
)
from specdec_lib.measure.compare import timing as clockwork
from specdec_lib.measure.compare.methods import compared_contenders, usual_drafts
from specdec_lib.measure.race import harness
from specdec_lib.measure.race.harness import target_texts
from specdec_lib.measure.ties import ROUNDING, TWO_PROGRAMS, near_tie
from specdec_lib.workload import Prompt, load_ladder
from specdec_lib.workload.ladder import neutral

PROMPTS = [
    Prompt(name, text, "own", "held-out", "here")
    for name, text in (("a", "def f(x):\n    return"), ("b", "class A:\n    def g"))
]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    root = tmp_path_factory.mktemp("pair")
    return load_ladder(llama(root / "target", width=64), gpt2(root / "draft", seed=2), device="cpu")


def row(
    method,
    prompt,
    seconds,
    *,
    tokens=10,
    same=True,
    margin=math.nan,
    rounding=None,
    loops=False,
    rounds=5,
    accepted=3,
    tried=4,
):
    counts = {
        "tokens": tokens,
        "timed_tokens": tokens,
        "seconds": seconds,
        "rounds": rounds,
        "accepted": accepted,
        "tried": tried,
    }
    return (
        {"method": method, "prompt": prompt}
        | counts
        | {"same": same, "margin": margin, "rounding": rounding, "loops": loops}
    )


def table(*seconds, names=(PLAIN, FOREIGN[0], "chain of 2"), **more):
    """One number of seconds per method, or one per prompt."""
    made = []
    for name, given in zip(names, seconds, strict=True):
        each = given if isinstance(given, tuple) else (given,) * 5
        made += [row(name, str(number), one, **more) for number, one in enumerate(each)]
    return pd.DataFrame(made).astype({"same": object, "rounding": object})


def test_an_own_pair_is_compared_and_every_text_is_the_targets_own(own):
    rows = compare_methods(own, PROMPTS, max_new_tokens=6, progress=False)
    assert (
        set(rows.method) == {*usual_drafts(own, Sampler(0)), *FOREIGN}
        and rows.groupby("method").size().eq(2).all()
    )
    assert (
        rows.same.all()
        and rows.margin.isna().all()
        and (rows.tokens.groupby(rows.prompt).nunique() == 1).all()
    )
    told = summary(rows).set_index("method")
    assert (
        told.tokens_per_round[PLAIN] == 1
        and math.isnan(told.acceptance_rate[PLAIN])
        and told.speed_up[PLAIN] == 1
    )
    assert (told.same == "yes").all() and verdict(summary(rows)).startswith(
        "Do not speculate: hardly a guess"
    )


def test_sampled_text_of_hugging_face_is_not_compared_and_ours_is(own):
    told = summary(
        compare_methods(own, PROMPTS, Sampler(1.0, top_k=20), max_new_tokens=5, progress=False)
    ).set_index("method")
    assert (told.loc[list(FOREIGN)].same == "–").all() and (
        told.drop(list(FOREIGN)).same == "yes"
    ).all()


def test_the_embedded_ladder_is_tried_with_its_ngram_table_too(ladder, own):
    greedy = Sampler(0)
    assert set(usual_drafts(ladder, greedy)) - set(usual_drafts(own, greedy)) == {
        "tree of 8 fed by n-grams"
    }


def test_a_draft_of_ones_own_takes_part_under_a_name_of_its_own(own):
    rows = compare_methods(
        own, PROMPTS[:1], own={"mine": ChainDraft(own.target, 3)}, max_new_tokens=12, progress=False
    )
    told = summary(rows).set_index("method")
    assert told.acceptance_rate["mine"] == 1 and told.tokens_per_round["mine"] > 2
    with pytest.raises(ValueError, match="a draft of your own needs a name of its own, got plain"):
        compare_methods(own, PROMPTS, own={PLAIN: NoDraft()}, progress=False)


def wrong(ladder, drafts, sampler):
    """All contenders, of whom the chain of 2 writes another last token."""

    def spoilt(honest):
        def run(prompt, count, seed):
            made = honest.run(prompt, count, seed)
            return replace(made, tokens=(*made.tokens[:-1], (made.tokens[-1] + 1) % 4096))

        return replace(honest, run=run)

    made = compared_contenders(ladder, drafts, sampler)
    return [spoilt(one) if one.method == "chain of 2" else one for one in made]


def test_a_method_that_writes_another_text_is_seen(own, monkeypatch):
    monkeypatch.setattr(clockwork, "compared_contenders", wrong)
    told = summary(compare_methods(own, PROMPTS[:1], max_new_tokens=4, progress=False)).set_index(
        "method"
    )
    assert told.same["chain of 2"] == "no" and told.same["chain of 4"] == "yes"
    assert "Not the target's own text, by more than rounding: chain of 2." in verdict(
        told.reset_index()
    )


def judged(own, dtype, wanted):
    """What is said of the target's text with one token replaced by another that lies so many steps
    of bfloat16 below it, at three places.
    """
    sources = [own.card["models"][name]["source"] for name in ("target", "draft")]
    ladder, greedy, found = load_ladder(*sources, device="cpu", dtype=dtype), Sampler(0), []
    [text] = target_texts(ladder, PROMPTS[1:], greedy, tokens=60, seed=0)
    for place in range(len(text.tokens)):
        context = Context.of(text.prompt + text.tokens[:place])
        row = ladder.target.score(context, TokenTree.rooted(context))[0].float()
        best, *others = row.argsort(descending=True, stable=True)[:50].tolist()
        step = 2.0 ** (math.floor(math.log2(float(row[best]))) - 7)
        fitting = [
            token
            for token in others
            if TWO_PROGRAMS < float(row[best] - row[token])
            and wanted(float(row[best] - row[token]) / step)
        ]
        found += [(*text.tokens[:place], token, *text.tokens[place + 1 :]) for token in fitting[:1]]
    ties = [
        near_tie(ladder.target, text.prompt, text.tokens, tokens, floor=TWO_PROGRAMS)
        for tokens in found[:3]
    ]
    return [tie.verdict == ROUNDING for tie in ties]


def test_one_step_of_bfloat16_is_rounding_there_and_not_in_float32(
    own,
):
    assert judged(own, "bfloat16", lambda steps: steps <= 1) == [True] * 3
    assert judged(own, "bfloat16", lambda steps: steps > 40) == [False] * 3
    assert judged(own, "float32", lambda steps: steps <= 4) == [False] * 3


def test_kept_rows_are_not_timed_again_and_other_settings_are(own, tmp_path, monkeypatch):
    once = {"max_new_tokens": 6, "progress": False, "keep": tmp_path}
    first = compare_methods(own, PROMPTS[:1], **once)
    raced = []
    again = race_of(raced)
    monkeypatch.setattr(clockwork, "race", again)
    pd.testing.assert_frame_equal(compare_methods(own, PROMPTS[:1], **once), first)
    assert not raced
    compare_methods(own, PROMPTS, **once)
    assert raced == ["b"]
    compare_methods(own, PROMPTS[:1], seed=1, **once)
    assert raced == ["b", "a"]


def race_of(seen):
    """The race, which notes the names of its texts."""

    def spied(contenders, texts, target, **options):
        for text in texts:
            seen.append(text.name)
            yield from harness.race(contenders, [text], target, **options)

    spied.__module__ = harness.__name__  # its file is what kept rows follow from
    return spied


def test_generation_configurations_of_ones_own_models_are_put_aside_and_back(own):
    network = own.target.model
    network.generation_config.repetition_penalty = 1.5
    with neutral(own):
        assert (
            network.generation_config.repetition_penalty in (None, 1.0)
            and network.generation_config.eos_token_id == 0
        )
    assert network.generation_config.repetition_penalty == 1.5
    with pytest.raises(KeyError), neutral(own):
        raise KeyError
    assert network.generation_config.repetition_penalty == 1.5
    rows = compare_methods(own, PROMPTS[:1], max_new_tokens=6, progress=False)
    network.generation_config.repetition_penalty = None
    assert rows.same.all()


def test_the_drafts_configuration_stays_aside_while_assisted_generation_plays(own, monkeypatch):
    draft, seen = own.draft.model, []
    draft.generation_config.repetition_penalty = 1.5
    judge = harness._difference
    monkeypatch.setattr(
        harness,
        "_difference",
        lambda *given: seen.append(draft.generation_config.repetition_penalty) or judge(*given),
    )
    compare_methods(own, PROMPTS[:1], max_new_tokens=6, progress=False)
    put_back, draft.generation_config.repetition_penalty = (
        draft.generation_config.repetition_penalty,
        None,
    )
    assert put_back == 1.5 and seen and not {1.5} & set(seen)


def test_a_ratio_is_total_time_per_token_against_plain_on_the_same_prompts():
    told = summary(table((1.0, 2.0, 3.0), (4.0, 4.0, 4.0), (1.0, 1.0, 1.0))).set_index("method")
    assert (
        told.speed_up["chain of 2"] == 2
        and told.ms_per_token["chain of 2"] == 100
        and told.acceptance_rate["chain of 2"] == 0.75
    )
    assert (
        told.speed_up_low["chain of 2"] < 2 < told.speed_up_high["chain of 2"]
        and (told.baseline == PLAIN).all()
    )


def test_the_faster_plain_decoder_is_what_has_to_be_beaten():
    told = summary(table(4.0, 1.0, 2.0))
    assert told.speed_up[2] == 2 and told.gain[2] == 0.5 and (told.baseline == FOREIGN[0]).all()
    assert verdict(told).startswith(
        "Do not speculate: the best method, chain of 2, is 0.50 times as fast as plain decoding by"
        " Hugging Face"
    )


@pytest.mark.parametrize(
    "seconds,said",
    [
        (
            (2.0, 3.0, 1.0),
            "Speculate: chain of 2 is 2.00 times as fast as plain decoding (2.00–2.00). The winner"
            " was picked",
        ),
        (
            (1.0, 3.0, 2.0),
            "Do not speculate: the best method, chain of 2, is 0.50 times as fast as plain"
            " decoding (0.50–0.50).",
        ),
        (
            (1.0, 3.0, (0.2, 0.2, 0.2, 1.0, 3.0)),
            "No clear gain: the best method, chain of 2, is 1.09 times as fast",
        ),
    ],
)
def test_the_verdict_is_in_words(seconds, said):
    assert verdict(summary(table(*seconds))).startswith(said)


def test_a_verdict_from_few_prompts_has_no_interval_and_says_that_they_are_few():
    told = summary(table((2.0,) * 3, (3.0,) * 3, (1.0,) * 3))
    assert "2.00 times as fast as plain decoding. 3 prompts are too few" in verdict(told)


def test_the_verdict_passes_over_a_text_that_is_not_the_targets_and_says_when_texts_loop():
    rows = pd.concat(
        [
            table(2.0, 3.0, 1.0),
            table(0.1, names=("broken",), same=False, margin=0.7, rounding=False),
            table(1.5, names=("tied",), same=False, margin=1e-5, rounding=True),
        ]
    )
    told = summary(rows)
    assert told.same.tolist() == ["yes", "yes", "yes", "no", "near ties"]
    assert verdict(told).startswith("Speculate: chain of 2") and verdict(told).endswith(
        "by more than rounding: broken."
    )
    assert "5 of 5 texts repeat themselves" in verdict(
        summary(table(2.0, 3.0, 1.0, loops=True))
    ) and "repeat" not in verdict(told)


def test_a_method_without_an_accepted_guess_cannot_win_by_the_clocks_noise():
    told = summary(table(2.0, 3.0, 1.9, rounds=10, accepted=0))
    assert told.gain[2] > 1 and verdict(told).startswith(
        "Do not speculate: hardly a guess of any method was accepted."
    )


def test_where_no_method_wrote_the_targets_text_the_verdict_says_that():
    plain, broken = (
        table(2.0, 3.0, names=(PLAIN, FOREIGN[0])),
        table(1.0, same=False, margin=0.7, rounding=False, names=("broken",)),
    )
    said = verdict(summary(pd.concat([plain, broken])))
    assert (
        said.startswith(
            "Do not speculate: no method wrote the target's own text. Not the target's own text"
        )
        and "hardly" not in said
    )
    idle = table(1.0, names=("idle",), rounds=10, accepted=0)
    said = verdict(summary(pd.concat([plain, broken, idle])))
    assert said.startswith(
        "Do not speculate: hardly a guess of any method that wrote the target's own text was"
        " accepted."
    )


@pytest.mark.parametrize(
    "wrong,complaint",
    [
        ({"prompts": []}, "got 0 prompts"),
        ({"max_new_tokens": 0}, "max_new_tokens=0"),
        ({"repeats": 0}, "repeats=0"),
        (
            {"max_new_tokens": 255},
            "the prompt a has .* tokens, and 255 more do not fit: the smallest model reads at most"
            " 256",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(own, wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        compare_methods(own, **({"prompts": PROMPTS, "progress": False} | wrong))


def test_the_command_compares_two_folders_on_a_file_of_prompts(own, tmp_path, capsys):
    sources = [own.card["models"][name]["source"] for name in ("target", "draft")]
    (tmp_path / "mine.jsonl").write_text(
        '{"text": "def f(x):"}\n{"text": "import "}\n{"text": "x = 1\\n"}\n'
    )
    given = [
        "--target",
        sources[0],
        "--draft",
        sources[1],
        "--prompts",
        str(tmp_path / "mine.jsonl"),
        "--csv",
        str(tmp_path / "new" / "table.csv"),
    ]
    command.main([*given, "--limit", "2", "--max-new-tokens", "5", "--device", "cpu"])
    said = capsys.readouterr().out
    assert (
        "2 prompts of" in said
        and "greedy" in said
        and "times as fast as plain" in said
        and "same text" in said
    )
    assert not re.search(r"\d–\d", said)  # no interval from two prompts
    assert said.count("yes") == len(
        pd.read_csv(tmp_path / "new" / "table.csv")
    ) and said.strip().splitlines()[-1].count("peculate") + said.count("No clear gain")


@pytest.mark.parametrize(
    "wrong,complaint",
    [
        (
            ["--target", "/no/such/folder", "--draft", "x"],
            "a model is a local folder in hub format",
        ),
        (["--target", "x"], "a target and a draft at least"),
        (["--prompts", "poems"], "prompt sets are code, math, prose"),
        (["--prompts", "nothing.jsonl"], "there is no file nothing.jsonl"),
        (["--limit", "0"], "--limit counts from 1, got 0"),
        (["--max-new-tokens", "0"], "--max-new-tokens counts from 1, got 0"),
        (["--repeats", "0"], "--repeats counts from 1, got 0"),
        (["--temperature", "-1"], "temperature"),
        (["--max-new-tokens", "many"], "invalid int value: 'many'"),
        (["--threads", "0"], "--threads counts from 1, got 0"),
        (["--csv", "/proc/nowhere/table.csv"], "the folder /proc/nowhere cannot be written to"),
        (["--keep", "/proc/nowhere"], "the folder /proc/nowhere cannot be written to"),
        (["--csv", "/tmp"], "--csv names a file, got the folder /tmp"),
    ],
)
def test_the_command_refuses_what_is_wrong(wrong, complaint, monkeypatch):
    if "--target" not in wrong:  # then no model need be loaded to say so
        monkeypatch.setattr(
            command, "load_ladder", lambda *given, **named: pytest.fail("loaded all the same")
        )
    with pytest.raises(ValueError, match=re.escape(complaint)):
        command.main([*wrong, "--device", "cpu"])
