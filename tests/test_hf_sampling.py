"""Sampled text through `custom_generate`: with any warper it is what the noise chooses from the
distribution that `generate` draws from, token for token.
"""

import pytest
import torch
from hfs import PROMPT, TREE, VOCABULARY, drafts, network, written

from specdec_lib.core.chance import gumbel_noise


def plainly_sampled(seed: int, length: int, **options) -> tuple[int, ...]:
    """The plain loop: `generate`'s own processors on each plain row, and the largest of
    log-probability and noise.
    """
    model, text = network("gpt2"), torch.tensor([PROMPT])
    config = model._prepare_generation_config(None, do_sample=True, **options)[0]
    config._eos_token_tensor = None
    processors = model._get_logits_processor(config, input_ids_seq_length=len(PROMPT))
    torch.manual_seed(seed)
    noise_seed = int(torch.randint(2**62, (1,)))
    with torch.no_grad():
        for _ in range(length):
            scores = processors(text, model(text).logits[:, -1].float())[0]
            noisy = scores.double().log_softmax(-1) + gumbel_noise(
                noise_seed, text.shape[1], VOCABULARY
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
        wanted, draft = plainly_sampled(seed, 20, **options), drafts("gpt2")[name]
        torch.manual_seed(seed)
        assert written("gpt2", draft, length=20, do_sample=True, **options) == wanted
