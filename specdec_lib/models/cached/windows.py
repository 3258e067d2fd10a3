"""Windows and kept hidden states: what is asked of a model is checked, which windows its own layers
have, and how far it reaches.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor
from transformers import PreTrainedModel

FULL, SLIDING = "full_attention", "sliding_attention"  # kinds of layers


def layer_windows(network: PreTrainedModel) -> list[int | None]:
    """The last tokens that each layer of a network sees, the token itself among them, by its
    configuration; None for all.
    """
    text = network.config.get_text_config()
    window = getattr(text, "sliding_window", None)
    layers = int(getattr(text, "num_hidden_layers", 1))
    unused = not getattr(text, "use_sliding_window", True)
    if window is None or unused or window >= text.max_position_embeddings:
        return [None] * layers
    types = getattr(text, "layer_types", None) or [SLIDING] * layers
    return [window if one == SLIDING else None for one in types]


def masks_by_layer(
    network: PreTrainedModel, make: Callable[[int | None], Tensor]
) -> Tensor | dict[str, Tensor]:
    """What `make` gives for the window of a network's layers, as it takes attention masks: one for
    all layers, or one for each kind of layer.
    """
    windows = layer_windows(network)
    if len(set(windows)) == 1:
        return make(windows[0])
    return {SLIDING: make(next(filter(None, windows))), FULL: make(None)}


@contextmanager
def narrow_windows(network: PreTrainedModel, window: int) -> Iterator[None]:
    """A context in which those layers of a network that have windows have this one."""
    text = network.config.get_text_config()
    before = getattr(text, "sliding_window", None)
    if not any(layer_windows(network)):
        yield
        return
    text.sliding_window = window
    try:
        yield
    finally:
        text.sliding_window = before


def check_window(window: int | None) -> None:
    """Raises ValueError for a window of no token."""
    if window is not None and window < 1:
        raise ValueError(f"a window has 1 token or more, got {window}")


def reach_of(network: PreTrainedModel, window: int | None) -> int | None:
    """On how many tokens, the last among them, the logits after it depend; None for all: each layer
    sees those of the layer below through a window.
    """
    if window is None:
        return None
    layers = int(network.config.get_text_config().num_hidden_layers)
    return layers * (window - 1) + 1


def check_layers(
    layers: Sequence[int],
    network: PreTrainedModel,
    *,
    name: str,
    kept: Sequence[int],
    window: int | None,
) -> None:
    """Raises ValueError unless a network has these layers, the last one apart, and it keeps no
    others and sees its whole context, as the model of this name.
    """
    last = int(network.config.get_text_config().num_hidden_layers) - 2
    if not layers or not all(0 <= layer <= last for layer in layers):
        raise ValueError(
            f"hidden states are kept after layers from 0 to {last} of {name}, got {list(layers)}"
        )
    if kept and tuple(kept) != tuple(layers):
        raise ValueError(
            f"{name} keeps the hidden states after layers {list(kept)}, which another model reads;"
            f" got {list(layers)}"
        )
    if window is not None:
        raise ValueError(f"{name} sees a window only, and keeps no hidden states")
