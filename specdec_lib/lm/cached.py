"""Any Hugging Face decoder as a `LanguageModel` that computes every path once."""

import inspect
import time
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.context import Context
from specdec_lib.lm.protocol import Usage, check_root
from specdec_lib.lm.slots import BEFORE, SlotCache
from specdec_lib.tree import TokenTree

SLACK = 32  # slots of dead branches that are carried along rather than moved away
SCRATCH = 128  # slots allocated at first beyond the prompt


class CachedModel:
    """A decoder-only model behind a cache keyed by token path; batch size 1.

    A tree grown level by level costs one row per new node, accepted nodes are known in the next round, and a caller may go back to a
    shorter context, or over to another prompt, without saying so.

    model         in evaluation mode; its device and dtype are used as they are
    name          how records and figures call it
    chunk_rows    a longer prompt is read in pieces of this many tokens

    Raises ValueError for a model whose attention is not full and causal with explicit positions: the tree mask would be wrong.
    """

    def __init__(self, model: PreTrainedModel, name: str, *, chunk_rows: int = 256) -> None:
        _check_attention(model)
        if chunk_rows < 1:
            raise ValueError(f"chunk_rows must be at least 1, got {chunk_rows}")
        self.model = model.eval()
        self.name = name
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.max_positions = int(model.config.get_text_config().max_position_embeddings)
        self.usage = Usage()
        self._chunk_rows = chunk_rows
        self._slots = SlotCache(min(self.max_positions, 1024) + SCRATCH)
        self._known: tuple[tuple[int, ...], list[int]] = ((), [])

    def forget(self) -> None:
        """Drop everything remembered; results stay the same, up to rounding."""
        self._slots.clear()
        self._known = ((), [])

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        """One row of logits per node, root first; see `LanguageModel.score`."""
        check_root(context, tree, self.vocabulary, self.max_positions)
        try:
            path = self._read(context.tokens)
            return torch.stack([self._slots.logits[slot] for slot in self._run(context.tokens, path, tree)])
        except BaseException:
            self.forget()  # an interrupted pass leaves slots half filled
            raise

    def _read(self, tokens: tuple[int, ...]) -> list[int]:
        """The slots of all but the last few of `tokens`: known ones found, long unknown stretches read in chunks."""
        known, slots = self._known
        shared = len(known) if tokens[: len(known)] == known else 0
        path = self._slots.compact(self._slots.find(tokens, slots[:shared]), SLACK)
        self._slots.drop_logits(path)
        self._known = (tokens[: len(path)], path)
        if len(path) == len(tokens) and path[-1] not in self._slots.logits:
            self._slots.forget(path[-2] if len(path) > 1 else BEFORE, tokens[-1])
            path.pop()
        while len(tokens) - len(path) > self._chunk_rows:
            piece = tokens[len(path) : len(path) + self._chunk_rows]
            parents = self._after(path, len(piece))
            path.extend(self._forward(parents, piece, range(len(path), len(path) + len(piece)), keep=1))
        self._known = (tokens[: len(path)], path)
        return path

    def _run(self, tokens: tuple[int, ...], path: list[int], tree: TokenTree) -> list[int]:
        """The slot of every node, after one forward pass over whatever is not known yet."""
        rest = tokens[len(path) :]
        parents, rows, positions = self._after(path, len(rest)), list(rest), list(range(len(path), len(tokens)))
        first = self._slots.used
        slots = [first + len(rest) - 1 if rest else path[-1]]
        fresh: dict[tuple[int, int], int] = {}
        for node in range(1, len(tree)):
            key = (slots[tree.parents[node]], tree.tokens[node])
            slot = self._slots.child(*key)
            if slot is None or slot not in self._slots.logits:
                if key not in fresh:
                    fresh[key] = first + len(rows)
                    parents.append(key[0])
                    rows.append(key[1])
                    positions.append(tree.position(node))
                slot = fresh[key]
            slots.append(slot)
        if rows:
            self._forward(parents, rows, positions, keep=len(fresh) + bool(rest))
            self._known = (tokens, [*path, *range(first, first + len(rest))])
        return slots

    def _after(self, path: list[int], count: int) -> list[int]:
        """Parents of `count` new rows that continue `path` in a chain."""
        if not count:
            return []
        return [path[-1] if path else BEFORE, *range(self._slots.used, self._slots.used + count - 1)]

    @torch.no_grad()
    def _forward(self, parents: Sequence[int], tokens: Sequence[int], positions: Sequence[int], keep: int) -> range:
        """One pass over new rows; the logits of the last `keep` of them are kept."""
        device, dtype = self.model.device, self.model.dtype
        new = self._slots.add(parents, tokens)
        sees = torch.from_numpy(self._slots.mask(new)).to(device)
        mask = torch.zeros(sees.shape, dtype=dtype, device=device).masked_fill_(~sees, torch.finfo(dtype).min)
        started = time.perf_counter()
        logits = self.model(
            input_ids=torch.tensor([tokens], device=device),
            position_ids=torch.tensor([list(positions)], device=device),
            attention_mask=mask[None, None],
            past_key_values=self._slots,
            use_cache=True,
            logits_to_keep=keep,
        ).logits[0]
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        self.usage += Usage(1, len(tokens), time.perf_counter() - started)
        self._slots.filled()
        self._slots.logits |= zip(new[len(new) - keep :], logits, strict=True)
        return new


def _check_attention(model: PreTrainedModel) -> None:
    """Raises ValueError naming what a token tree cannot work with."""
    config, kind = model.config.get_text_config(), model.config.model_type
    taken = inspect.signature(model.forward).parameters
    layers = {*(getattr(config, "layer_types", None) or ()), *(getattr(config, "attention_layers", None) or ())} - {"full_attention", "global"}
    slides = getattr(config, "sliding_window", None) is not None and getattr(config, "use_sliding_window", True)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    reasons = {
        "is an encoder-decoder model": model.config.is_encoder_decoder,
        "is bidirectional": getattr(config, "is_decoder", True) is False and kind in ("bert", "roberta", "electra", "xlm-roberta"),
        f"has layers other than full causal attention ({', '.join(sorted(layers)) or 'a sliding window'})": bool(layers) or slides,
        "takes positions from the mask (ALiBi)": getattr(config, "alibi", False) or kind in ("bloom", "mpt"),
        "takes no position_ids": "position_ids" not in taken,
        "takes no logits_to_keep": "logits_to_keep" not in taken,
        "changes its positions with the length of the text": rope.get("rope_type", rope.get("type")) in ("longrope", "dynamic", "su"),
        f"runs {config._attn_implementation} attention, not sdpa or eager": config._attn_implementation not in ("sdpa", "eager", None),
    }
    for reason, found in reasons.items():
        if found:
            raise ValueError(f"a token tree needs a decoder with full causal attention and explicit positions; {kind} {reason}")
