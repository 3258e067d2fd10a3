"""Generation configurations: end tokens that are joined, and settings that are not applied."""

import warnings

import pytest
import torch
from chats import BEGUN, IDS, TURNS, chat_folder, chat_tokenizer
from transformers import GenerationConfig, LlamaForCausalLM

from specdec_lib.core.chance import Chance
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure import comparing, plan
from specdec_lib.models.generation import (
    NEUTRAL,
    NEUTRAL_SAMPLING,
    generation_notes,
    ignored_settings,
    stop_tokens,
    turn_end,
)
from specdec_lib.suite.hf import Speculative
from specdec_lib.workload import load_ladder
from tests.verbs import run

EOS, END = IDS["</s>"], IDS["<end>"]


@pytest.mark.parametrize(
    "config, template, wanted",
    [
        ({"eos_token_id": EOS}, TURNS, (EOS, END)),
        ({"eos_token_id": END}, TURNS, (END, EOS)),
        ({"eos_token_id": [END, EOS]}, TURNS, (END, EOS)),
        ({"eos_token_id": EOS}, None, (EOS,)),
        ({"eos_token_id": 9}, None, (9, EOS)),
        ({"eos_token_id": EOS}, TURNS.replace("<end>", "?"), (EOS,)),
        ({"eos_token_id": EOS}, TURNS.replace("<end>", ":"), (EOS,)),  # which is unknown
        ({"eos_token_id": EOS}, "{{ raise_exception('no') }}", (EOS,)),
        ({}, BEGUN, (EOS, END)),
        (None, None, (EOS,)),
    ],
)
def test_the_end_tokens_of_configuration_tokenizer_and_template_are_joined(
    config, template, wanted
):
    given = None if config is None else GenerationConfig(**config)
    assert stop_tokens(given, chat_tokenizer(template)) == wanted


def test_the_end_of_a_turn_is_what_the_template_writes_after_an_answer():
    assert turn_end(chat_tokenizer(TURNS)) == turn_end(chat_tokenizer(BEGUN, begins=True)) == END
    assert turn_end(chat_tokenizer("{{ messages[1].content + eos_token }}")) == EOS
    assert turn_end(chat_tokenizer("{{ messages[1].content + ' to ' + eos_token }}")) is None
    assert turn_end(chat_tokenizer("{{ eos_token + messages[0].content }}")) is None


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A pair whose configuration names one end token of two, and a penalty."""
    root, tokenizer = tmp_path_factory.mktemp("pair"), chat_tokenizer(TURNS)
    settings = {"eos_token_id": EOS, "repetition_penalty": 1.5, "no_repeat_ngram_size": 3}
    return [chat_folder(root / name, tokenizer, **settings) for name in ("target", "draft")]


SAID = (
    "a text ends at '<end>' too, which the tokenizer of {0} names and its generation configuration"
    " does not: `generate` would go on",
    "the generation configuration of {0} has settings that are not applied here:"
    " repetition_penalty=1.5, no_repeat_ngram_size=3",
)


def test_loading_says_once_what_is_joined_and_what_is_not_applied(folders):
    with pytest.warns(UserWarning) as told:
        ladder = load_ladder(*folders, device="cpu")
    assert [str(one.message) for one in told] == [one.format(folders[0]) for one in SAID]
    assert ladder.stop_tokens == (EOS, END)
    with warnings.catch_warnings():  # a control: other configurations say nothing
        warnings.simplefilter("error")
        for folder in folders:
            GenerationConfig(eos_token_id=[EOS, END]).save_pretrained(folder)
        load_ladder(*folders, device="cpu")


def test_decoding_ends_where_a_turn_ends_and_the_door_where_generate_does(tmp_path, monkeypatch):
    folder = chat_folder(tmp_path / "one", chat_tokenizer(TURNS), eos_token_id=EOS)
    with pytest.warns(UserWarning, match="'<end>' too"):
        ladder = load_ladder(folder, folder, device="cpu")
    network, prompt = ladder.target.model, ladder.encode("say hello")
    head = network.get_output_embeddings()
    weight = torch.zeros_like(head.weight)
    weight[END] = 1  # whatever it reads, it ends the turn, or begins to
    weight[EOS] = -1
    head.weight.data.copy_(weight)
    with torch.no_grad():
        last = network.model(torch.tensor([prompt])).last_hidden_state[0, -1]
        head.weight.data[END] = last
    limits = {"max_new_tokens": 5, "stop_tokens": ladder.stop_tokens}
    made = decode(ladder.target, NoDraft(), prompt, Chance(0), **limits)
    assert made.tokens == (END,)
    asked = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    given = torch.tensor([prompt])
    written = network.generate(given, **asked)
    assert written.shape[1] > len(prompt) + 1  # it goes on, and so does the door
    door = Speculative(ChainDraft(ladder.draft, 2))
    assert torch.equal(network.generate(given, custom_generate=door, **asked), written)


IGNORED = [
    {"repetition_penalty": 1.1},
    {"no_repeat_ngram_size": 3},
    {"bad_words_ids": [[5]]},
    {"suppress_tokens": [5, 6]},
    {"begin_suppress_tokens": [5]},
    {"forced_bos_token_id": 5},
    {"forced_eos_token_id": 5},
    {"min_length": 4},
    {"min_new_tokens": 4},
    {"sequence_bias": [[[5], -3.0]]},
    {"exponential_decay_length_penalty": (4, 1.3)},
    {"num_beams": 3},
    {"stop_strings": ["."]},
    {"do_sample": True},
    {"do_sample": True, "temperature": 0.6, "top_k": 50, "top_p": 0.9, "min_p": 0.1},
]


@pytest.mark.parametrize("settings", IGNORED)
def test_a_setting_that_would_change_a_text_is_named(settings):
    assert ignored_settings(GenerationConfig(**settings)) == settings


@pytest.mark.parametrize(
    "settings",
    [
        {},
        NEUTRAL | NEUTRAL_SAMPLING,
        {"do_sample": False, "temperature": 0.6, "top_p": 0.9},
        {"suppress_tokens": [], "begin_suppress_tokens": []},
        {"eos_token_id": 2, "pad_token_id": 2, "max_length": 99, "use_cache": True},
    ],
)
def test_a_setting_without_effect_is_not_named(settings):
    assert ignored_settings(GenerationConfig(**settings)) == {}


WITHOUT_EFFECT = set(
    # of length, which `max_new_tokens` gives; of caches, outputs and speed; of the drafts of
    # `generate`; of beams alone; and what merely names tokens or files
    """max_length max_new_tokens use_cache cache_implementation cache_config max_cache_len
    num_return_sequences output_attentions output_hidden_states output_scores output_logits
    return_dict_in_generate pad_token_id bos_token_id eos_token_id decoder_start_token_id
    is_assistant num_assistant_tokens num_assistant_tokens_schedule assistant_confidence_threshold
    prompt_lookup_num_tokens max_matching_ngram_size assistant_early_exit assistant_lookbehind
    target_lookbehind assistant_ensemble_weight speculation_type use_mtp compile_config
    disable_compile continuous_batching_config low_memory prefill_chunk_size early_stopping
    length_penalty diversity_penalty renormalize_logits transformers_version""".split()
)


def test_every_setting_of_the_installed_transformers_is_known():
    known = {name for name in vars(GenerationConfig()) if not name.startswith("_")}
    assert known == {*NEUTRAL, *NEUTRAL_SAMPLING} | WITHOUT_EFFECT


@pytest.fixture
def penalised(folders):
    settings = {"eos_token_id": [EOS, END], "repetition_penalty": 1.5}
    for folder in folders:
        GenerationConfig(**settings).save_pretrained(folder)
    return folders


NOT_APPLIED = "has settings that are not applied here: repetition_penalty=1.5\n"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "verb, module, worker",
    [
        ("compare", comparing, "compare_methods"),
        ("ties", comparing, "greedy_texts"),
        ("plan", plan, "make_plan"),
    ],
)
def test_the_commands_print_once_what_is_not_applied(
    penalised, verb, module, worker, tmp_path, monkeypatch, capsys
):
    class StopError(Exception):
        pass

    def stopped(*_, **__):
        raise StopError

    monkeypatch.setattr(module, worker, stopped)
    line = ["--target", str(penalised[0]), "--draft", str(penalised[1]), "--device", "cpu"]
    line += ["--limit", "1"] + (["--json", str(tmp_path / "p.json")] if verb == "plan" else [])
    with pytest.raises(StopError), warnings.catch_warnings():
        warnings.simplefilter("error")  # they do not warn of it besides
        run(verb, *line)
    assert capsys.readouterr().out.count(NOT_APPLIED) == 1


def test_the_embedded_target_has_nothing_to_say(ladder):
    assert generation_notes(ladder.target.model, ladder.tokenizer) == []
    assert isinstance(ladder.target.model, LlamaForCausalLM)
