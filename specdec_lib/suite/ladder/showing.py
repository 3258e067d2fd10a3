"""What the finished ladder can do, in its card: samples to look at, and how much of its text is a
loop.
"""

from pathlib import Path

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.repetition import LOOPING
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.suite.ladder.making import write_card
from specdec_lib.workload import DOMAINS, load_ladder, load_prompts

SAMPLED = Sampler(0.8, top_p=0.95)


def show(folder: Path = DATA / "ladder", *, prompts: int = 40) -> dict:
    """Add three samples and the repetition shares on development prompts to the card, and write the
    card as README.md too.
    """
    ladder = load_ladder(folder=folder, device="cpu")
    texts = folder.parent / "prompts"
    samples = []
    for domain in DOMAINS:
        prompt = load_prompts(domain, "development", 1, folder=texts)[0]
        made = decode(
            ladder.target,
            NoDraft(),
            ladder.encode(prompt),
            Chance(0, SAMPLED),
            max_new_tokens=128,
            stop_tokens=ladder.stop_tokens,
        )
        samples.append(
            {
                "prompt": prompt.text,
                "continuation": ladder.tokenizer.decode(made.tokens, skip_special_tokens=True),
            }
        )
    settings = [Setting("greedy", NoDraft()), Setting("sampled", NoDraft(), SAMPLED)]
    table = sweep(settings, load_prompts("code", "development", prompts, folder=texts), ladder)
    card = ladder.card | {"samples": samples, "repetition": {}}
    for name, group in table.groupby("draft"):
        share = float((group.repetition * group.tokens).sum() / group.tokens.sum())
        card["repetition"][name] = {
            "share": share,
            "prompts": len(group),
            "looping_prompts": int((group.repetition >= LOOPING).sum()),
        }
    write_card(card, folder)
    (folder / "README.md").write_text(page(card), encoding="utf-8")
    return card


def page(card: dict) -> str:
    """The card as a page to read."""
    data, katz = card["data"], card["katz"]
    lines = [
        "# The embedded ladder",
        "",
        "Small GPT-2-shaped models that share one byte-level BPE vocabulary of 4,096 tokens. Made"
        " by `make ladder`; this page is written by it.",
        "",
        "| model | layers × width | parameters | learns from | tokens seen | held-out bits per"
        " byte |",
        "|---|---|---|---|---|---|",
    ]
    for name, model in card["models"].items():
        lines.append(
            f"| {name} | {model['layers']} × {model['width']} | {model['parameters']:,} |"
            f" {model['learns_from']} |"
            f" {model['tokens_seen']:,} | {model['held_out_bits_per_byte']:.3f} |"
        )
    lines += [
        "",
        f"Katz trigram: {katz['ngrams']['pruned']:,} n-grams here, {katz['ngrams']['whole']:,} in"
        " the full table, counted on"
        f" {katz['sampled_tokens']:,} tokens sampled from the draft at temperature"
        f" {katz['temperature']}.",
        "",
        f"Text: the standard library of Python {data['python']} and"
        f" {', '.join(f'{name} {version}' for name, version in data['packages'].items())}"
        f" without their tests: {data['files']:,} files, {data['characters']:,} characters; by"
        " characters 60 % files, 20 % functions,"
        f" 10 % docstrings, 10 % generated word problems. {len(data['held_out_files'])} held-out"
        " and"
        f" {len(data['development_files'])} development files were never trained on (listed in"
        " card.json).",
        "",
        f"Trained on: {card['device']}. Repetition (share of tokens that end an 8-gram generated"
        f" before), {card['repetition']['greedy']['prompts']}"
        f" development code prompts: greedy {card['repetition']['greedy']['share']:.2f}"
        f" ({card['repetition']['greedy']['looping_prompts']} prompts loop), sampled"
        f" {card['repetition']['sampled']['share']:.2f}.",
        "",
        "## Samples (temperature 0.8, top-p 0.95, seed 0)",
    ]
    for sample in card["samples"]:
        lines += ["", "```text", sample["prompt"] + "▸" + sample["continuation"].rstrip(), "```"]
    return "\n".join(lines) + "\n"
