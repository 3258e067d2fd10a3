"""`specdec distil finish`: puts trained drafts and their n-gram table into the ladder's folder.
`--export DIR` writes the drafts of the ladder as ordinary model folders instead.

`specdec distil matches`: measures the match tables, how often a guess is what the other model
takes, by its rank and gap, at every position of the target's own text, along which rounds accept.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from safetensors.torch import load_file, save
from torch import Tensor
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.files import file_digest, write_together, write_whole
from specdec_lib.core.tree import TokenTree, leading
from specdec_lib.core.verify import reject
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.trees.growing import Siblings, TreeDraft
from specdec_lib.measure.target_text import every_domain
from specdec_lib.measure.text_writing import write_texts
from specdec_lib.models.cached.windows import check_window
from specdec_lib.models.students import read_about, unpack_weights
from specdec_lib.models.table import TableModel
from specdec_lib.suite.distil import ngrams
from specdec_lib.suite.setup import NAME, load_target
from specdec_lib.theory import monotone
from specdec_lib.workload import MATCH, READING, Ladder, Prompt, load_ladder

DRAFTS = ("middle", "draft")
CARD = "card.json"
MAKERS = {"middle.safetensors": "train", "draft.safetensors": "train", "katz.npz": "ngrams"}

SAMPLERS = (Sampler(0.2), Sampler(0.7), Sampler(1.0), Sampler(1.0, top_k=50), Sampler(1.5))
EDGES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
# guesses that are looked at, and tokens of each text
RANKS = 8
LENGTH = 128
PRIOR = 20  # positions at the rank's own rate that are added to each bin: a rare one says little
PAIRS = [(one, "target") for one in ("middle", "draft", "n-gram")]
PAIRS += [("draft", "middle"), ("n-gram", "draft")]
DRAWN = ("iid", "distinct")  # siblings whose rates are measured for the draft and the target
KINDS = [(*pair, "ranked") for pair in PAIRS] + [("draft", "target", one) for one in DRAWN]
READER = ("reading", "target", "ranked")  # the last kind, of a ladder with a draft that reads
Guesses = tuple[Sequence[int], Sequence[float], int]  # tokens or ranks, gaps, and what was taken


def finish(drafts: Path, head: Sequence[int], folder: Path, *, window: int | None = None) -> None:
    """Write the ladder's files but for match tables, and a card that lists them.

    drafts    a folder with the middle model, the draft, and the n-gram table; and with a draft that
              reads the target, if the ladder is to have one
    head      the token ids that the drafts score beside the prompt's
    window    the last tokens that the one-layer draft sees; else what its file says, or all

    Raises ValueError, before anything is written, if a file is missing or not of its kind.
    """
    check_window(window)
    contents = {folder / "head.json": json.dumps(list(head)).encode()}
    for name, maker in MAKERS.items():
        if not (drafts / name).is_file():
            raise ValueError(f"{drafts / name} is missing; `specdec distil {maker}` makes it")
        contents[folder / name] = (drafts / name).read_bytes()
    if window is not None:
        contents[folder / "draft.safetensors"] = with_window(drafts / "draft.safetensors", window)
    layers = load_target().model.layers
    size = sum(one.numel() for layer in layers for one in layer.parameters())
    abouts = {"target": {"layers": len(layers), "parameters": size}}
    for name in DRAFTS:
        abouts[name] = about_draft(drafts / f"{name}.safetensors")
    if window is not None:
        abouts["draft"]["window"] = window
    if (drafts / READING).is_file():
        contents[folder / READING] = (drafts / READING).read_bytes()
        abouts["reading"] = about_draft(drafts / READING)
    samples = sampled_tokens(drafts, folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in (MATCH, READING):
        (folder / old).unlink(missing_ok=True)
    write_together(contents)
    katz = {"order": ngrams.ORDER, "temperature": ngrams.TEMPERATURE, "sampled_tokens": samples}
    write_card({"target": NAME, "models": abouts, "katz": katz}, folder)


def sampled_tokens(drafts: Path, folder: Path) -> int:
    """On how many tokens the n-grams of `drafts` were counted: those of the samples there, else
    what the card of `folder` says of the same n-grams; 0 if neither is known.
    """
    found = sum(np.load(one, mmap_mode="r").size for one in drafts.glob("*-samples-*.npy"))
    if found or not (folder / CARD).is_file():
        return found
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    same = card["files"].get("katz.npz") == file_digest(drafts / "katz.npz")
    return card["katz"]["sampled_tokens"] if same else 0


def about_draft(path: Path) -> dict:
    """What the file of a draft says about it, and its number of weights but for the last norm."""
    sizes = (
        weights.numel()
        for name, weights in unpack_weights(path).items()
        if not name.removeprefix("model.").startswith("norm.")
    )
    return read_about(path) | {"parameters": sum(sizes)}


def with_window(path: Path, window: int) -> bytes:
    """The file of a draft, with the last tokens that it sees."""
    about = read_about(path) | {"window": window}
    return save(load_file(path), {"about": json.dumps(about)})


def write_card(card: dict, folder: Path) -> None:
    """Write card.json, with the SHA-256 of every other file of the folder."""
    unlisted = CARD, "README.md"
    files = sorted(one for one in folder.iterdir() if one.is_file() and one.name not in unlisted)
    listed = {path.name: file_digest(path) for path in files}
    content = json.dumps(card | {"files": listed}, indent=1, ensure_ascii=False) + "\n"
    write_whole(folder / CARD, content.encode())


def export(folder: Path) -> None:
    """Write the ladder's drafts as whole models in hub format, with the target's tokenizer and its
    whole head: a cut head and a window are not part of the format, and a draft that reads the
    target has none.
    """
    ladder = load_ladder(device="cpu")
    for model in (ladder.middle, ladder.draft):
        assert model is not None  # the embedded ladder has both
        network = model.model
        network.set_output_embeddings(ladder.target.model.get_output_embeddings())
        network.save_pretrained(folder / model.name)
        ladder.tokenizer.save_pretrained(folder / model.name)


def store_matches(folder: Path, limit: int | None) -> None:
    """Measure the match tables of a folder's drafts on development prompts, `limit` of each domain;
    write them into it and list them in its card.
    """
    ladder = load_ladder(folder=folder, device="cpu", runtime="auto")
    tables = match_tables(ladder, every_domain("development", limit))
    lines = ",\n".join(json.dumps(table) for table in tables)
    write_whole(folder / MATCH, f"[\n{lines}\n]\n".encode())
    write_card(dict(ladder.card), folder)


def match_tables(ladder: Ladder, prompts: Sequence[Prompt]) -> list[dict]:
    """A match table per pair of models and sampler, as match.json holds them."""
    tables = []
    absent = {"middle"} if ladder.middle is None else set()
    kinds = [kind for kind in KINDS if not absent & {*kind}]
    if ladder.reading is not None:
        kinds.append(READER)
    for sampler in SAMPLERS:
        seen, taken = np.zeros((2, len(kinds), RANKS, len(EDGES) + 1))
        written = write_texts(ladder, prompts, sampler, max_new_tokens=LENGTH)
        for text in tqdm(written, f"match tables, T = {sampler.temperature:g}"):
            for looked in _look(ladder, text.prompt_tokens, text.tokens, text.chance):
                for kind, (tokens, gaps, right) in enumerate(looked):
                    at = kind, range(len(tokens)), np.searchsorted(EDGES, gaps, side="right")
                    seen[at] += 1
                    taken[at] += np.array(tokens) == right
        contexts = sum(len(text.tokens) for text in written)
        how = {"temperature": sampler.temperature, "top_k": sampler.top_k, "contexts": contexts}
        for kind, sums in zip(kinds, zip(seen, taken, strict=True), strict=True):
            head = dict(zip(("guesser", "obeyed", "siblings"), kind, strict=True))
            tables.append(head | how | _rates(*sums, contexts, kind[2] == "ranked"))
    return tables


def _look(
    ladder: Ladder, given: tuple[int, ...], written: tuple[int, ...], chance: Chance
) -> Iterator[list[Guesses]]:
    """What is guessed and taken at every position of one text of the target, per kind."""
    text = given + written
    context = Context.of(given)
    logits = {
        model.name: model.score(context, TokenTree.of_paths(context, [written[:-1]])).float()
        for model in ladder.models
        if model is not ladder.reading
    }
    assert ladder.katz is not None  # the embedded ladder has one
    table = NgramDraft(ladder.katz, widths=(1,), counted_at=ladder.card["katz"]["temperature"])
    for position in range(len(given), len(text)):
        rows = {name: found[position - len(given)] for name, found in logits.items()}
        guessed = {
            name: leading(*chance.rank(rows[name], position, RANKS), RANKS)
            for name in DRAFTS
            if name in rows
        }
        taken = {name: tokens[0] for name, (tokens, _) in guessed.items()}
        taken["target"] = text[position]
        window = text[:position][-ladder.katz.order :]
        guessed["n-gram"] = table.rank(window, RANKS, chance, position)
        ranked = [
            (*guessed[guesser], taken[obeyed])
            for guesser, obeyed in PAIRS
            if guesser in guessed and obeyed in taken
        ]
        drawn = [_drawn(text[:position], rows, siblings, chance) for siblings in DRAWN]
        reader = []
        if ladder.reading is not None:
            known = Context(text[:position], len(given))
            row = ladder.reading.score(known, TokenTree.rooted(known))[0]
            reader = [(*leading(*chance.rank(row, position, RANKS), RANKS), text[position])]
        yield [*ranked, *drawn, *reader]


def _drawn(
    text: tuple[int, ...], rows: dict[str, Tensor], siblings: Siblings, chance: Chance
) -> Guesses:
    """The ranks of drawn siblings, and the one that `reject` accepts, -1 for none."""
    model = TableModel(lambda tokens: rows["draft"], len(rows["draft"]))
    tree = TreeDraft(model, widths=(RANKS,), siblings=siblings).propose(Context.of(text), chance)
    path = reject(tree, rows["target"].expand(len(tree), -1), chance).path
    return range(tree.guesses), [0.0] * tree.guesses, path[0] - 1 if path else -1


def _rates(seen: np.ndarray, taken: np.ndarray, contexts: int, binned: bool) -> dict:
    """The rates: per rank over all positions, and per bin drawn a little towards them."""
    (rates,) = monotone([taken.sum(1) / contexts])
    found = {"rates": [round(rate, 4) for rate in rates], "edges": [], "binned": []}
    if binned:
        drawn = (taken + PRIOR * np.array(rates)[:, None]) / (seen + PRIOR)
        found |= {"edges": list(EDGES), "binned": drawn.T.round(4).tolist()}
    return found
