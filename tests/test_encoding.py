"""How a prompt becomes tokens: chat templates, begin tokens, and templates that cannot be used."""

from dataclasses import replace

import pytest
from chats import BEGUN, IDS, TURNS, chat_folder, chat_tokenizer

from specdec_lib.core.chance import Chance
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.comparing import compare_methods
from specdec_lib.show.widgets.trying import DraftTrial
from specdec_lib.workload import Prompt, load_ladder, load_pair
from specdec_lib.workload.encoding import encode_prompt

TEXT = "say hello to everybody ?"
PROMPT = Prompt("greeting", TEXT, "own", "held-out", "here")
BEGIN = IDS["<s>"]


def by_transformers(tokenizer, text):
    turns = [{"role": "user", "content": text}]
    options = {"add_generation_prompt": True, "tokenize": True, "return_dict": False}
    return tuple(tokenizer.apply_chat_template(turns, **options))


@pytest.mark.parametrize("template, begins", [(BEGUN, True), (BEGUN, False), (TURNS, True)])
def test_a_begin_token_stands_where_transformers_puts_it_and_never_twice(template, begins):
    tokenizer = chat_tokenizer(template, begins=begins)
    found = encode_prompt(tokenizer, PROMPT)
    assert found == encode_prompt(tokenizer, TEXT) == by_transformers(tokenizer, TEXT)
    assert found.count(BEGIN) == (template == BEGUN) == (found[0] == BEGIN)
    if begins:  # a control: to encode what the template wrote adds one
        turns = [{"role": "user", "content": TEXT}]
        written = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        assert tuple(tokenizer.encode(written)) == (BEGIN, *found)


@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("ends", [False, True])
def test_without_a_chat_template_the_tokenizer_adds_what_it_adds(begins, ends):
    tokenizer = chat_tokenizer(None, begins=begins, ends=ends)
    found = encode_prompt(tokenizer, TEXT)
    assert found == tuple(tokenizer.encode(TEXT))
    assert found.count(BEGIN) == begins and found.count(IDS["</s>"]) == ends


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A ladder of one's own whose template and tokenizer both write the begin token."""
    root = tmp_path_factory.mktemp("begun")
    tokenizer = chat_tokenizer(BEGUN, begins=True)
    settings = {"eos_token_id": [IDS["</s>"], IDS["<end>"]]}
    folders = [chat_folder(root / name, tokenizer, **settings) for name in ("target", "draft")]
    return load_ladder(*folders, device="cpu")


@pytest.mark.usefixtures("unchecked", "few_turns")
def test_all_that_reads_a_prompt_reads_these_tokens(begun):
    wanted = by_transformers(begun.tokenizer, TEXT)
    assert begun.encode(PROMPT) == wanted and wanted.count(BEGIN) == 1
    knobs = {"prompt": "greeting", "seed": 0, "temperature": 1.0, "text": TEXT}
    trial = DraftTrial(begun, [PROMPT])
    assert trial.read(knobs)[0].tokens == trial.read(knobs | {"text": ""})[0].tokens == wanted
    limits = {"max_new_tokens": 6, "stop_tokens": begun.stop_tokens}
    made = decode(begun.target, NoDraft(), wanted, Chance(0), **limits)
    rows = compare_methods(begun, [PROMPT], max_new_tokens=6)
    assert set(rows.tokens) == {len(made.tokens)} and rows.same.all()


def test_the_source_of_an_encoder_decoder_pair_is_encoded_in_the_same_way():
    tokenizer = chat_tokenizer(None, ends=True)
    pair = replace(load_pair(device="cpu"), tokenizer=tokenizer)
    assert pair.encode(PROMPT).source == encode_prompt(tokenizer, PROMPT)
    assert pair.encode(PROMPT).source[-1] == IDS["</s>"]


WRONG = {
    "{{ raise_exception('only a system may speak') }}": "only a system may speak",
    "{% for message in messages %}": "TemplateSyntaxError: .*endfor",
    "{{ messages[0].content.nothing() }}": "UndefinedError: .*has no attribute 'nothing'",
    "{{ messages[0].content + 1 }}": "TypeError: ",
    "": "must write the text .*leaves out or changes",
    "{{ 'user ' + messages[0].role }}": "must write the text .*leaves out or changes",
    "{{ messages[0].content[:9] }}": "must write the text .*leaves out or changes",
    "{% for part in messages[0].content %}{{ part.text }}{% endfor %}": "must write the text",
}


@pytest.mark.parametrize("template", WRONG)
@pytest.mark.parametrize("prompt, named", [(PROMPT, "the prompt greeting"), (TEXT, "a text")])
def test_a_template_that_raises_or_leaves_the_text_out_is_refused(template, prompt, named):
    tokenizer = chat_tokenizer(template)
    tokenizer.name_or_path = "models/mine"
    pattern = rf"^the chat template of models/mine .*{WRONG[template]}"
    with pytest.raises(ValueError, match=pattern) as refused:
        encode_prompt(tokenizer, prompt)
    assert named in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("written", ["content | trim", "content.replace('\\r\\n', '\\n')"])
def test_a_template_may_strip_a_text_and_mend_its_line_ends(written):
    tokenizer = chat_tokenizer("{{ messages[0]." + written + " }}")
    assert encode_prompt(tokenizer, "  say\r\n\r\nhello \n") == (IDS["say"], IDS["hello"])


def test_a_folder_with_such_a_template_is_named(tmp_path):
    tokenizer = chat_tokenizer("{{ raise_exception('no users') }}")
    folders = [chat_folder(tmp_path / name, tokenizer, eos_token_id=1) for name in ("a", "b")]
    ladder = load_ladder(*folders, device="cpu")
    with pytest.raises(ValueError, match=rf"template of {folders[0]} .* greeting: .*no users"):
        ladder.encode(PROMPT)
