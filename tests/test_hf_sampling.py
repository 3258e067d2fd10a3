"""Sampled text through `custom_generate`: any warper, exactly, and its distribution."""

import pytest
import torch
from hfs import PROMPT, TREE, VOCABULARY, drafts, network, written

from specdec_lib.core.chance import Chance, Sampler


def plainly_sampled(seed: int, length: int, **options) -> tuple[int, ...]:
    """The largest of log-probability and noise, by `generate`'s own processors."""
    model, text = network("gpt2"), torch.tensor([PROMPT])
    config = model._prepare_generation_config(None, do_sample=True, **options)[0]
    config._eos_token_tensor = None
    processors = model._get_logits_processor(config, input_ids_seq_length=len(PROMPT))
    torch.manual_seed(seed)
    noise_seed = int(torch.randint(2**62, (1,)))
    with torch.no_grad():
        for _ in range(length):
            scores = processors(text, model(text).logits[:, -1].float())[0]
            noisy = scores.double().log_softmax(-1) + torch.tensor(
                Chance(noise_seed, Sampler(1.0)).noise(text.shape[1], range(VOCABULARY))
            )
            text = torch.cat([text, noisy.argmax()[None, None]], 1)
    return tuple(text[0].tolist())


WARPERS = {
    "temperature": {"temperature": 0.7, "top_k": 0},
    "top-k": {"temperature": 1.3, "top_k": 5},
    "top-p": {"top_p": 0.6, "top_k": 0},
    "all three": {"temperature": 0.8, "top_k": 9, "top_p": 0.8},
    "min-p": {"min_p": 0.1, "top_k": 0},
    "typical": {"typical_p": 0.5, "top_k": 0},
    "cutoffs": {"epsilon_cutoff": 0.02, "eta_cutoff": 0.05, "top_k": 0},
    "top-h": {"top_h": 0.5, "top_k": 0},
    "with a processor": {"temperature": 0.8, "top_k": 9, "repetition_penalty": 1.7},
}


@pytest.mark.parametrize("options", WARPERS.values(), ids=WARPERS)
def test_a_sample_is_what_the_noise_chooses_from_generates_own_distribution(options, unchecked):
    for seed, name in enumerate((TREE, "a cascade", "drawn siblings")):
        for length in (3, 20):
            wanted, draft = plainly_sampled(seed, length, **options), drafts("gpt2")[name]
            torch.manual_seed(seed)
            assert written("gpt2", draft, length=length, do_sample=True, **options) == wanted


def test_samples_have_generates_distribution(unchecked):
    """720 tokens are as surprising as their distribution says, within 3.5 standard deviations; that
    of a temperature of 0.9 in place of 0.6 is 5 away.
    """
    draft = drafts("gpt2")["a tree"]
    torch.manual_seed(5)
    options = {"length": 60, "do_sample": True, "temperature": 0.6, "top_k": 4}
    texts = [written("gpt2", draft, **options) for _ in range(12)]
    assert len(set(texts)) == 12
    assert abs(surprise(texts, 0.6)) < 3.5
    assert abs(surprise(texts, 0.9)) > 5


def surprise(texts: list[tuple[int, ...]], temperature: float) -> float:
    """The tokens' log-probabilities at top-k 4 against their mean, in standard deviations."""
    excess = variance = 0.0
    for text in texts:
        with torch.no_grad():
            rows = network("gpt2")(torch.tensor([text[:-1]])).logits[0, len(PROMPT) - 1 :].double()
        best = rows.topk(4).values / temperature
        logs = best.log_softmax(-1)
        means = (logs.exp() * logs).sum(-1)
        said = rows.gather(1, torch.tensor(text[len(PROMPT) :])[:, None])[:, 0] / temperature
        excess += float((said - best.logsumexp(-1) - means).sum())
        variance += float(((logs.exp() * logs**2).sum(-1) - means**2).sum())
    return excess / variance**0.5


def test_the_seed_fixes_the_text():
    texts, draft = [], drafts("gpt2")[TREE]
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        texts.append(written("gpt2", draft, do_sample=True))
    assert texts[0] == texts[1] != texts[2]
