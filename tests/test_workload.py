"""Prompts, match tables, the embedded pair and the papers' numbers: what is loaded and refused."""

import shutil
from dataclasses import replace

import pandas as pd
import pytest
from t5s import generated

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.workload import DOMAINS, SPLITS, Measured, Pair, load_pair, load_prompts, seeds
from specdec_lib.workload.published import number, price_list, published, published_beside


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_prompt_sets_are_whole_and_split_by_file(domain):
    sets = [load_prompts(domain, split) for split in SPLITS]
    assert [len(prompts) for prompts in sets] == [60, 60]
    everything = load_prompts(domain, "all")
    assert len({one.name for one in everything}) == len({one.text for one in everything}) == 120
    assert {prompt.domain for prompt in everything} == {domain}
    if domain in ("code", "summary"):
        development, held_out = ({prompt.origin for prompt in prompts} for prompts in sets)
        assert development.isdisjoint(held_out)


def test_seeds_follow_from_the_prompts_name():
    prompts = load_prompts("code")
    found = seeds(prompts, 0)
    assert len(set(found)) == len(prompts) and seeds(prompts[3:5], 0) == found[3:5]
    assert seeds(prompts, 1) != found


@pytest.fixture
def measured(ladder):
    """The ladder with tables that differ in their first rate alone."""

    def entry(rate, temperature, top_k=None, siblings="ranked"):
        sampler, table = Sampler(temperature, top_k=top_k), MatchTable((rate,), str(rate))
        return Measured("draft", "target", siblings, sampler, 9, table)

    warm = (entry(0.2, 1.0), entry(0.3, 1.0, 50), entry(0.5, 1.0, siblings="iid"))
    return replace(ladder, measured=(entry(0.1, 0.4), *warm, entry(0.4, 1.3)))


NEAREST = {(0,): 0.1, (0.9,): 0.2, (1.3,): 0.4, (0.9, 50): 0.3, (5.0, 50): 0.4, (1.0, 7): 0.2}
NEAREST |= {(1.0, None, 0.9): 0.2}  # temperature, top-k, top-p


def test_the_match_table_is_of_the_sampler_or_nearest_temperature(measured):
    found = {one: measured.match("draft", Sampler(*one)).rates for one in NEAREST}
    assert found == {one: (rate,) for one, rate in NEAREST.items()}


def test_the_match_table_is_that_of_the_models_and_siblings(measured):
    assert measured.match("draft", Sampler(1.3), siblings="iid").rates == (0.5,)
    middle, known = {"obeyed": "middle"}, r"there are: draft for target, iid; draft for .*, ranked$"
    for guesser, unknown in (("middle", {}), ("draft", middle), ("draft", {"siblings": "top"})):
        with pytest.raises(ValueError, match=known):
            measured.match(guesser, Sampler(1.0), **unknown)
    assert replace(measured, measured=()).match("draft", Sampler(1.0)) == MatchTable()


def test_a_stored_table_comes_back_under_a_name_that_says_its_sampler():
    stored = {"guesser": "n-gram", "obeyed": "draft", "siblings": "ranked", "contexts": 5}
    stored |= {"temperature": 0.7, "top_k": None, "rates": [0.5, 0.1], "edges": [1.0]}
    one = Measured.of(stored | {"binned": [[0.3, 0.2], [0.9, 0.0]]})
    binned = ((0.3, 0.2), (0.9, 0.0))
    assert one.table == MatchTable((0.5, 0.1), "measured at T=0.7", (1.0,), binned)
    assert one.sampler == Sampler(0.7)


SOURCE_TOKENS = 192  # the pair was trained on sources of at most so many


@pytest.fixture(scope="module")
def loaded() -> Pair:
    """The embedded pair in float32 on the CPU."""
    return load_pair(device="cpu")


def test_the_prompts_are_whole_and_of_files_that_were_not_trained_on(loaded):
    for split in SPLITS:
        prompts = load_prompts("docstring", split)
        assert len(prompts) == 80 == len({prompt.name for prompt in prompts})
        files = loaded.card["data"][f"{split.replace('-', '_')}_files"]
        assert {prompt.origin for prompt in prompts} <= set(files)
        assert max(len(loaded.encode(prompt).source) for prompt in prompts) < SOURCE_TOKENS
        assert {prompt.domain for prompt in prompts} == {"docstring"}


def test_a_prompt_is_the_source_and_the_decoder_begins_alone(loaded):
    prompt = load_prompts("docstring")[0]
    context = loaded.encode(prompt)
    assert loaded.tokenizer.decode(context.source) == prompt.text
    assert (context.tokens, context.prompt_tokens) == ((0,), 1)
    assert len(loaded.encode("x = 1\n" * 200).source) > SOURCE_TOKENS  # nothing is cut in silence
    copied = loaded.max_gram.propose(context.extended(context.source[:2]), Chance(0)).tokens
    assert copied[1:4] == context.source[2:5]


def test_greedy_output_is_that_of_generate_on_held_out_prompts(loaded):
    draft, limits = ChainDraft(loaded.draft, length=4), {"stop_tokens": loaded.stop_tokens}
    for prompt in load_prompts("docstring", "held-out", 10):
        context = loaded.encode(prompt)
        made = decode(loaded.target, draft, context, Chance(0), max_new_tokens=48, **limits)
        assert made.tokens == generated(loaded.target.model, context.source, 48)


def test_a_missing_damaged_or_unlisted_file_is_refused(tmp_path):
    stored = shutil.copytree(DATA / "pair", tmp_path / "pair")
    for name in ("card.json", "tokenizer.json", "draft/config.json"):
        whole = (stored / name).read_bytes()
        (stored / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=f"{name} is damaged"):
            load_pair(folder=stored)
        (stored / name).unlink()
        with pytest.raises(ValueError, match=f"{name} is missing"):
            load_pair(folder=stored)
        (stored / name).write_bytes(whole)
    card = (stored / "card.json").read_text()
    (stored / "card.json").write_text(card.replace('"draft/model.safetensors"', '"draft/other"'))
    with pytest.raises(ValueError, match=r"does not list draft/model\.safetensors"):
        load_pair(folder=stored)


def test_the_papers_tables_are_as_printed():
    table = published("staged.table1").set_index("sampling")
    assert table.loc["deterministic", "staged"] == 0.23
    assert table.loc["top-k", "speculative"] == 0.48
    assert number("staged.fig1", "baseline speed") == 150
    with pytest.raises(ValueError, match=r"published items are staged\.table1"):
        published("staged.table9")
    prices = {"t5-small": 0.02, "t5-base": 0.04, "t5-large": 0.11, "t5-xxl": 1, "mag": 0}
    assert price_list("pw") == prices  # who has none is left out
    assert price_list("ms")["llama-7b"] == 70000  # as in the paper's code, ten times too much
    assert number("staged.table2", "deterministic", "staged") == 475


@pytest.mark.parametrize(
    "asked, complaint",
    [
        (lambda: number("staged.fig1", "speed"), "one row with quantity 'speed', has 0 in: .*'bas"),
        (lambda: number("cascade.table4", "5"), "one row with K00 '5', has 0 in: "),
        (lambda: number("cascade.table2", "GSM8K"), "has 6 in: "),
        (lambda: number("staged.fig1", "baseline speed", "x"), "columns value, unit; got 'x'"),
        (lambda: number("staged.fig1", "baseline speed", "quantity"), "columns value, unit; got"),
        (lambda: price_list("sw"), "price lists are ms, pw; got 'sw'"),
        (lambda: price_list("model"), "price lists are ms, pw; got 'model'"),
    ],
)
def test_unknown_numbers_of_the_papers_are_refused_with_the_known_ones(asked, complaint):
    with pytest.raises(ValueError, match=complaint):
        asked()


def test_ours_stands_beside_the_papers():
    mine = {"draft": "mine", "sampling": "greedy", "value": 0.3, "low": 0.2, "high": 0.4}
    mine |= {"prompts": 12}
    ours, samplings = pd.DataFrame([mine]), {"deterministic": "greedy"}
    found = published_beside("staged.table1", ours, methods={"staged": "mine"}, samplings=samplings)
    assert found.iloc[0].tolist() == ["greedy", "staged", 0.23, 0.3, 0.2, 0.4, 12]
    with pytest.raises(ValueError, match="one row of ours is needed for 'other', 'greedy', got 0"):
        published_beside("staged.table1", ours, methods={"staged": "other"}, samplings=samplings)
    with pytest.raises(ValueError, match="has the samplings deterministic, top-k; got 'warm'"):
        published_beside(
            "staged.table1", ours, methods={"staged": "mine"}, samplings={"warm": "greedy"}
        )
