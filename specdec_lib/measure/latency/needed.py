"""How many tokens a round needs to pay, which an off-switch goes by; and which size of tree pays
best, where nothing was tuned.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from statistics import median

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import read_prompt, rounds
from specdec_lib.core.decode.parts import models_in, refuse_learners
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import Count, MatchTable
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.latency.passes import curves, pass_tables, time_passes
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts
from specdec_lib.measure.settings.setting import GREEDY
from specdec_lib.measure.settings.usual import COPIED, Size, usual_model
from specdec_lib.theory import PassTable, best_tree, expected_tokens
from specdec_lib.workload import Ladder

REPEATS = 9
ROUNDS = 6  # of a draft, and as many of plain decoding, in a turn
PERIOD = 16  # tokens after which the text in which rounds are timed repeats itself
CONTEXT = 256  # tokens that were read before, where the models have room for them
BUDGETS = (1, 2, 3, 4, 6, 8, 12)
DEPTHS = (1, 2, 3, 4, 6)


@checked
def needed_tokens(
    target: LanguageModel, draft: Draft, *, sampler: Sampler = GREEDY, repeats: Count = REPEATS
) -> float:
    """How many times as long as a round of plain decoding a round with this draft takes: so many
    tokens it has to yield to pay. Rounds of both are timed here and now, in turns, as medians, in a
    text that repeats itself: what copies has something to copy there.

    repeats    turns of `ROUNDS` rounds each, after one that is not timed

    Raises ValueError for a draft that learns while it decodes.
    """
    refuse_learners("timing rounds", draft)
    room = min(model.max_positions for model in models_in(target, draft).values())
    length = max(1, min(CONTEXT, room // 2))
    period = min(PERIOD, target.vocabulary)
    text = tuple(target.vocabulary * (at % period) // period for at in range(room))
    start = Context.of(text[:length])
    seconds: dict[str, list[float]] = {"plain": [], "with the draft": []}
    for turn in range(repeats + 1):
        for own, its in zip(seconds.values(), (NoDraft(), draft), strict=True):
            read_prompt(target, its, start, again=True)
            took = list(_rounds_along(target, its, start, text, Chance(0, sampler)))
            if turn:
                own += took
    plain, drafted = map(median, seconds.values())
    return max(1.0, drafted / plain)


@checked
def best_size(
    target: LanguageModel, model: LanguageModel, match: MatchTable, *, repeats: int = REPEATS
) -> Size:
    """The size with which a tree of this model gains most, by passes timed here and now, where its
    guesses are right as often as the match table says for their ranks, whatever the gaps.
    """
    rates = match.rates
    sizes = [*BUDGETS, COPIED.length]
    own, verify = _timed(target, model, [guesses + 1 for guesses in sizes], repeats)
    copying = _round(own, verify, 0, COPIED.length)
    found = []
    for budget, depth in product(BUDGETS, DEPTHS):
        shape = best_tree([rates], budget, depth)
        needed = _round(own, verify, shape.depth, shape.guesses)
        hoped = expected_tokens(shape, [rates])
        found.append(Size(budget, shape.depth, needed, hoped, copying))
    return max(found, key=lambda size: size.hoped / size.needed)


def usual_size(ladder: Ladder, sampler: Sampler) -> Size:
    """The size of the tree of `settings.usual` on this machine."""
    name = usual_model(ladder)
    model = LadderDrafts(ladder, sampler).models[name]
    return best_size(ladder.target, model, ladder.match(name, sampler))


def _timed(
    target: LanguageModel, model: LanguageModel, rows: Iterable[int], repeats: int
) -> tuple[PassTable, PassTable]:
    """Seconds of the draft's passes and of the target's, over one row and over as many of these as
    the models have room for.
    """
    asked = sorted({1, *rows})
    room = min(target.max_positions, model.max_positions) - len(asked) - 2
    fitting = [1, *(count for count in asked[1:] if count < room)]
    context = max(1, min(CONTEXT, room - fitting[-1]))
    timed = time_passes(
        [target, model], rows=fitting, contexts=[context], repeats=repeats, progress=False
    )
    tables = pass_tables(curves(timed), column="seconds")
    return tables[model.name], tables[target.name]


def _rounds_along(
    target: LanguageModel, draft: Draft, context: Context, text: tuple[int, ...], chance: Chance
) -> Iterator[float]:
    """The seconds of `ROUNDS` rounds along a text that a context begins: of each round, what the
    text has is accepted, and a token that was not read before comes after it.
    """
    for _ in range(ROUNDS):
        left = text[len(context) :]
        if not left:
            return
        played, _ = next(rounds(target, draft, context, chance, max_new_tokens=len(text)))
        yield played.seconds
        context = context.extended(left[: played.tree.guessed(left) + 1])


def _round(own: PassTable, verify: PassTable, levels: int, guesses: int) -> float:
    """The seconds of a round ÷ those of plain decoding's."""
    return max(1.0, (levels * own.at(1) + verify.at(guesses + 1)) / verify.at(1))
