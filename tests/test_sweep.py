"""The table of a sweep, its statistics and costs, its stacks, and losslessness on the ladder."""

import itertools
import math
from functools import partial

import lossless
import pandas as pd
import pytest
import tiny
import torch
from own_models import gpt2
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.verify import reject
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.acceptance import collect
from specdec_lib.measure.bytes_moved import generation_bytes, model_shape, seconds_at
from specdec_lib.measure.domain_table import ALL, markdown, summarise_domains
from specdec_lib.measure.ratios import (
    per_prompt,
    ratios,
    sampling_of,
    summarise_rounds,
    with_sampling,
    without_few,
)
from specdec_lib.measure.replaying import generations, sweep
from specdec_lib.measure.settings import staged
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.settings.table import table_drafts, table_settings
from specdec_lib.measure.target_text import repetition
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.loading import load_model
from specdec_lib.theory import Machine, ModelShape, roofline_seconds
from specdec_lib.theory.costs import bytes_moved
from specdec_lib.workload import DOMAINS, load_prompts


def test_a_row_holds_the_sums_over_the_rounds_of_its_generation(ladder, prompts):
    chain, drawn = ChainDraft(ladder.draft, 3), ChainDraft(ladder.draft, 2, siblings="iid")
    settings = [Setting("none", NoDraft()), Setting("chain", chain)]
    settings.append(Setting("chain", chain, Sampler(1.0, top_k=50)))
    settings.append(Setting("drawn", drawn, Sampler(1.0, top_k=50), reject))
    run = {"seed": 3, "max_new_tokens": 24, "progress": False}
    table = sweep(settings, prompts[:2], ladder, **run)
    played = list(generations(settings, prompts[:2], ladder, **run))
    order = [(prompt, setting) for prompt in prompts[:2] for setting in settings]
    assert [(prompt, setting) for setting, prompt, _ in played] == order
    assert with_sampling(table).sampling.tolist()[:3] == ["greedy", "greedy", "T = 1, top-k 50"]
    for (_, row), (_, _, made) in zip(table.iterrows(), played, strict=True):
        roots = [one.tree.root_position for one in made.rounds]
        counts = ["tokens", "rounds", "target_passes", "target_rows", "target_context_tokens"]
        rows = row.proposed + row["rounds"]
        wanted = [len(made.tokens), len(made.rounds), len(made.rounds), rows, sum(roots)]
        assert row[counts].tolist() == wanted
        assert row.accepted <= row.tried <= row.proposed
        if "draft" in made.rounds[0].usage:
            passes = [one.usage["draft"].passes for one in made.rounds]
            context = sum(root * count for root, count in zip(roots, passes, strict=True))
            assert row[["draft_passes", "draft_context_tokens"]].tolist() == [sum(passes), context]
    guesses, turns = collect(played)
    for found, wanted in ((guesses, table[table.draft != "none"]), (turns, table)):
        counted = found.groupby(["prompt", "draft", "temperature"], sort=False).accepted.sum()
        assert counted.tolist() == wanted.accepted.tolist()
    assert table.stop.tolist() == [made.stop for _, _, made in played]
    assert (table.tokens[table.stop == "length"] == 24).all()
    assert (table.seconds >= table.overhead_seconds).all() and (table.prefill_seconds > 0).all()
    models = table[["target_seconds", "draft_seconds"]].fillna(0).sum(axis=1)
    assert (models + table.overhead_seconds).tolist() == pytest.approx(table.seconds.tolist())
    greedy = table[table.temperature == 0].groupby("draft").tokens.apply(list)
    assert greedy["none"] == greedy["chain"]


PLAIN = Setting("a", NoDraft())


@pytest.mark.parametrize(
    "settings, count, complaint",
    [
        ([], 1, r"settings with different names, .* got \[\]"),
        ([PLAIN, PLAIN], 1, r"settings with different names, .* got \['a', 'a'\]"),
        ([PLAIN], 0, "a sweep needs prompts, got none"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(settings, count, complaint, ladder, prompts):
    with pytest.raises(ValueError, match=complaint):
        sweep(settings, prompts[:count], ladder)


def test_repetition_is_the_share_of_tokens_that_end_a_known_8_gram():
    eight = (*range(8),)
    shares = {(): 0, (*range(30),): 0, (1,) * 20: 12 / 20, eight * 2: 1 / 16, eight * 3: 9 / 24}
    assert {tokens: repetition(tokens) for tokens in shares} == pytest.approx(shares)


def test_a_summary_keeps_settings_apart():
    settings = {"draft": "x", "temperature": 1.0, "top_p": 1.0, "rounds": 10}
    settings |= {"top_k": [None, None, 50, None], "rule": ["look_up"] * 3 + ["reject"]}
    counts = {"tokens": [10, 40, 20, 30], "accepted": [0, 30, 0, 0], "tried": [10, 40, 0, 0]}
    table = summarise_rounds(pd.DataFrame(settings | counts | {"repetition": [0.0, 0.9, 0.9, 0.9]}))
    assert table.tokens_per_round.tolist() == [2.5, 2, 3] and table.prompts.tolist() == [2, 1, 1]
    assert table.acceptance_rate.isna().tolist() == [False, True, True]
    first = table.iloc[0]
    assert first.acceptance_rate == 0.6 and math.isnan(first.tokens_per_round_low)
    assert first.repetition == pytest.approx(0.72)


@pytest.fixture(scope="module")
def exact():
    """The ladder in float64."""
    return tiny_ladder("float64")


def test_speculative_output_is_the_targets_own_on_the_ladder(exact, unchecked):
    """A few hundred tokens of `make lossless`: every draft under every sampler."""
    samplers = lossless.SAMPLERS.items()
    wanted = {(name, draft) for name, one in samplers for draft in lossless.drafts(exact, one)}
    found = lossless.comparisons(exact, "float64", max_new_tokens=8)
    rows = list(itertools.islice(found, len(wanted)))
    assert all(row["equal"] for row in rows), [row for row in rows if not row["equal"]]
    assert {(row["sampler"], row["draft"]) for row in rows} == wanted


def test_the_long_proof_says_after_each_prompt_what_agreed_in_the_formats_asked_for(
    monkeypatch, capsys
):
    """Control: one text differs, which the line counts and the exit status tells."""
    loaded = []

    def compared(ladder, dtype, wrong=()):
        loaded.append(dtype)
        for number in itertools.count():
            about = {"dtype": dtype, "sampler": "T=0", "prompt": f"code_{number // 3}"}
            yield about | {"draft": "chain", "tokens": 10, "equal": number not in wrong}

    monkeypatch.setattr(lossless, "whole_ladder", lambda dtype: None)
    monkeypatch.setattr(lossless, "comparisons", compared)
    assert lossless.main(["--tokens", "50", "--format", "fast"]) == 0
    assert loaded == ["fast"]
    assert capsys.readouterr().out.splitlines()[:3] == [
        "fast, code_0, T=0: 30 of 50 tokens agree, 0 of 3 texts differ",
        "fast, code_1, T=0: 50 of 50 tokens agree, 0 of 5 texts differ",
        "               generations  equal  tokens",
    ]
    monkeypatch.setattr(lossless, "comparisons", partial(compared, wrong=[4]))
    assert lossless.main(["--tokens", "50", "--format", "float64"]) == 1
    assert "float64, code_1, T=0: 50 of 50 tokens agree, 1 of 5" in capsys.readouterr().out


def rows() -> pd.DataFrame:
    common = {"temperature": 0.0, "top_k": None, "top_p": 1.0, "rule": "look_up"}
    common |= {"sampling": "greedy", "tokens": 10}
    plain = {"draft": "plain", "rounds": 10, "bytes": 100.0}
    plain |= {"target_passes": 10, "target_rows": 10, "target_context_tokens": 50}
    tree = {"draft": "tree", "rounds": 4, "bytes": 50.0}
    tree |= {"target_passes": 4, "target_rows": 20, "target_context_tokens": 20}
    tree |= {"draft_passes": 8, "draft_rows": 16, "draft_context_tokens": 40}
    both = common | plain, common | tree
    return pd.DataFrame([{"prompt": name} | one for name in "abc" for one in both])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_is_missing_or_infinite_is_no_zero(value):
    """Control: a column that a setting lacks wholly counts as 0."""
    table = rows()
    table.loc[table.draft == "plain", "bytes"] = math.nan
    assert (ratios(table, "bytes", "tokens").query("draft == 'plain'").value == 0).all()
    table = rows()
    table.loc[0, "bytes"] = value
    with pytest.raises(ValueError, match="bytes has a finite number in all rows"):
        ratios(table, "bytes", "tokens")


@pytest.mark.parametrize(
    "count",
    [
        partial(ratios, numerator="bytes", denominator="tokens"),
        partial(ratios, numerator="bytes", denominator="tokens", by=["draft"], baseline="plain"),
        partial(per_prompt, column="bytes", baseline="plain"),
        partial(summarise_rounds, by=["draft", "sampling"]),
    ],
)
def test_a_table_without_samplers_in_words_is_told_where_they_come_from(count):
    """Control: the whole table is counted."""
    whole = rows().assign(accepted=1, tried=1, repetition=0.0)
    assert len(count(whole))
    with pytest.raises(ValueError, match="lacks sampling; `sampling` comes from `with_sampling`"):
        count(whole.drop(columns="sampling"))
    with pytest.raises(ValueError, match="the table has no rows"):
        count(whole[:0])


def test_relative_divides_by_the_baseline_on_the_same_prompts():
    found = ratios(rows(), "bytes", "tokens", baseline="plain").set_index("draft")
    assert found.value.to_dict() == {"plain": 1.0, "tree": 0.5}
    many = pd.concat(rows().assign(prompt=rows().prompt + str(copy)) for copy in range(4))
    every = ratios(many, "bytes", "tokens", baseline="plain").set_index("draft")
    assert every.low["tree"] == every.high["tree"] == 0.5 and found.low.isna().all()
    with pytest.raises(ValueError, match=r"greedy: the baseline 'plain' has 2 prompts, 'tree' 3"):
        ratios(rows().drop(index=0), "bytes", "tokens", baseline="plain")
    assert per_prompt(rows(), "bytes", baseline="plain").relative.tolist() == [2.0, 2.0, 2.0]


def test_samplers_have_names():
    named = {(0, None): "greedy", (1.0, 50): "T = 1, top-k 50", (0.7, math.nan): "T = 0.7"}
    named[1.0, None, 0.9] = "T = 1, top-p 0.9"
    assert {sampler: sampling_of(*sampler) for sampler in named} == named


def test_bytes_and_seconds_are_the_sums_over_all_passes_of_all_models():
    shapes = {"target": ModelShape(2, 8, 16), "draft": ModelShape(1, 4, 16)}

    def one_pass(name: str, rows: int) -> float:
        return bytes_moved(shapes[name], passes=1, rows=rows, context_tokens=5)

    plain, tree = generation_bytes(rows(), shapes)[:2]
    assert plain == pytest.approx(10 * one_pass("target", 1))
    assert tree == pytest.approx(4 * one_pass("target", 5) + 8 * one_pass("draft", 2))
    machines = {"target": Machine("a", 1e3, 1e6, 0.5), "draft": Machine("b", 1e3, 1e6)}
    one, two = (
        roofline_seconds(shapes[name], machines[name], rows=n, context=5)
        for name, n in (("target", 5), ("draft", 2))
    )
    assert seconds_at(rows(), shapes, machines)[1] == pytest.approx(4 * one + 8 * two)
    with pytest.raises(ValueError, match="'draft' ran and is not described; there are target"):
        generation_bytes(rows(), {"target": shapes["target"]})


def test_the_shape_of_a_model_has_its_weights_and_another_kind_is_refused(ladder, tmp_path):
    shape = model_shape(load_model(gpt2(tmp_path), "target", device="cpu"))
    assert shape == ModelShape(1, 32, 4096) and shape.weights == 12 * 32**2 + 4096 * 32
    target, draft = model_shape(ladder.target), model_shape(ladder.draft)
    matrices = [part for part in ladder.target.model.parameters() if part.dim() == 2]
    assert target.weights == sum(part.numel() for part in matrices)  # the head is the embedding
    assert (target.layers, target.query_width, target.key_width) == (3, 64, 32)
    assert (draft.layers, draft.vocabulary, target.vocabulary) == (1, tiny.HEAD, 4096)
    assert draft.layer_weights == target.layer_weights
    other = tiny.target_network()
    other.model.layers[1].extra = torch.nn.Linear(3, 5)
    with pytest.raises(ValueError, match=r"it is not of GPT-2's or Llama's kind: .* 92,175"):
        model_shape(CachedModel(other, "it"))


@pytest.mark.parametrize("sampler", [Sampler(0), Sampler(1.0, top_k=50)], ids=["greedy", "top-k"])
def test_every_stack_writes_the_targets_own_tokens(ladder, prompts, sampler, unchecked):
    """Stacks on the middle model are counted too, which the notebook decodes only greedily."""
    settings = staged.staged_settings(ladder, [sampler])
    drafts = {one.name: one.draft for one in settings} | staged.levels(ladder, sampler)
    tokens, chance = ladder.encode(prompts[1]), Chance(3, sampler)
    run = partial(decode, ladder.target, max_new_tokens=12)
    made = {run(draft, tokens, chance).tokens for draft in drafts.values()}
    assert len(made) == 1 and len(drafts) >= 15
    assert isinstance(drafts["target"], NoDraft)


def test_a_stored_table_loses_its_intervals_from_few_prompts():
    """Control: those from ten stay, and so does what is no interval of prompts."""
    ends = {"value": 2.0, "low": 1.0, "ratio_high": 3.0, "low_seconds": 1.0}
    found = without_few(pd.DataFrame([ends | {"prompts": 9}, ends | {"prompts": 10}]))
    assert found.low.isna().tolist() == found.ratio_high.isna().tolist() == [True, False]
    assert found[["value", "low_seconds"]].notna().all().all()


def test_the_summary_of_a_small_sweep_becomes_a_table(ladder, unchecked):
    """Domains count alike whatever their order; of the checks, those that agree are counted."""
    prompts = [load_prompts(domain, "held-out", 1)[0] for domain in DOMAINS]
    settings, drafts = table_settings(ladder), [*table_drafts(ladder)]
    rows = with_sampling(sweep(settings, prompts, ladder, max_new_tokens=6, progress=False))
    rows["domain"] = rows.prompt.str.partition("/")[0]
    table = summarise_domains(rows, rows.assign(agrees=rows.domain != "math"))
    whole = table[table.domain == ALL]
    assert len(table) == (len(DOMAINS) + 1) * len(settings)
    assert (whole.decoded == 4).all() and (whole.agreeing == 3).all()
    assert whole.tokens.sum() == rows.tokens.sum() and whole.draft.tolist() == drafts * 3
    first = rows.groupby(["sampling", "draft"], sort=False)[["tokens", "rounds"]].sum().iloc[0]
    assert whole.tokens_per_round.iloc[0] == pytest.approx(first.tokens / first["rounds"])
    shown = [line.split(" | ")[0].strip("| ") for line in markdown(table).splitlines()]
    assert [name for name in shown if name in drafts] == drafts * 2
