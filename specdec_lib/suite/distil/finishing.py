"""`specdec distil finish`: puts trained drafts and their n-gram table into the ladder's folder.

`--export DIR` writes the drafts of the ladder as ordinary model folders instead.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import specdec_lib.workload
from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, cache_folder, file_digest, write_together, write_whole
from specdec_lib.models.students import read_about
from specdec_lib.suite.distil.lessons import read_head
from specdec_lib.suite.distil.sampling import ORDER, TEMPERATURE
from specdec_lib.suite.setup import NAME, load_target

LADDER = DATA / "ladder"
DRAFTS = ("middle", "draft")
CARD = "card.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Put the drafts into the ladder, or export them."""
    parser = Parser("distil finish", __doc__.partition(": ")[2])
    parser.add_argument("--export", type=Path, help="write ordinary model folders here instead")
    parser.add_common("--out", LADDER)
    given, cache = parser.parse_args(arguments), cache_folder()
    if given.export:
        export(given.export)
    else:
        finish(cache / "drafts", read_head(cache / "lessons"), given.out)


def finish(drafts: Path, head: Sequence[int], folder: Path) -> None:
    """Write the ladder's files, and a card that lists them; match tables are measured anew.

    Raises ValueError, before anything is written, if a draft or the n-gram table is missing.
    """
    contents = {folder / "head.json": json.dumps(list(head)).encode()}
    for name in (*(f"{one}.safetensors" for one in DRAFTS), "katz.npz"):
        if not (drafts / name).is_file():
            raise ValueError(f"{drafts / name} is missing; `specdec distil --help` names its maker")
        contents[folder / name] = (drafts / name).read_bytes()
    layers = load_target().model.layers
    size = sum(one.numel() for one in layers[0].parameters())
    abouts = {"target": {"layers": len(layers), "parameters": len(layers) * size}}
    for name in DRAFTS:
        about = read_about(drafts / f"{name}.safetensors")
        abouts[name] = about | {"parameters": len(about["layers"]) * size}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "match.json").unlink(missing_ok=True)
    write_together(contents)
    samples = [np.load(one, mmap_mode="r").size for one in drafts.glob("*-samples-*.npy")]
    katz = {"order": ORDER, "temperature": TEMPERATURE, "sampled_tokens": sum(samples)}
    write_card({"target": NAME, "models": abouts, "katz": katz}, folder)


def write_card(card: dict, folder: Path) -> None:
    """Write card.json, with the SHA-256 of every other file of the folder."""
    unlisted = CARD, "README.md"
    files = sorted(one for one in folder.iterdir() if one.is_file() and one.name not in unlisted)
    listed = {path.name: file_digest(path) for path in files}
    content = json.dumps(card | {"files": listed}, indent=1, ensure_ascii=False) + "\n"
    write_whole(folder / CARD, content.encode())


def export(folder: Path) -> None:
    """Write the ladder's drafts as whole models in hub format, with the target's tokenizer.

    Their head is the target's whole one: a cut head is not part of the format.
    """
    ladder = specdec_lib.workload.load_ladder(device="cpu")
    for model in (ladder.middle, ladder.draft):
        network = model.model
        network.set_output_embeddings(ladder.target.model.get_output_embeddings())
        network.save_pretrained(folder / model.name)
        ladder.tokenizer.save_pretrained(folder / model.name)
