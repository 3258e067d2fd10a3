"""`python -m specdec_lib.gpu.latency`: seconds per pass over rows and context into data/measured/latency_<gpu>.csv.

GPT-2 large's shape and three drafts of 40 million weights, all random: the stock forward of Hugging Face and the lean one, launched kernel by kernel,
and CUDA graphs of the lean one with either attention; beside each, what the bandwidth alone and the whole roofline would allow.
"""

from collections.abc import Callable, Sequence

import torch
from transformers import DynamicCache, GPT2LMHeadModel

from specdec_lib.gpu.setting import SHAPES, Kept, Row, parser, peaks, random_model, recipe, seconds_of, shape_of, show, spread, table_path
from specdec_lib.runtime.forward import ATTENTION
from specdec_lib.runtime.static import StaticNetwork, StaticPass, length_for
from specdec_lib.theory import Machine, bytes_moved, roofline_seconds

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
CONTEXTS = (128, 256, 512, 1024)
POSITIONS = 1536  # the longest context and the most rows, and some
REPEATS, INNER = 9, 5
KEYS = ("model", "mode", "attention", "dtype", "rows", "context_tokens")
COLUMNS = (
    "model", "parameters", "mode", "attention", "dtype", "rows", "context_tokens", "seconds", "low_seconds", "high_seconds", "repeats",
    "bandwidth_seconds", "roofline_seconds", "bytes_per_second", "flops_per_second",
)  # fmt: skip

Pass = Callable[[], object]


def stock_pass(model: GPT2LMHeadModel, rows: int, context: int) -> Pass:
    """The forward of Hugging Face over `rows` tokens after `context` cached ones, the cache cut back each time."""
    device, cache = model.device, DynamicCache(config=model.config)
    tokens = torch.zeros((1, rows), dtype=torch.long, device=device)

    @torch.no_grad()
    def run() -> None:
        model(tokens, past_key_values=cache, use_cache=True)
        cache.crop(-rows)

    with torch.no_grad():
        model(torch.zeros((1, context), dtype=torch.long, device=device), past_key_values=cache, use_cache=True, logits_to_keep=1)
    return run


@torch.no_grad()
def lean_pass(network: StaticNetwork, rows: int, context: int) -> Pass:
    """A static pass over a chain of `rows` tokens after `context` cached ones; the inputs stay, so each replay does the same."""
    one = StaticPass(network, rows, length_for(context + rows + 1))
    sees = torch.ones((rows, context + rows + 1), dtype=torch.bool).tril(context + 1)
    positions = range(context, context + rows)
    one([0] * rows, positions, [place + 1 for place in positions], sees)

    @torch.no_grad()
    def run() -> None:
        one.replay()

    return run


def passes(model: GPT2LMHeadModel, networks: dict[tuple[str, str], StaticNetwork], rows: int, context: int) -> dict[tuple[str, str], Pass]:
    """Everybody's pass by mode and attention."""
    stock = {("Hugging Face eager", "sdpa"): stock_pass(model, rows, context)}
    return stock | {key: lean_pass(network, rows, context) for key, network in networks.items()}


def measured(name: str, model: GPT2LMHeadModel, machine: Machine, place: tuple[int, int], networks: dict, *, repeats: int) -> list[Row]:
    """A row per mode at one number of rows and context."""
    (rows, context), shape = place, shape_of(model)
    runs = passes(model, networks, rows, context)
    timed = seconds_of({str(key): run for key, run in runs.items()}, str(model.device), repeats=repeats, inner=INNER)
    limits = {
        "bandwidth_seconds": bytes_moved(shape, passes=1, rows=rows, context_tokens=context, activations=False) / machine.bytes_per_second,
        "roofline_seconds": roofline_seconds(shape, machine, rows=rows, context=context),
        "bytes_per_second": machine.bytes_per_second,
        "flops_per_second": machine.flops_per_second,
    }
    size = {"model": name, "parameters": model.num_parameters(), "dtype": str(model.dtype).removeprefix("torch.")}
    at = {"rows": rows, "context_tokens": context}
    return [size | {"mode": key[0], "attention": key[1]} | at | spread(timed[str(key)]) | limits for key in runs]


def networks_of(model: GPT2LMHeadModel, slots: int) -> dict[tuple[str, str], StaticNetwork]:
    """The lean network without graphs, and with them where there is a GPU."""
    graphs = model.device.type == "cuda"
    found = {("lean eager", ATTENTION[0]): StaticNetwork(model, slots, graphs=False)}
    if graphs:
        found |= {("graph", attention): StaticNetwork(model, slots, graphs=True, attention=attention) for attention in ATTENTION}
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure what is missing, and print one-row and 64-row passes."""
    options = parser("latency", __doc__)
    options.add_argument("--dtype", default="bfloat16")
    given = options.parse_args(arguments)
    rows, contexts, positions, repeats = ((1, 3), (8,), 64, 2) if given.tiny else (ROWS, CONTEXTS, POSITIONS, REPEATS)
    kept = Kept(table_path(given, "latency"), COLUMNS, KEYS)
    machine = peaks(given.device, given.dtype, tiny=given.tiny)
    for name in SHAPES:
        model = random_model(recipe(name, tiny=given.tiny, positions=positions), given.device, given.dtype)
        for context in contexts:
            networks = networks_of(model, positions)
            for count in rows:
                if not kept.has(model=name, dtype=given.dtype, rows=count, context_tokens=context):
                    kept.add(measured(name, model, machine, (count, context), networks, repeats=repeats), given.device)
    shown = [row for row in kept.rows if int(row["rows"]) in (1, 8, 64) and int(row["context_tokens"]) in (8, 256)]
    print(show(shown, ("model", "mode", "attention", "rows", "seconds", "bandwidth_seconds")))


if __name__ == "__main__":
    main()
