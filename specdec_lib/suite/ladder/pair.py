"""`specdec ladder pair`: make data/pair and its prompts anew, or go on where an
earlier run stopped.

A T5 target and a T5 draft that write the docstring of a function. The draft learns the text, then
the target's distribution, as the ladder's drafts do. Trained in float32 with AdamW alone: on a CPU
without bfloat16 arithmetic a step of Muon takes longer than the pass before it.
"""

import importlib.metadata
import json
import math
import platform
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from transformers import T5Config, T5ForConditionalGeneration

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, file_digest
from specdec_lib.suite.ladder import corpus, pairing
from specdec_lib.suite.ladder.making import commit, digest, listed, write_card
from specdec_lib.suite.ladder.training import Optimizers, Recipe, fingerprint, fit

WINDOW = pairing.SOURCE_TOKENS + pairing.ANSWER_TOKENS  # one example, at most
TRAINED = {
    "positions": WINDOW,
    "batch_tokens": 16 * WINDOW,
    "hidden_rate": 3e-3,
    "other_rate": 0.15,
}
RECIPES = {
    "target": Recipe(layers=2, width=192, heads=6, tokens=2000 * 16 * WINDOW, **TRAINED),
    "draft": Recipe(
        layers=1,
        width=64,
        heads=2,
        tokens=1600 * 16 * WINDOW,
        taught_tokens=1000 * 16 * WINDOW,
        **TRAINED,
    ),
}


class PairMaker:
    """One run of the recipe; the arguments are those of `Maker`.

    tokenizer    the ladder's, which the pair shares
    """

    def __init__(
        self,
        folder: Path = DATA / "pair",
        cache: Path = DATA / "cache" / "pair",
        *,
        tokenizer: Path = DATA / "ladder" / "tokenizer.json",
        scale: float = 1.0,
        device: str = "cpu",
    ) -> None:
        self.folder, self.cache, self.scale, self.device = folder, cache, scale, device
        cache.mkdir(parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tokenizer, folder / "tokenizer.json")
        self.tokenizer = Tokenizer.from_file(str(tokenizer))

    def make(self, packages: Sequence[str] = corpus.PACKAGES) -> dict:
        """Every step that is not done yet; the card."""
        files = list(corpus.source_files(packages))
        pairing.make_prompts(files, self.tokenizer, self.folder.parent / "prompts")
        examples = {
            split: pairing.examples([file for file in files if file.split == split], self.tokenizer)
            for split in ("training", "held-out")
        }
        target = self.model("target", examples["training"])
        self.model("draft", examples["training"], teacher=target)
        return self.card(files, examples, packages)

    def model(
        self,
        name: str,
        examples: Sequence[pairing.Example],
        *,
        teacher: T5ForConditionalGeneration | None = None,
    ) -> T5ForConditionalGeneration:
        """One model, trained from its checkpoint on, and saved in hub format in bfloat16."""
        recipe = self.recipe(name)
        model = self._fitted(build(recipe), recipe, examples, self.cache / f"{name}.safetensors")
        if teacher is not None and recipe.taught_tokens:
            taught = replace(recipe, tokens=recipe.taught_tokens, seed=1)
            model = self._fitted(
                model, taught, examples, self.cache / f"{name}-taught.safetensors", teacher
            )
        stored = T5ForConditionalGeneration(model.config).to(torch.bfloat16)
        stored.load_state_dict(
            {key: weight.to(torch.bfloat16) for key, weight in model.state_dict().items()}
        )
        shutil.rmtree(self.folder / name, ignore_errors=True)
        stored.save_pretrained(self.folder / name)
        return model

    def recipe(self, name: str) -> Recipe:
        """The recipe of one model at this run's scale."""
        return RECIPES[name].scaled(self.scale)

    def _fitted(
        self,
        model: T5ForConditionalGeneration,
        recipe: Recipe,
        examples: Sequence[pairing.Example],
        checkpoint: Path,
        teacher: T5ForConditionalGeneration | None = None,
    ) -> T5ForConditionalGeneration:
        origin = fingerprint(recipe, pairing.stream(examples), model, teacher)
        model.to(self.device)
        rows = recipe.batch_tokens // recipe.positions

        def batch(step: int) -> pairing.Answers:
            return pairing.batch(examples, rows, recipe.seed, step).to(self.device)

        return fit(
            model,
            _optimizers(model, recipe),
            recipe,
            batch,
            checkpoint,
            origin=origin,
            teacher=teacher,
        )

    def card(
        self,
        files: Sequence[corpus.SourceFile],
        examples: dict[str, list[pairing.Example]],
        packages: Sequence[str],
    ) -> dict:
        """What was made, from what, and how good it is; written as card.json."""
        card = {
            "task": "the first paragraph of a function's docstring from the function without it",
            "data": {
                "python": platform.python_version(),
                "packages": {name: importlib.metadata.version(name) for name in packages},
                "files": len(files),
                "sha256": digest(files),
                "examples": {split: len(found) for split, found in examples.items()},
                "held_out_files": [file.name for file in files if file.split == "held-out"],
                "development_files": [file.name for file in files if file.split == "development"],
            },
            "models": {name: self._measured(name, examples) for name in RECIPES},
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

    def _measured(self, name: str, examples: dict[str, list[pairing.Example]]) -> dict:
        """Tokens seen are by the mean length of an example: each comes equally often."""
        model = (
            T5ForConditionalGeneration.from_pretrained(
                self.folder / name, dtype=torch.float32, local_files_only=True
            )
            .to(self.device)
            .eval()
        )
        recipe, trained = self.recipe(name), examples["training"]
        taught = recipe.taught_tokens > 0
        seen = (recipe.tokens + recipe.taught_tokens) // recipe.positions
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
            "examples_seen": seen,
            "source_tokens_seen": round(
                seen * sum(len(one.source) for one in trained) / len(trained)
            ),
            "answer_tokens_seen": round(
                seen * sum(len(one.answer) for one in trained) / len(trained)
            ),
            "learns_from": "answers, then the target's distribution" if taught else "answers",
            "last_loss": log[-1]["loss"],
            "held_out_bits_per_answer_token": bits_per_token(model, examples["held-out"]),
        }


def build(recipe: Recipe) -> T5ForConditionalGeneration:
    """A T5 of the recipe's shape with seeded random weights, as many layers in the encoder as in
    the decoder.
    """
    torch.manual_seed(recipe.seed)
    config = T5Config(
        vocab_size=recipe.vocabulary,
        d_model=recipe.width,
        d_kv=recipe.width // recipe.heads,
        d_ff=2 * recipe.width,
        num_layers=recipe.layers,
        num_heads=recipe.heads,
        feed_forward_proj="gated-gelu",
        dropout_rate=0.0,
        tie_word_embeddings=True,
        pad_token_id=pairing.END,
        eos_token_id=pairing.END,
        decoder_start_token_id=pairing.END,
    )
    return T5ForConditionalGeneration(config)


@torch.inference_mode()
def bits_per_token(model: T5ForConditionalGeneration, examples: Sequence[pairing.Example]) -> float:
    """Cross-entropy of the answers in bits, ÷ their tokens."""
    total, count = 0.0, 0
    for start in range(0, len(examples), 32):
        batch = pairing.Answers.of(examples[start : start + 32]).to(str(model.device))
        total += F.cross_entropy(batch.logits(model).float(), batch.wanted, reduction="sum").item()
        count += len(batch.wanted)
    return total / count / math.log(2)


def _optimizers(model: T5ForConditionalGeneration, recipe: Recipe) -> Optimizers:
    """T5's embeddings begin with standard deviation 1 and need far longer steps than all else."""
    embeddings = model.shared.weight
    other = [weight for weight in model.parameters() if weight is not embeddings]
    return (
        torch.optim.AdamW(other, lr=recipe.hidden_rate, betas=(0.9, 0.95), weight_decay=0.1),
        torch.optim.AdamW([embeddings], lr=recipe.other_rate, betas=(0.9, 0.95), weight_decay=0.0),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, make, and print the card's models."""
    parser = Parser("ladder pair", __doc__.partition(": ")[2])
    parser.add_argument(
        "--folder", type=Path, default=DATA / "pair", help="what is made (default: data/pair)"
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=DATA / "cache" / "pair",
        help="checkpoints; remove it to begin anew",
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of the recipe's examples, to try it out"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args(arguments)
    if not 0 < given.scale <= 1:
        parser.error(f"--scale must lie in (0, 1], got {given.scale}")
    torch.set_num_threads(given.threads)
    card = PairMaker(given.folder, given.cache, scale=given.scale, device=given.device).make()
    print(json.dumps(card["models"], indent=1))
