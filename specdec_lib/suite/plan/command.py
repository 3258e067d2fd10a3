"""`specdec plan`: finds the fastest setting for a pair of models on this machine and these prompts,
says whether speculation pays at all, and writes the setting as JSON.

Without --target and --draft it takes the embedded models. Run it where nothing else runs.
"""

from pathlib import Path

import torch

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, check_output, write_whole
from specdec_lib.measure.compare.command import add_models
from specdec_lib.measure.compare.verdict import LEAST
from specdec_lib.measure.race.families import with_int8_drafts
from specdec_lib.models.loading import RUNTIMES
from specdec_lib.suite.hf.settings import export_setting
from specdec_lib.suite.plan.planning import Plan, PlanOptions, make_plan
from specdec_lib.workload import load_ladder, load_prompts

ADVICE = {
    "yes": "Speculate",
    "no": "Do not speculate",
    "unclear": "No clear gain, so plain decoding is simpler",
}


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, print the plan and write its setting."""
    usual, parser = PlanOptions(), Parser("plan", __doc__.partition(": ")[2], writes=None)
    add_models(parser, "float32", limit=10, max_new_tokens=usual.tokens)
    add = parser.add_argument
    add("--runtime", default="auto", choices=RUNTIMES, help="of our loop (default: the faster)")
    add("--threads", type=int, help="of torch; by default torch's own choice")
    told = f"of each method, tried on development prompts (default: {usual.settings})"
    add("--settings", type=int, default=usual.settings, help=told)
    add("--json", type=Path, default=Path("plan.json"), help="where the setting is written")
    parser.add_common("--temperature", 0.0)
    parser.add_common("--top-k")
    parser.add_common("--seed", 0)
    given = parser.parse_args(arguments)
    check_output(given.json)
    if given.threads is not None:
        torch.set_num_threads(given.threads)
    sampler = Sampler(given.temperature, top_k=given.top_k)
    development, held_out = (
        load_prompts(given.prompts, split, given.limit) for split in ("development", "held-out")
    )
    named = ("tokenizer", "device", "dtype", "runtime")
    ladder = load_ladder(given.target, given.draft, **{name: vars(given)[name] for name in named})
    ladder = with_int8_drafts(ladder)
    counts = f"{len(development)} development and {len(held_out)} held-out prompts"
    print(f"{ladder.target.runtime}; {counts} of {given.prompts}", flush=True)
    options = PlanOptions(given.max_new_tokens, given.settings, given.seed)
    places = {"keep": cache_folder() / "plan", "say": lambda line: print(line, flush=True)}
    plan = make_plan(ladder, sampler, development, held_out, options, **places)
    write_whole(given.json, export_setting(plan.setting).encode())
    print(told_plan(plan))
    print(
        f"The setting is written to {given.json}; `specdec hf {given.json}` shows other engines'."
    )


def told_plan(plan: Plan) -> str:
    """The plan in words: the verdict, the runner-up, and what a free host or draft would change."""
    _, best, *others = plan.held_out.itertuples(index=False)
    foreseen, advice = plan.development.ms_per_token[0], ADVICE[plan.pays]
    lines = [
        f"\n{advice}: on {best.prompts} held-out prompts {_told(best)} as plain decoding.",
        f"{best.ms_per_token:.2f} ms per token; on development prompts it took {foreseen:.2f}.",
    ]
    lines += [f"Runner-up: {_told(one)}." for one in others]
    if best.method in plan.where.index:
        spent = plan.where.loc[best.method]
        lines.append(
            f"Its time: {spent.verify:.0%} the target's passes, {spent.drafting:.0%} drafting,"
            f" {spent.host:.0%} the program; it would be {spent.free_drafting:.2f} times as fast as"
            f" plain decoding with a free draft, {spent.free_host:.2f} with a free program."
        )
    return "\n".join(lines)


def _told(row: tuple) -> str:
    gain = f"{row.ratio:.2f}"
    if row.prompts >= LEAST:
        gain += f" ({row.ratio_low:.2f}–{row.ratio_high:.2f})"
    return f"{row.method} ({row.setting}) is {gain} times as fast"
