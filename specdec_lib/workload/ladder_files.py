"""Reads a ladder from its files: the embedded one, or one of your own models."""

import json
from pathlib import Path

from specdec_lib.core.files import DATA, PREPARED, checked_card, prepared_folder
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.hub import Source, load_tokenizer, shared_tokenizer, stop_tokens
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.loading import load_model, on_runtime, sources_card
from specdec_lib.models.students import assemble, cut_head
from specdec_lib.workload.ladder import MATCH, Ladder, Measured

HEAD = "head.json"  # the token ids that the drafts score


@checked
def load_ladder(
    target: Source | None = None,
    draft: Source | None = None,
    middle: Source | None = None,
    *,
    tokenizer: Source | None = None,
    device: str = "auto",
    dtype: str = "float32",
    runtime: str = "reference",
    folder: Path = DATA / "ladder",
) -> Ladder:
    """The ladder of the SmolLM2 target and the drafts distilled from it, every file checked against
    its card; or one of your own models.

    target, draft, middle    folders in hub format or names on the hub, such as
                             "openai-community/gpt2-large"; target and draft at least
    tokenizer                a folder with the tokenizer, for models that have none
    device                   "auto" takes a GPU if there is one; "cpu", "cuda", …
    dtype                    "float32", "float64" or "bfloat16"
    runtime                  "reference", "fast", "int8" or "auto": see `load_model`

    Own models must share the target's tokenizer, token by token; rows beyond it may differ. Raises
    ValueError if a file is missing or damaged, or something given does not go together.
    """
    if target is None and draft is None and middle is None and tokenizer is None:
        return _embedded(folder, device, dtype, runtime)
    if target is None or draft is None:
        got = f"target={target!s} and draft={draft!s}"
        raise ValueError(f"a ladder of your own has a target and a draft at least, got {got}")
    given = {"target": target, "middle": middle, "draft": draft}
    sources = {name: source for name, source in given.items() if source is not None}
    options = {"device": device, "dtype": dtype, "runtime": runtime}
    own = shared_tokenizer(sources, tokenizer)
    models: dict[str, LanguageModel] = {}
    for name, source in sources.items():
        rows = None if name == "target" else models["target"].vocabulary
        models[name] = load_model(source, name, tokens=len(own), vocabulary=rows, **options)
    return Ladder(
        target=models["target"],
        middle=models.get("middle"),
        draft=models["draft"],
        katz=None,
        tokenizer=own,
        stop_tokens=stop_tokens(models["target"].model.generation_config, own),
        card=sources_card(sources, models),
    )


def _embedded(folder: Path, device: str, dtype: str, runtime: str) -> Ladder:
    """The prepared target, and the drafts that `specdec distil` made of its layers."""
    card = checked_card(folder, (HEAD, "katz.npz"))
    target = load_model(target_folder(), "target", device=device, dtype=dtype, runtime=runtime)
    head = json.loads((folder / HEAD).read_text(encoding="utf-8"))
    models = {"target": target}
    for name in ("middle", "draft"):
        network = assemble(target.model, folder / f"{name}.safetensors")
        cut_head(network, head)
        models[name] = on_runtime(CachedModel(network, name), runtime)
    tokenizer, tables = load_tokenizer(target_folder()), folder / MATCH
    stored = tables.read_text(encoding="utf-8") if tables.is_file() else "[]"
    return Ladder(
        **models,
        katz=Katz.load(folder / "katz.npz"),
        tokenizer=tokenizer,
        stop_tokens=stop_tokens(target.model.generation_config, tokenizer),
        card=card,
        measured=tuple(map(Measured.of, json.loads(stored))),
    )


def target_folder() -> Path:
    """The folder of the prepared target.  Raises ValueError if there is none."""
    folder = prepared_folder()
    if not (folder / PREPARED).is_file():
        raise ValueError(
            f"the target is not prepared: {folder} is missing. `specdec setup` downloads it once"
            " (98 MB) and converts it (538 MB); or name models of your own: target=…, draft=…"
        )
    return folder
