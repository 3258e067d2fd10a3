"""`specdec distil write`: lets the target write text to learn from, as shards of token ids.

An interrupted run goes on where it stopped.
"""

from collections.abc import Sequence
from pathlib import Path

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.suite.distil.text import TextStore
from specdec_lib.suite.setup import prepare_target

TEXT = DATA / "text"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = Parser("distil write", __doc__.partition(": ")[2])
    parser.add_argument(
        "--answer-tokens", type=int, default=5_000_000, help="in all, earlier shards included"
    )
    parser.add_argument("--sequences", type=int, default=128, help="how many are written at a time")
    parser.add_common("--out", TEXT)
    write_text(**vars(parser.parse_args(arguments)))


def write_text(answer_tokens: int, sequences: int, out: Path) -> None:
    """Write conversations into shards until there are `answer_tokens`; earlier ones count."""
    from tqdm import tqdm
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
