"""`specdec distil write`: the target writes text to learn from, until it is told to stop."""

import argparse
from pathlib import Path

from tqdm import tqdm

from specdec_lib.core.files import REPOSITORY, cache_folder
from specdec_lib.suite.distil.text import TextStore
from specdec_lib.suite.setup import prepare_target

TEXT = REPOSITORY / "data" / "text"


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="specdec distil", description=__doc__.partition(": ")[2])
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    write = verbs.add_parser("write", help="text that the target writes itself, as shards of ids")
    write.add_argument(
        "--answer-tokens", type=int, default=5_000_000, help="in all, earlier shards included"
    )
    write.add_argument("--sequences", type=int, default=128, help="how many are written at a time")
    write.add_argument("--out", type=Path, default=TEXT, help="where the shards go")
    write_text(**vars(parser.parse_args(arguments)))


def write_text(answer_tokens: int, sequences: int, out: Path) -> None:
    """Write conversations into shards until there are enough answer tokens; an interrupted run goes
    on.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from specdec_lib.suite.distil.writing import Writer

    store = TextStore(out, cache_folder() / "text.jsonl")
    folder = prepare_target()
    model = AutoModelForCausalLM.from_pretrained(folder)
    seed = 1000 + sum(1 for _ in store)  # another one for each continuation
    writer = Writer(model, AutoTokenizer.from_pretrained(folder), sequences=sequences, seed=seed)
    with tqdm(total=answer_tokens, initial=store.answer_tokens, unit="token", mininterval=5) as bar:
        for conversation in writer.write():
            if conversation is not None:
                store.add(conversation)
                bar.update(conversation.answer_tokens)
            if store.answer_tokens >= answer_tokens:
                break
    store.flush()
