"""A stream of a model's own samples: what the n-gram stage is counted on, because it must predict
the draft and not the language.

Source: Spector and Ré 2023, section 3.2 (120 M tokens sampled from the draft at temperature 1.5).
"""

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import GPT2LMHeadModel

GIVEN = 16  # tokens of training text that a sample starts from; they are not counted
LENGTH = 240
ROWS = 256


def sample(
    model: GPT2LMHeadModel,
    stream: np.ndarray,
    tokens: int,
    *,
    temperature: float = 1.5,
    seed: int = 0,
) -> list[np.ndarray]:
    """At least `tokens` sampled tokens as arrays of 240, each the continuation of a random place in
    `stream`.
    """
    torch.manual_seed(seed)
    places = np.random.default_rng(seed)
    samples: list[np.ndarray] = []
    with tqdm(
        total=tokens, desc=f"samples at temperature {temperature}", unit="token", mininterval=5
    ) as bar:
        while len(samples) * LENGTH < tokens:
            starts = places.integers(len(stream) - GIVEN, size=ROWS)
            given = torch.from_numpy(
                np.stack([stream[at : at + GIVEN] for at in starts]).astype(np.int64)
            ).to(model.device)
            made = model.generate(
                given,
                attention_mask=torch.ones_like(given),
                do_sample=True,
                temperature=temperature,
                top_k=0,
                max_new_tokens=LENGTH,
                eos_token_id=None,
                pad_token_id=0,
            )
            samples.extend(made[:, GIVEN:].cpu().numpy().astype(np.uint16))
            bar.update(ROWS * LENGTH)
    return samples
