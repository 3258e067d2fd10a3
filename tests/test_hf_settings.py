"""Exported settings come back equal, damage is named, and engines' flags say what they lose."""

import copy
import json
import shlex
from dataclasses import replace
from functools import reduce
from importlib.metadata import version
from types import SimpleNamespace

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
from specdec_lib.drafts.paying import FirstPaying
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.suite.hf import export_setting, flags, import_setting
from specdec_lib.suite.hf.flags import print_flags
from specdec_lib.workload import Ladder, load_pair

WARM = Sampler(0.7, top_k=50, top_p=0.95)


def drafts(ladder: Ladder) -> dict[str, Draft]:
    gapped = MatchTable((0.6, 0.2), "by gap", (1.0,), ((0.4, 0.3), (0.9, 0.05)))
    tree = TreeDraft(ladder.draft, budget=8, depth=5, floor=0.01, match=gapped)
    scout = NgramDraft(ladder.katz, budget=6, depth=4, counted_at=1.5)
    parts = ladder.middle, ladder.draft, ladder.max_gram
    return {
        "nothing": NoDraft(),
        "chain": ChainDraft(ladder.draft, 3, siblings="iid"),
        "widths": TreeDraft(ladder.draft, widths=(3, 2, 1), siblings="distinct"),
        "shape": TreeDraft(ladder.draft, shape=Shape((-1, 0, 1, 0)), siblings="top"),
        "budget": tree,
        "n-gram": scout,
        "n-gram widths": NgramDraft(ladder.katz, widths=(2, 1)),
        "Max-Gram": replace(ladder.max_gram, length=6),
        "Max-Gram alone": MaxGram(None, 5, least=2),
        "staged tree": StagedTree(tree, MergedDraft((MaxGram(None, 4), scout)), guided=2),
        "staged chain": StagedChain(ladder.draft, scout, 4),
        "reviewed": Reviewed(ladder.draft, MaxGram(None, 4), lenience=2.5, exempt_max_gram=False),
        "cascade": from_matrix(parts, ((2, 1, 10), (0, 1, 10), (0, 0, 10)), lenience=3.0),
        "first": FirstDraft((MaxGram(None, 8, least=3), tree), least=2),
        "paying": FirstPaying((MaxGram(None, 8, least=3), tree), (1.6, 1.3), (2.0, 1.9), least=2),
    }


def test_a_setting_comes_back_and_writes_the_same(ladder, prompts, unchecked):
    prompt, chance = ladder.encode(prompts[0]), Chance(1, WARM)
    for name, draft in drafts(ladder).items():
        setting = Setting(name, draft, WARM, reject if name in ("chain", "widths") else look_up)
        text = export_setting(setting)
        found = import_setting(text, ladder)
        assert export_setting(found) == text
        assert (found.name, found.sampler, found.rule) == (name, WARM, setting.rule)
        if "MaxGram" not in text:  # which is equal to itself alone
            assert found == setting
        one, other = (
            decode(ladder.target, played.draft, prompt, chance, max_new_tokens=12, rule=played.rule)
            for played in (setting, found)
        )
        assert one.tokens == other.tokens
        assert [each.tree for each in one.rounds] == [each.tree for each in other.rounds]


def test_a_pair_serves_too():
    pair = load_pair(device="cpu")
    setting = Setting("pair", FirstDraft((pair.max_gram, TreeDraft(pair.draft, budget=4))))
    assert export_setting(import_setting(export_setting(setting), pair)) == export_setting(setting)
    assert "AutoModelForSeq2SeqLM" in flags(setting)[0].line


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("colour", 1, "colour: Unexpected keyword argument"),
        ("rule", "believe", "rule: Input should be 'look_up' or 'reject', got 'believe'"),
        ("draft.width", 3, "TreeDraft.* unexpected keyword argument 'width'"),
        ("draft.budget", "16", "budget of TreeDraft must be a whole number .*, got '16'"),
        ("draft.type", "Bush", "type: one of NoDraft, .* got 'Bush'"),
        ("draft.model", {"model": "nobody"}, "the setting needs a model 'nobody'"),
        ("models.draft.vocabulary", 50257, "'draft' with 50257 tokens, .* 'draft' with 4096"),
    ],
)
def test_what_is_wrong_is_named(ladder, path, value, message):
    data = json.loads(export_setting(Setting("a tree", TreeDraft(ladder.draft, budget=4))))
    *outer, last = path.split(".")
    inner = reduce(dict.__getitem__, outer, data)
    inner[last] = value
    with pytest.raises(ValueError, match=message):
        import_setting(json.dumps(data), ladder)


def test_no_json_another_table_and_drafts_of_ones_own_are_refused(ladder):
    with pytest.raises(ValueError, match="Invalid JSON"):
        import_setting("{", ladder)
    text = export_setting(Setting("copies", ladder.max_gram))
    with pytest.raises(ValueError, match=r"bigrams: .* another table of bigrams, or none"):
        import_setting(text, replace(ladder, katz=None))

    class Own:
        def propose(self, context, chance):
            return TokenTree.rooted(context)

    for refused in (export_setting, flags):
        with pytest.raises(ValueError, match="Own"):
            refused(Setting("own", Own()))
    with pytest.raises(ValueError, match="exported is look_up or reject"):
        export_setting(Setting("own rule", NoDraft(), rule=lambda tree, logits, chance: None))
    twin = CachedModel(ladder.middle.model, "draft")
    twins = MergedDraft((ChainDraft(ladder.draft, 2), ChainDraft(twin, 2)))
    with pytest.raises(ValueError, match="two models are called 'draft'"):
        export_setting(Setting("twins", twins))


def test_the_flags_of_a_plain_chain_lose_nothing(ladder):
    _, vllm, sglang, llama = found = flags(Setting("chain", ChainDraft(ladder.draft, 5)))
    assert all(one.lost == () for one in found)
    wanted = {"method": "draft_model", "model": "tiny/draft", "num_speculative_tokens": 5}
    assert json.loads(shlex.split(vllm.line)[1]) == wanted | {"draft_sample_method": "greedy"}
    assert sglang.line == (
        "--speculative-algorithm STANDALONE --speculative-draft-model-path tiny/draft"
        " --speculative-num-steps 5 --speculative-eagle-topk 1 --speculative-num-draft-tokens 6"
    )
    assert llama.line == (
        "--spec-type draft-simple --model-draft tiny/draft --spec-draft-n-max 5"
        " --spec-draft-n-min 0 --spec-draft-p-min 0.0"
    )


def test_copies_become_the_copying_method_of_each_engine(ladder):
    hugging, vllm, sglang, llama = flags(Setting("copies", MaxGram(None, 12, least=3)))
    assert "prompt_lookup_num_tokens=12, max_matching_ngram_size=10" in hugging.line
    wanted = {"prompt_lookup_min": 3, "prompt_lookup_max": 10}
    assert json.loads(shlex.split(vllm.line)[1]).items() >= wanted.items()
    assert sglang.line.endswith(" 13 --speculative-ngram-max-bfs-breadth 1 " + REACH)
    assert llama.line == (
        "--spec-type ngram-simple --spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 12"
    )


REACH = "--speculative-ngram-max-trie-depth 22"
BOTH = (
    "--spec-type ngram-simple,draft-simple --spec-ngram-simple-size-n 2"
    " --spec-ngram-simple-size-m 6 --model-draft tiny/draft --spec-draft-n-max 3"
    " --spec-draft-n-min 0 --spec-draft-p-min 0.0"
)


def test_llama_cpp_takes_copies_and_a_model_in_one_setting_and_others_say_what_is_lost(ladder):
    copies, chain = MaxGram(None, 6, least=2), ChainDraft(ladder.draft, 3)
    bigrams = "the bigram table, if any, that fills up the chain"
    first = "copies are tried first, and the model guesses where there are none"
    for draft, lost in (
        (FirstDraft((copies, chain)), (bigrams,)),
        (
            FirstDraft((copies, chain), least=4),
            ("that copies of fewer than 4 tokens are passed over", bigrams),
        ),
        (FirstDraft((chain, copies)), (f"the order of the drafts: {first}", bigrams)),
        (MergedDraft((chain, copies)), (f"guesses of both in one pass: {first}", bigrams)),
        (
            MergedDraft((copies, chain, ChainDraft(ladder.middle, 2))),
            ("the draft middle", f"guesses of both in one pass: {first}", bigrams),
        ),
    ):
        *others, llama = flags(Setting("several", draft))
        assert (llama.line, llama.lost) == (BOTH, lost)
        (other,) = {one.lost for one in others}
        assert other == ("taking turns with the other drafts",) or type(draft) is MergedDraft
        assert "copies" not in others[0].line and "--speculative-num-steps 3" in others[2].line
    alone = flags(Setting("a model alone", MergedDraft((chain, ChainDraft(ladder.middle, 2)))))
    assert all(one.lost == ("the other drafts' guesses in the same pass",) for one in alone)
    assert "draft-simple" in alone[-1].line and "ngram" not in alone[-1].line


def test_every_line_names_the_version_it_is_for(ladder):
    """That of transformers is the installed one, whose names the test below executes."""
    found = {one.engine: one.version for one in flags(Setting("chain", NoDraft()))}
    assert found.keys() == {"transformers", "vLLM", "SGLang", "llama.cpp"} and all(found.values())
    assert version("transformers").startswith(f"{found['transformers']}.")


GONE = "--draft-max --draft-min --draft-p-min --spec-ngram-size-n --spec-ngram-size-m".split()


def test_no_flag_that_llama_cpp_has_removed_is_printed(ladder):
    for name, draft in drafts(ladder).items():
        line = shlex.split(flags(Setting(name, draft))[-1].line)
        assert not {*line} & {*GONE}
        assert not line or line[0] == "--spec-type"  # or a draft model alone is loaded, and idle


LOST = {  # by draft
    "nothing": (),
    "staged tree": ("the scout", "match tables"),
    "cascade": ("lenience 3.0", "the horizontal cascade of lengths [2, 1, 10]"),
    "n-gram": ("n-gram table",),
    "Max-Gram": ("bigram table",),
    "first": ("shape of the tree",),
    "paying": ("off-switch", "shape of the tree"),
    "widths": ("siblings distinct", "shared noise"),
}


@pytest.mark.parametrize("name", LOST)
def test_what_is_lost_is_said(ladder, name):
    for one in flags(Setting(name, drafts(ladder)[name], WARM)):
        assert all(word in " | ".join(one.lost) for word in LOST[name])
        assert bool(one.lost) == bool(LOST[name])


RATES = MatchTable((0.9, 0.05))


@pytest.mark.parametrize(
    "shape, length",
    [
        ({"widths": (4, 2, 1, 1)}, 4),
        ({"shape": Shape((-1, 0, 0, 1, 3))}, 3),
        ({"budget": 6, "depth": 8, "match": RATES}, 6),
        ({"budget": 6, "depth": 3, "match": RATES}, 3),
        ({"budget": 8, "match": MatchTable((0.3, 0.2, 0.15))}, 2),
    ],
)
def test_a_tree_becomes_the_chain_of_its_own_first_ranked_guesses(ladder, shape, length):
    _, vllm, sglang, _ = flags(Setting("tree", TreeDraft(ladder.draft, **shape)))
    assert f'"num_speculative_tokens": {length},' in vllm.line
    assert f"--speculative-num-steps {length} " in sglang.line


@pytest.mark.parametrize("name", ["nothing", "chain", "budget", "Max-Gram alone"])
def test_the_line_for_transformers_runs_and_writes_the_greedy_text(ladder, prompts, name):
    """The pasted lines, but for the class that loads the assistant."""
    model, given = ladder.target.model, torch.tensor([ladder.encode(prompts[0])])
    inputs = {"input_ids": given, "attention_mask": torch.ones_like(given)}
    inputs |= {"max_new_tokens": 16, "pad_token_id": 0}
    loader = SimpleNamespace(from_pretrained=lambda path: copy.deepcopy(ladder.draft.model))
    names = {"model": model, "inputs": inputs, "AutoModelForCausalLM": loader}
    (line, *_) = (one.line for one in flags(Setting(name, drafts(ladder)[name])))
    *before, last = line.splitlines() or ["model.generate(**inputs, do_sample=False)"]
    exec("\n".join(before), names)
    wanted = model.generate(**inputs, do_sample=False)
    assert eval(last, names).tolist() == wanted.tolist()


def test_the_command_prints_flags_and_losses_without_loading_a_model(ladder, tmp_path, capsys):
    path, setting = tmp_path / "tuned.json", Setting("cascade", drafts(ladder)["cascade"], WARM)
    path.write_text(export_setting(setting), encoding="utf-8")
    print_flags(path)
    out = capsys.readouterr().out
    for one in flags(setting):
        said = (*one.line.splitlines(), *one.lost, one.limits, f"{one.engine} {one.version}\n")
        assert all(line in out for line in said)
    relay = {"type": "Relay", "parts": [{"type": "NoDraft"}], "lengths": [0]}
    data = json.loads(export_setting(Setting("chain", ChainDraft(ladder.draft, 3), WARM)))
    for wrong, said in (
        ({"schema": 1}, "schema: Input should be 2"),
        ({"draft": {"type": "Bush"}}, "no draft of the library's"),
        ({"draft": data["draft"] | {"length": -5}}, "a draft has 0 guesses or more, got -5"),
        ({"draft": relay}, ""),
        ({"sampler": data["sampler"] | {"top_p": 7.0}}, "top_p"),
    ):
        path.write_text(json.dumps(data | wrong))
        with pytest.raises(ValueError, match=rf"tuned\.json: .*{said}"):
            print_flags(path)
