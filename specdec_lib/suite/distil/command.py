"""`specdec distil write`: lets the target write text to learn from, as shards of token ids.

An interrupted run goes on where it stopped.
"""

from collections.abc import Sequence

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder
from specdec_lib.core.locking import only_process
from specdec_lib.suite.distil.text import TEXT, TextStore, count_text
from specdec_lib.suite.setup import prepare_target


def main(arguments: Sequence[str] | None = None) -> None:
    """Write conversations into shards until there are enough answer tokens; earlier ones count, and
    those whose request is one of the prompts are left out. What there is then is counted.
    """
    pending = cache_folder() / "text.jsonl"
    parser = Parser("distil write", __doc__.partition(": ")[2], writes=[pending])
    add, counted = parser.add_argument, "in all, earlier shards included"
    add("--answer-tokens", type=int, default=5_000_000, help=counted)
    add("--sequences", type=int, default=128, help="how many are written at a time")
    parser.add_common("--out", TEXT)
    given = parser.parse_args(arguments)
    with only_process(given.out):
        store = TextStore(given.out, pending)
        if store.answer_tokens < given.answer_tokens:
            write_text(store, given.answer_tokens, given.sequences)
    print(count_text(store).round(3).to_string())


def write_text(store: TextStore, wanted: int, sequences: int) -> None:
    """Let the target write conversations until the store has so many answer tokens."""
    from tqdm import tqdm

    from specdec_lib.models.loading import load_model
    from specdec_lib.models.tokenizers import load_tokenizer
    from specdec_lib.suite.distil.requests import plain
    from specdec_lib.suite.distil.writing import Writer
    from specdec_lib.workload import DOMAINS, load_prompts

    folder = prepare_target()
    model, tokenizer = load_model(folder, "target", device="cpu").model, load_tokenizer(folder)
    seed = 1000 + sum(1 for _ in store)  # another one for each continuation
    writer = Writer(model, tokenizer, sequences=sequences, seed=seed)
    asked = {plain(one.text) for domain in DOMAINS for one in load_prompts(domain, "all")}
    counts = {"total": wanted, "initial": store.answer_tokens, "unit": "token"}
    with tqdm(**counts, mininterval=5) as bar:
        for one in writer.write():
            if one is not None and plain(writer.request(one.ids, one.start)) not in asked:
                store.add(one)
                bar.update(one.answer_tokens)
            if store.answer_tokens >= wanted:
                break
    store.flush()
