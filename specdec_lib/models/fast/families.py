"""What the kinds of model that the compiled pass knows call their parts: a Llama each, with a
difference. How they differ is read from the model itself, see `weights`.
"""

from typing import NamedTuple

JOINED = (
    ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    ("self_attn.o_proj",),
    ("mlp.gate_proj", "mlp.up_proj"),
    ("mlp.down_proj",),
)
INNER = ("self_attn.q_norm", "self_attn.k_norm")


class Family(NamedTuple):
    """One kind of model.

    linears    of a layer: queries, keys and values; attention's output; the MLP's up, after its
               gate if there is one; and down
    before     the norms of what attention and the MLP read; none where they read it as it is
    after      the norms of what attention and the MLP write; none where it is added as it is
    inner      the norms of queries and keys, of each head or of all together; none for none
    last       the norm before the head
    raised     norms multiply by 1 + weight
    layers     the name of the layers
    """

    linears: tuple[tuple[str, ...], ...] = JOINED
    before: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
    after: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    last: str = "norm"
    raised: bool = False
    layers: str = "layers"


LLAMA = Family()
OLMO = Family(
    before=(), after=("post_attention_layernorm", "post_feedforward_layernorm"), inner=INNER
)
GEMMA3 = Family(
    before=("input_layernorm", "pre_feedforward_layernorm"),
    after=("post_attention_layernorm", "post_feedforward_layernorm"),
    inner=INNER,
    raised=True,
)
FAMILIES = {
    "gpt2": Family(
        linears=(("attn.c_attn",), ("attn.c_proj",), ("mlp.c_fc",), ("mlp.c_proj",)),
        before=("ln_1", "ln_2"),
        last="ln_f",
        layers="h",
    ),
    "llama": LLAMA,
    "qwen2": LLAMA,
    "qwen3": Family(inner=INNER),
    "mistral": LLAMA,
    "ministral": LLAMA,
    "smollm3": LLAMA,
    "granite": LLAMA,
    "olmo2": OLMO,
    "olmo3": OLMO,
    "phi3": Family(
        linears=(
            ("self_attn.qkv_proj",),
            ("self_attn.o_proj",),
            ("mlp.gate_up_proj",),
            ("mlp.down_proj",),
        ),
    ),
    "gemma": Family(raised=True),
    "gemma3": GEMMA3,
    "gemma3_text": GEMMA3,
}
