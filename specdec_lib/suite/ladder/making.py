"""The recipe from source text to `data/ladder/`: each step leaves a file in the cache, so an
interrupted run goes on where it was.
"""

import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import GPT2LMHeadModel

from specdec_lib.core.files import DATA, file_digest
from specdec_lib.models.katz.model import Katz
from specdec_lib.suite.ladder import corpus
from specdec_lib.suite.ladder.prompting import make_prompts
from specdec_lib.suite.ladder.sampling import sample
from specdec_lib.suite.ladder.training import Recipe, bits_per_byte, train
from specdec_lib.workload import MATCH

RECIPES = {
    "target": Recipe(layers=6, width=384, heads=6, tokens=11_000_000),
    "middle": Recipe(layers=2, width=256, heads=4, tokens=4_000_000, taught_tokens=2_000_000),
    "draft": Recipe(layers=2, width=128, heads=4, tokens=6_000_000, taught_tokens=2_000_000),
}
KATZ_TOKENS = 4_000_000
KATZ_BYTES = 3_000_000
SHARD = "15MB"
HELD_OUT_CHARACTERS = 4000  # of each held-out file are scored


class Maker:
    """One run of the recipe: a place for what is made and a place for what is needed on the way.

    folder    what is made: data/ladder
    cache     what is needed on the way: token streams, checkpoints, the full Katz table
    scale     1 is the recipe; a smaller number trains on that share of the tokens (to try the
              recipe out)
    """

    def __init__(
        self,
        folder: Path = DATA / "ladder",
        cache: Path = DATA / "cache" / "ladder",
        *,
        scale: float = 1.0,
        device: str = "cpu",
    ) -> None:
        self.folder, self.cache, self.scale, self.device = folder, cache, scale, device
        cache.mkdir(parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)

    def make(self, packages: Sequence[str] = corpus.PACKAGES) -> dict:
        """Every step that is not done yet; the card."""
        files = list(corpus.source_files(packages))
        tokenizer, stream = self.texts(files)
        make_prompts(files, tokenizer, self.folder.parent / "prompts")
        target = self.model("target", stream)
        for name in ("draft", "middle"):
            self.model(name, stream, teacher=target)
        whole, pruned = self.katz(stream)
        return self.card(
            files, tokenizer, packages, {"whole": whole.ngrams, "pruned": pruned.ngrams}
        )

    def texts(self, files: list[corpus.SourceFile]) -> tuple[Tokenizer, np.ndarray]:
        """The tokenizer and the training stream, made anew if the files are not those they were
        made from.
        """
        stored, text, origin = (
            self.cache / "stream.npy",
            self.cache / "tokenizer.json",
            self.cache / "corpus.sha256",
        )
        if not (
            stored.exists()
            and text.exists()
            and origin.exists()
            and origin.read_text() == digest(files)
        ):
            documents = corpus.documents(files)
            tokenizer = corpus.train_tokenizer(documents)
            tokenizer.save(str(text))
            np.save(stored.with_suffix(".partial.npy"), corpus.encode(tokenizer, documents))
            os.replace(stored.with_suffix(".partial.npy"), stored)
            origin.write_text(digest(files))
        shutil.copyfile(text, self.folder / "tokenizer.json")
        return Tokenizer.from_file(str(text)), np.load(stored)

    def model(
        self, name: str, stream: np.ndarray, *, teacher: GPT2LMHeadModel | None = None
    ) -> GPT2LMHeadModel:
        """One model, trained from its checkpoint on, and saved in hub format in bfloat16."""
        recipe = self.recipe(name)
        model = train(recipe, stream, self.cache / f"{name}.safetensors", device=self.device)
        if teacher is not None and recipe.taught_tokens:
            taught = replace(recipe, tokens=recipe.taught_tokens, seed=1)
            model = train(
                taught,
                stream,
                self.cache / f"{name}-taught.safetensors",
                begin=model,
                teacher=teacher,
                device=self.device,
            )
        stored = GPT2LMHeadModel(model.config).to(torch.bfloat16)
        stored.load_state_dict(
            {key: weight.to(torch.bfloat16) for key, weight in model.state_dict().items()}
        )
        shutil.rmtree(self.folder / name, ignore_errors=True)
        stored.save_pretrained(self.folder / name, max_shard_size=SHARD)
        return model

    def recipe(self, name: str) -> Recipe:
        """The recipe of one model at this run's scale."""
        return RECIPES[name].scaled(self.scale)

    def katz(self, stream: np.ndarray) -> tuple[Katz, Katz]:
        """The trigram of the draft's own samples: whole in the cache, pruned in the folder."""
        drawn_from = file_digest(self.folder / "draft" / "model.safetensors")
        whole = self.cache / f"katz-{drawn_from[:12]}-{int(KATZ_TOKENS * self.scale)}.npz"
        if not whole.exists():
            draft = (
                GPT2LMHeadModel.from_pretrained(
                    self.folder / "draft", dtype=torch.float32, local_files_only=True
                )
                .to(self.device)
                .eval()
            )
            samples = sample(draft, stream, int(KATZ_TOKENS * self.scale))
            Katz.fit(samples, corpus.VOCABULARY, order=3).save(whole)
        table = Katz.load(whole)
        pruned = table.pruned(KATZ_BYTES)
        pruned.save(self.folder / "katz.npz")
        return table, pruned

    def card(
        self,
        files: list[corpus.SourceFile],
        tokenizer: Tokenizer,
        packages: Sequence[str],
        ngrams: dict[str, int],
    ) -> dict:
        """What was made, from what, and how good it is; written as card.json."""
        held_out = [file for file in files if file.split == "held-out"]
        (self.folder / MATCH).unlink(missing_ok=True)  # it was measured on other models
        card = {
            "data": {
                "python": platform.python_version(),
                "packages": {name: importlib.metadata.version(name) for name in packages},
                "files": len(files),
                "characters": sum(len(file.text) for file in files),
                "sha256": digest(files),
                "held_out_files": [file.name for file in held_out],
                "development_files": [file.name for file in files if file.split == "development"],
            },
            "models": {name: self._measured(name, held_out, tokenizer) for name in RECIPES},
            "katz": {
                "order": 3,
                "sampled_tokens": int(KATZ_TOKENS * self.scale),
                "temperature": 1.5,
                "ngrams": ngrams,
            },
            "device": torch.cuda.get_device_name()
            if self.device == "cuda"
            else f"CPU, {torch.get_num_threads()} threads",
            "commit": commit(),
            "files": {
                path.relative_to(self.folder).as_posix(): file_digest(path)
                for path in listed(self.folder)
            },
        }
        write_card(card, self.folder)
        return card

    def _measured(self, name: str, held_out: list[corpus.SourceFile], tokenizer: Tokenizer) -> dict:
        texts = [file.text[:HELD_OUT_CHARACTERS] for file in held_out]
        model = (
            GPT2LMHeadModel.from_pretrained(
                self.folder / name, dtype=torch.float32, local_files_only=True
            )
            .to(self.device)
            .eval()
        )
        bits = bits_per_byte(
            model, corpus.encode(tokenizer, texts), sum(len(text.encode()) for text in texts)
        )
        recipe = self.recipe(name)
        taught = recipe.taught_tokens > 0
        log = [
            json.loads(line)
            for line in (self.cache / f"{name}{'-taught' if taught else ''}.jsonl")
            .read_text()
            .splitlines()
        ]
        return {
            "layers": recipe.layers,
            "width": recipe.width,
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "tokens_seen": recipe.tokens + taught * recipe.taught_tokens,
            "learns_from": "text, then the target's distribution" if taught else "text",
            "last_loss": log[-1]["loss"],
            "held_out_bits_per_byte": bits,
        }


def digest(files: Sequence[corpus.SourceFile]) -> str:
    """One SHA-256 over the names and texts of all files."""
    return hashlib.sha256("".join(file.name + file.text for file in files).encode()).hexdigest()


def write_card(card: dict, folder: Path) -> None:
    """Write card.json whole or not at all."""
    partial = folder / "card.partial"
    partial.write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, folder / "card.json")


def listed(folder: Path) -> list[Path]:
    """The files of a folder that its card lists."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.name not in ("card.json", "README.md")
        and path.suffix != ".partial"
    )


def commit() -> str:
    """The commit that the working tree is at."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        cwd=DATA.parent,
        check=False,
    )
    return found.stdout.strip() or "unknown"
