"""`python -m specdec_lib.specbench RESULT.jsonl [--baseline BASE.jsonl]`: a Spec-Bench result, scored again by sums with intervals."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.places import check_writable, write_whole
from specdec_lib.specbench.answers import Answer, read
from specdec_lib.specbench.scoring import ABSENT, COUNTED, LEFT_OUT, UNCLEAR, common, score
from specdec_lib.specbench.texts import differences

if TYPE_CHECKING:
    from pandas import DataFrame, Series

BONUS = {
    COUNTED: "accept_lengths count the token that the target adds to every round: accepted guesses per round are one less than tokens per round",
    LEFT_OUT: "accept_lengths leave out the token that the target adds to every round: it is added here",
    UNCLEAR: "accept_lengths add up to neither, new tokens or a token per round less, or to both as nearly: taken as published, that token counted",
    ABSENT: "the file has no accept_lengths: nothing is said of rounds",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, score, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m specdec_lib.specbench", description=__doc__)
    parser.add_argument("result", type=Path, help="a result file of Spec-Bench: model_answer/….jsonl")
    parser.add_argument("--baseline", type=Path, help="the result file of plain decoding on the same questions")
    parser.add_argument("--common", action="store_true", help="score the questions that both files have; the others are named")
    parser.add_argument("--csv", type=Path, help="write the table there too")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap")
    given = parser.parse_args(arguments)
    if given.common and given.baseline is None:
        parser.error("--common keeps the questions that two files have: it needs --baseline")
    try:
        if given.csv:
            check_writable(given.csv.parent)
        own, base = read(given.result), read(given.baseline) if given.baseline else None
        if given.common:
            own, base, others = common(own, base)
            print(f"{len(others)} questions are in one file only: {', '.join(map(str, others)) or 'none'}")
        table = score(own, base, seed=given.seed)
    except ValueError as error:
        parser.error(str(error))
    print("\n".join(_told(table, own, base)))
    if given.csv:
        try:
            write_whole(given.csv, table.round(6).to_csv(index=False).encode())
        except OSError as error:
            parser.error(f"{given.csv} cannot be written ({error.strerror})")


def _told(table: "DataFrame", own: Sequence[Answer], base: Sequence[Answer] | None) -> list[str]:
    width = max(map(len, table.task))
    paired = base is not None
    head = f"{'task':{width}}  questions  tokens per second      mean of rates  tokens per round  "
    said = [head + ("speed-up               ratio of means" if paired else "")]
    for _, row in table.iterrows():
        line = f"{row.task:{width}}  {row.questions:9}  {_interval(row, 'tokens_per_second'):21}  {row.mean_of_rates:13.2f}"
        line += f"  {_interval(row, 'tokens_per_round'):16}"
        said.append(line + (f"  {_interval(row, 'speed_up'):21}  {row.ratio_of_means:.2f}" if paired else ""))
    said += [
        "",
        "tokens per second and speed-up: sums ÷ sums, 95 % over questions; mean of rates and ratio of means: what the published script prints",
    ]
    said.append(BONUS[table.bonus.iloc[0]])
    failed = [str(answer.question) for side in (own, base or ()) for answer in side if answer.failed]
    said += [f"failed and left out: questions {', '.join(dict.fromkeys(failed))}"] if failed else []
    return said + (_compared(own, base) if paired else [])


def _compared(own: Sequence[Answer], base: Sequence[Answer]) -> list[str]:
    found = differences(own, base)
    turns = sum(len(choice.turns) for answer in own for choice in answer.choices)
    longer = sum(one.longer for one in found)
    said = [f"texts: {turns - len(found)} of {turns} turns are the same, {longer} only end sooner or later, {len(found) - longer} differ"]
    first = next((one for one in found if not one.longer), None)
    if first is not None:
        said.append(
            f"first difference: question {first.question}, choice {first.choice + 1}, turn {first.turn + 1}, after {first.place} characters:"
            f" {first.own!r}, and the baseline {first.baseline!r}"
        )
    return said


def _interval(row: "Series", name: str) -> str:
    return "–" if math.isnan(row[name]) else f"{row[name]:.2f} ({row[f'{name}_low']:.2f}–{row[f'{name}_high']:.2f})"


if __name__ == "__main__":
    main()
