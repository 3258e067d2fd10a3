"""Exported settings: every kind of draft comes back equal and writes the same text, damage is
named, and other engines' flags say what they lose.
"""

import json
import shlex
from dataclasses import dataclass, replace

import pytest
import torch

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import MatchTable, Shape, TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade import Reviewed, from_matrix
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.suite.hf import export_setting, flags, import_setting
from specdec_lib.suite.hf.command import main
from specdec_lib.workload import Ladder, load_pair

WARM = Sampler(0.7, top_k=50, top_p=0.95)


def drafts(ladder: Ladder) -> dict[str, Draft]:
    gapped = MatchTable((0.6, 0.2), "by gap", (1.0,), ((0.4, 0.3), (0.9, 0.05)))
    tree = TreeDraft(ladder.draft, budget=8, depth=5, floor=0.01, match=gapped)
    scout = NgramDraft(ladder.katz, budget=6, depth=4, counted_at=1.5)
    return {
        "nothing": NoDraft(),
        "chain": ChainDraft(ladder.draft, 3, siblings="iid"),
        "widths": TreeDraft(ladder.draft, widths=(3, 2, 1), siblings="distinct"),
        "shape": TreeDraft(ladder.draft, shape=Shape((-1, 0, 1, 0)), siblings="top"),
        "budget": tree,
        "n-gram": scout,
        "n-gram widths": NgramDraft(ladder.katz, widths=(2, 1)),
        "Max-Gram": replace(ladder.max_gram, length=6),
        "Max-Gram alone": MaxGram(None, 5, window=8, least=2),
        "staged tree": StagedTree(tree, MergedDraft((MaxGram(None, 4), scout)), guided=2),
        "staged chain": StagedChain(ladder.draft, scout, 4),
        "reviewed": Reviewed(ladder.draft, MaxGram(None, 4), lenience=2.5, exempt_max_gram=False),
        "cascade": from_matrix(
            (ladder.middle, ladder.draft, ladder.max_gram),
            ((2, 1, 10), (0, 1, 10), (0, 0, 10)),
            lenience=3.0,
        ),
        "first": FirstDraft((MaxGram(None, 8, least=3), tree), least=2),
    }


NAMES = (
    *(
        "nothing",
        "chain",
        "widths",
        "shape",
        "budget",
        "n-gram",
        "n-gram widths",
        "Max-Gram",
        "Max-Gram alone",
        "staged tree",
        "staged chain",
    ),
    *("reviewed", "cascade", "first"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_comes_back_and_writes_the_same(ladder, prompts, name, unchecked):
    draft = drafts(ladder)[name]
    setting = Setting(name, draft, WARM, reject if name in ("chain", "widths") else look_up)
    text = export_setting(setting)
    found = import_setting(text, ladder)
    assert export_setting(found) == text and (found.name, found.sampler, found.rule) == (
        name,
        WARM,
        setting.rule,
    )
    if "MaxGram" not in text:  # which is equal to itself alone
        assert found == setting
    one, other = (
        decode(
            ladder.target,
            played.draft,
            ladder.encode(prompts[0]),
            Chance(1, WARM),
            max_new_tokens=12,
            rule=played.rule,
        )
        for played in (setting, found)
    )
    assert [(played.tree, played.path, played.emitted) for played in one.rounds] == [
        (played.tree, played.path, played.emitted) for played in other.rounds
    ]


def test_every_kind_is_tried(ladder):
    assert set(drafts(ladder)) == set(NAMES)


def test_a_bare_draft_is_a_greedy_setting_and_models_may_be_given_by_name(ladder):
    found = import_setting(export_setting(ChainDraft(ladder.draft, 3)), {"draft": ladder.draft})
    assert found == Setting("ChainDraft", ChainDraft(ladder.draft, 3), Sampler(0))
    about = json.loads(export_setting(ChainDraft(ladder.draft, 3)))["models"]["draft"]
    assert about == {"kind": "CachedModel", "vocabulary": 4096, "source": "data/ladder/draft"}
    with_copies = export_setting(replace(ladder.max_gram, length=4))
    assert import_setting(with_copies, {"bigrams": ladder.max_gram.bigrams}).draft.length == 4


def test_a_pair_serves_too():
    pair = load_pair(device="cpu")
    setting = Setting("pair", FirstDraft((pair.max_gram, TreeDraft(pair.draft, budget=4))))
    assert export_setting(import_setting(export_setting(setting), pair)) == export_setting(setting)
    assert "AutoModelForSeq2SeqLM" in flags(setting)[0].line
    assert all("encoder-decoder" in one.lost[0] for one in flags(setting)[1:])


def damaged(text: str, *path: object, value: object = None, drop: bool = False) -> str:
    data = json.loads(text)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    if drop:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    "path, change, message",
    [
        (("schema",), {"value": 2}, "schema: Input should be 1, got 2"),
        (("colour",), {"value": 1}, "colour: Unexpected keyword argument"),
        (("rule",), {"drop": True}, "rule: Field required"),
        (
            ("rule",),
            {"value": "believe"},
            "rule: Input should be 'look_up' or 'reject', got 'believe'",
        ),
        (
            ("draft", "width"),
            {"value": 3},
            "draft has unknown width; its fields are model, widths, budget",
        ),
        (("draft", "budget"), {"value": "16"}, r"draft.budget: .* is wanted, got '16'"),
        (("draft", "budget"), {"value": True}, r"draft.budget: .* is wanted, got True"),
        (("draft", "budget"), {"value": 0}, "draft: a tree with a budget has at least 1 guess"),
        (("draft", "type"), {"value": "Bush"}, "draft.type: one of NoDraft, .* got 'Bush'"),
        (
            ("draft", "model"),
            {"value": {"model": "nobody"}},
            "draft.model: there is no model 'nobody', there are target, middle, draft",
        ),
        (
            ("draft", "match", "rates"),
            {"value": [0.1, 0.9]},
            "draft.match: match rates are probabilities that never rise",
        ),
        (("draft", "match", "rates"), {"value": ["a"]}, r"draft.match.rates: .* is wanted"),
        (
            ("models", "draft", "vocabulary"),
            {"value": 50257},
            "models.draft: the setting needs a model 'draft' with 50257 tokens, one with 4096",
        ),
        (
            ("models", "big"),
            {"value": {"kind": "CachedModel", "vocabulary": 9, "source": "org/big"}},
            "it came from org/big",
        ),
        (("models", "draft", "kind"), {"drop": True}, "models.draft.kind: Field required"),
        (("sampler", "temperature"), {"value": -1.0}, "sampler: temperature must be 0 or"),
        (("sampler",), {"value": 0.7}, "sampler: Input should be .* got 0.7"),
    ],
)
def test_what_is_wrong_is_named(ladder, path, change, message):
    text = export_setting(Setting("a tree", TreeDraft(ladder.draft, budget=4)))
    with pytest.raises(ValueError, match=message):
        import_setting(damaged(text, *path, **change), ladder)


def test_no_json_another_table_and_drafts_of_ones_own_are_refused(ladder):
    with pytest.raises(ValueError, match="Invalid JSON"):
        import_setting("{", ladder)
    text = export_setting(ladder.max_gram)
    for tables in ({}, {"bigrams": ladder.max_gram.bigrams[::-1]}):
        with pytest.raises(
            ValueError, match=r"draft\.bigrams: the setting needs its table of 4096 bigrams"
        ):
            import_setting(text, tables)

    @dataclass(frozen=True)
    class Own:
        def propose(self, context, chance):
            return TokenTree.rooted(context)

    for refused in (export_setting, flags):
        with pytest.raises(ValueError, match="Own"):
            refused(Setting("own", Own()))
    with pytest.raises(ValueError, match="the rules that can be exported are look_up, reject"):
        export_setting(Setting("own rule", NoDraft(), rule=lambda tree, logits, chance: None))


def test_two_models_of_one_name_are_refused_and_not_mixed(ladder):
    twins = MergedDraft(
        (ChainDraft(ladder.draft, 2), ChainDraft(CachedModel(ladder.middle.model, "draft"), 2))
    )
    with pytest.raises(
        ValueError, match="two models are called 'draft'; give them different names"
    ):
        export_setting(twins)


def test_the_flags_of_a_plain_chain_lose_nothing(ladder):
    transformers, vllm, sglang = flags(Setting("chain", ChainDraft(ladder.draft, 5)))
    assert all(one.lost == () for one in (transformers, vllm, sglang))
    assert json.loads(shlex.split(vllm.line)[1]) == {
        "method": "draft_model",
        "model": "data/ladder/draft",
        "num_speculative_tokens": 5,
    }
    assert sglang.line == (
        "--speculative-algorithm STANDALONE --speculative-draft-model-path data/ladder/draft"
        " --speculative-num-steps 5 --speculative-eagle-topk 1 --speculative-num-draft-tokens 6"
    )
    assert (
        transformers.options["num_assistant_tokens"] == 5
        and "assistant_model=assistant, do_sample=False" in transformers.line
    )


def test_what_is_lost_is_said(ladder):
    known, lost = drafts(ladder), {}
    for name, draft in known.items():
        rule = reject if name == "chain" else look_up
        lost[name] = [" | ".join(one.lost) for one in flags(Setting(name, draft, WARM, rule))]
    assert lost["nothing"] == ["", "", ""]
    assert all("the scout" in one and "match table 'by gap'" in one for one in lost["staged tree"])
    assert all(
        "lenience of 3" in one and "the horizontal cascade: 2 cheaper drafts" in one
        for one in lost["cascade"]
    )
    assert all("n-gram table 'n-gram'" in one for one in lost["n-gram"]) and all(
        "bigram table" in one for one in lost["Max-Gram"]
    )
    assert all("taking turns: the guesses of MaxGram" in one for one in lost["first"])
    assert all("without replacement" in one for one in lost["widths"])
    assert (
        "12 of 15 guesses: left is the chain of the 3 first-ranked ones" in lost["widths"][0]
        and "left is the chain" not in lost["widths"][2]
    )
    assert all("noise shared" in one for one in lost["budget"]) and all(
        "noise shared" not in one for one in lost["chain"]
    )


def test_a_tree_becomes_the_chain_of_its_own_first_ranked_guesses(ladder):
    rates = MatchTable((0.9, 0.05))
    for draft, length in (
        (TreeDraft(ladder.draft, widths=(4, 2, 1, 1)), 4),
        (TreeDraft(ladder.draft, shape=Shape((-1, 0, 0, 1, 3))), 3),
        (TreeDraft(ladder.draft, budget=6, depth=8, match=rates), 6),
        (TreeDraft(ladder.draft, budget=6, depth=3, match=rates), 3),
        (TreeDraft(ladder.draft, budget=8, match=MatchTable((0.3, 0.2, 0.15))), 2),
    ):
        _, vllm, sglang = flags(Setting("tree", draft))
        assert (
            vllm.options["num_speculative_tokens"]
            == length
            == sglang.options["--speculative-num-steps"]
        )


@pytest.mark.parametrize("name", ["chain", "budget", "Max-Gram alone"])
def test_the_flags_for_transformers_run_and_write_the_greedy_text(ladder, prompts, name):
    found = flags(Setting(name, drafts(ladder)[name]))[0]
    model, given = ladder.target.model, torch.tensor([ladder.encode(prompts[0])])
    options = {
        "attention_mask": torch.ones_like(given),
        "max_new_tokens": 16,
        "pad_token_id": 0,
        **found.sampling,
    }
    extra = dict(found.options)
    if "assistant_model" in extra:
        assistant = CachedModel(ladder.draft.model, "assistant").model
        kept = assistant.generation_config.to_dict()
        assistant.generation_config.update(
            **{key: value for key, value in extra.items() if key != "assistant_model"}
        )
        extra = {"assistant_model": assistant}
    made = model.generate(given, **options, **extra)
    if "assistant_model" in extra:
        assistant.generation_config.update(**kept)
    assert made.tolist() == model.generate(given, **options).tolist()


def test_the_command_prints_flags_and_losses_without_loading_a_model(ladder, tmp_path, capsys):
    path = tmp_path / "tuned.json"
    path.write_text(
        export_setting(Setting("cascade", drafts(ladder)["cascade"], WARM)), encoding="utf-8"
    )
    main([str(path)])
    out = capsys.readouterr().out
    assert (
        "transformers\n  assistant = AutoModelForCausalLM.from_pretrained('data/ladder/middle')\n"
        in out
    )
    assert (
        "SGLang\n  --speculative-algorithm STANDALONE" in out
        and "  lost: a lenience of 3 in that review\n" in out
    )
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"tuned.json: .*schema: Field required"):
        main([str(path)])
