"""What it runs on: prompts, and a ladder of models from largest to smallest; device and dtype are decided here, once."""

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from specdec_lib.chance import Sampler
from specdec_lib.lm import CachedModel
from specdec_lib.ngram import Katz, MaxGram
from specdec_lib.tree import MatchTable

DATA = Path(__file__).resolve().parent.parent / "data"
DOMAINS = ("code", "math", "prose")
SPLITS = ("development", "held-out")
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
MATCH = "match.json"
REMEDY = "restore it with `git checkout data`, or make it anew with `make ladder`"


@dataclass(frozen=True)
class Prompt:
    """One prompt: its text, and where it comes from."""

    name: str
    text: str
    domain: str
    split: str
    origin: str


@dataclass(frozen=True)
class Measured:
    """A match table, and for what it was measured.

    contexts    positions it was measured at
    """

    guesser: str
    obeyed: str
    siblings: str
    sampler: Sampler
    contexts: int
    table: MatchTable

    @classmethod
    def of(cls, stored: dict) -> "Measured":
        """One entry of match.json."""
        sampler = Sampler(stored["temperature"], top_k=stored["top_k"])
        name = f"measured at T={stored['temperature']:g}" + (f", top-k {stored['top_k']}" if stored["top_k"] else "")
        binned = tuple(map(tuple, stored["binned"]))
        table = MatchTable(tuple(stored["rates"]), name, tuple(stored["edges"]), binned)
        return cls(stored["guesser"], stored["obeyed"], stored["siblings"], sampler, stored["contexts"], table)

    def distance(self, sampler: Sampler) -> tuple[float, bool]:
        """How far a sampler is from the one measured: in temperature, then in top-k (no top-p was measured)."""
        return abs(self.sampler.temperature - sampler.temperature), self.sampler.top_k != sampler.top_k


@dataclass(frozen=True)
class Ladder:
    """Models that share a vocabulary, from largest to smallest, and what belongs to them.

    stop_tokens    the end-of-text token: a function or an answer ends there
    measured       match tables measured on development prompts: see `match`
    """

    target: CachedModel
    middle: CachedModel
    draft: CachedModel
    katz: Katz
    tokenizer: PreTrainedTokenizerFast
    stop_tokens: tuple[int, ...]
    card: dict
    measured: tuple[Measured, ...] = ()

    def match(self, guesser: str, sampler: Sampler, *, obeyed: str = "target", siblings: str = "ranked") -> MatchTable:
        """The match table of two models ("draft" guesses, "target" is obeyed), measured under this sampler or under the nearest that was:
        the nearest in temperature, then one with the same top-k; top-p is not looked at.

        Its name says which.  Raises ValueError where no table of these models and siblings was measured.
        """
        fitting = [one for one in self.measured if (one.guesser, one.obeyed, one.siblings) == (guesser, obeyed, siblings)]
        if not fitting:
            known = sorted({f"{one.guesser} for {one.obeyed}, {one.siblings}" for one in self.measured})
            raise ValueError(f"no match table of {guesser} for {obeyed}, {siblings}, was measured; there are: {'; '.join(known) or 'none'}")
        return min(fitting, key=lambda one: one.distance(sampler)).table

    @functools.cached_property
    def max_gram(self) -> MaxGram:
        """Max-Gram with the bigram table of the Katz model."""
        return MaxGram(self.katz.bigrams())

    def encode(self, prompt: Prompt | str) -> tuple[int, ...]:
        """The tokens of a prompt."""
        return tuple(self.tokenizer.encode(prompt if isinstance(prompt, str) else prompt.text))

    def text(self, token: int) -> str:
        """What one token stands for."""
        return self.tokenizer.decode([token], clean_up_tokenization_spaces=False)


def load_prompts(domain: str = "code", split: str = "held-out", limit: int | None = None, *, folder: Path = DATA / "prompts") -> list[Prompt]:
    """The prompts of one domain ("code", "math" or "prose") and split ("development" or "held-out"), in a fixed order.

    limit    the first so many; None is all

    Raises ValueError if there is no such set or split, the limit is below 1, or the file is damaged.
    """
    path = folder / f"{domain}.jsonl"
    if domain not in DOMAINS or split not in SPLITS:
        raise ValueError(f"prompt sets are {', '.join(DOMAINS)} and splits {', '.join(SPLITS)}; got {domain!r} and {split!r}")
    if limit is not None and limit < 1:
        raise ValueError(f"a limit is at least 1 or None for all, got {limit}")
    if not path.is_file():
        raise ValueError(f"prompt file {path} is missing; {REMEDY}")
    try:
        prompts = [Prompt(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (ValueError, TypeError) as error:
        raise ValueError(f"prompt file {path} is damaged ({error}); {REMEDY}") from error
    if not prompts or not all(isinstance(prompt.text, str) and prompt.domain == domain and prompt.split in SPLITS for prompt in prompts):
        raise ValueError(f"prompt file {path} is damaged (it holds {len(prompts)} prompts, or one of another set); {REMEDY}")
    return [prompt for prompt in prompts if prompt.split == split][:limit]


def load_ladder(*, device: str = "auto", dtype: str = "float32", folder: Path = DATA / "ladder") -> Ladder:
    """The embedded ladder, every file checked against its card.

    device    "auto" takes a GPU if there is one; "cpu", "cuda", …
    dtype     "float32", "float64" or "bfloat16"

    Raises ValueError if a file is missing or damaged, or device or dtype are unknown.
    """
    card = checked_card(folder)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token="<|endoftext|>")
    models = {name: load_model(folder / name, name, device=device, dtype=dtype) for name in ("target", "middle", "draft")}
    katz = Katz.load(folder / "katz.npz")
    measured = tuple(map(Measured.of, json.loads((folder / MATCH).read_text(encoding="utf-8")))) if MATCH in card["files"] else ()
    return Ladder(**models, katz=katz, tokenizer=tokenizer, stop_tokens=(tokenizer.eos_token_id,), card=card, measured=measured)


def load_model(source: str | Path, name: str, *, device: str = "auto", dtype: str = "float32") -> CachedModel:
    """A decoder-only model from a local folder in hub format, or from the hub if `source` names no folder.

    Raises ValueError if it cannot be read, or device or dtype are unknown.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}, got {dtype!r}")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device != "cpu" and not (device.partition(":")[0] == "cuda" and torch.cuda.is_available()):
        raise ValueError(f'device is "auto", "cpu" or, where there is a GPU, "cuda" or "cuda:N"; got {device!r}')
    disable_progress_bar()
    local = Path(source).is_dir()
    try:
        model = AutoModelForCausalLM.from_pretrained(str(source), dtype=DTYPES[dtype], local_files_only=local).to(device)
    except (OSError, ValueError, SafetensorError, RuntimeError) as error:
        where = "folder" if local else "hub model (no such local folder)"
        raise ValueError(f"{where} {source} cannot be read as a model on {device}: {error}") from error
    return CachedModel(model, name)


def checked_card(folder: Path) -> dict:
    """The ladder's card, after every file it lists was found whole.

    Raises ValueError naming the file that is missing or damaged.
    """
    path = folder / "card.json"
    if not path.is_file():
        raise ValueError(f"ladder file {path} is missing; {REMEDY}")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        files = card["files"]
        missing = {"tokenizer.json", "katz.npz"} - files.keys()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"ladder file {path} is damaged ({error!r}); {REMEDY}") from error
    if missing:
        raise ValueError(f"ladder file {path} is damaged (it does not list {', '.join(sorted(missing))}); {REMEDY}")
    for name, digest in files.items():
        if not (folder / name).is_file():
            raise ValueError(f"ladder file {folder / name} is missing; {REMEDY}")
        if file_digest(folder / name) != digest:
            raise ValueError(f"ladder file {folder / name} is damaged: its SHA-256 is not the card's; {REMEDY}")
    return card


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seeds(prompts: Sequence[Prompt], seed: int) -> list[int]:
    """A seed per prompt that follows from its name and `seed`: prompts never share noise, whatever is run beside them."""
    return [int.from_bytes(hashlib.sha256(f"{seed}/{prompt.name}".encode()).digest()[:7], "big") for prompt in prompts]
