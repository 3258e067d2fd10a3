"""How many tokens a round needs to pay, which an off-switch goes by; and which size of tree pays
best, where nothing was tuned.
"""

from collections.abc import Iterator, Sequence
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
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts, copies
from specdec_lib.measure.settings.setting import GREEDY
from specdec_lib.measure.settings.usual import COPIES, LEAST, Size, tree_models
from specdec_lib.theory import PassTable, best_tree, expected_tokens
from specdec_lib.workload import Ladder

REPEATS = 9
ROUNDS = 6  # of a draft, and as many of plain decoding, in a turn
PERIOD = 16  # tokens after which the text in which rounds are timed repeats itself
CONTEXT = 256  # tokens that were read before, where the models have room for them
BUDGETS = (1, 2, 3, 4, 6, 8, 12)
DEPTHS = (1, 2, 3, 4, 6)
TRIED = 3  # trees whose rounds are timed
LARGER = 2  # times as many guesses and levels, where they are sure


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
    [needed] = _needed_by_turns(target, [draft], sampler, repeats)
    return needed


@checked
def best_sizes(
    target: LanguageModel, model: LanguageModel, match: MatchTable, *, repeats: int = REPEATS
) -> list[tuple[int, int, float]]:
    """Budget, depth and foretold tokens per round of trees of this model, those first that gain
    most by passes timed here and now. Guesses are taken to be right as often as the match table
    says for their ranks, whatever the gaps. No two trees have the same budget and depth.
    """
    own, verify = _timed(target, model, repeats)
    return _sizes(own, verify, match)


def usual_size(ladder: Ladder, sampler: Sampler) -> Size:
    """The model and the size of the default's tree, and the number of its copies, on this machine.
    Rounds are timed here and now with the `TRIED` trees of each model that gain most by passes, and
    with each number of `COPIES`; of both, the one is taken that brings most tokens for the time of
    its rounds.

    Greedily, where scores are the model's own probabilities, that tree may become `LARGER` where
    its guesses are sure, and is cut where they are not: at the scores at which a guess brings as
    many tokens as its row takes time for, and a level as many as its pass. On the text kept out
    such a round took about as long as one with the tree that was timed, and brought more. Sampled,
    scores are the rates of match tables, and nothing was gained.
    """
    drafts = LadderDrafts(ladder, sampler)
    timed: dict[str, tuple[PassTable, PassTable]] = {}
    sizes: list[tuple[str, int, int, float]] = []
    for name in tree_models(ladder):
        timed[name] = _timed(ladder.target, drafts.models[name], REPEATS)
        own = _sizes(*timed[name], ladder.match(name, sampler))
        sizes += [(name, *size) for size in own[:TRIED]]
    trees = [drafts.tree(budget, depth, model=name) for name, budget, depth, _ in sizes]
    copied = [copies(length, LEAST) for length in COPIES]
    needed = _needed_by_turns(ladder.target, [*trees, *copied], sampler, REPEATS)
    sampled = min(sampler.temperature, 1.0)
    brought = [(1 - sampled) * greedy + sampled * drawn for greedy, drawn in COPIES.values()]
    tokens = [*(hoped for *_, hoped in sizes), *brought]
    gains = [each / price for each, price in zip(tokens, needed, strict=True)]
    tree = max(range(len(sizes)), key=gains.__getitem__)
    copy = max(range(len(sizes), len(gains)), key=gains.__getitem__)
    name, budget, depth, hoped = sizes[tree]
    length = copied[copy - len(sizes)].length
    found = Size(name, budget, depth, 0.0, 0.0, needed[tree], hoped, length, needed[copy])
    if sampler.temperature > 0:
        return found
    floor, deepen = _least_scores(*timed[name], LARGER * budget, gains[tree])
    return found._replace(budget=LARGER * budget, depth=LARGER * depth, floor=floor, deepen=deepen)


def _sizes(own: PassTable, verify: PassTable, match: MatchTable) -> list[tuple[int, int, float]]:
    """`best_sizes` at these seconds of the draft's and the target's passes."""
    rates = match.rates
    found: dict[tuple[int, int, float], float] = {}
    for budget, depth in product(BUDGETS, DEPTHS):
        shape = best_tree([rates], budget, depth)
        hoped = expected_tokens(shape, [rates])
        seconds = shape.depth * own.at(1) + verify.at(shape.guesses + 1)
        found[budget, shape.depth, hoped] = hoped / max(1.0, seconds / verify.at(1))
    return sorted(found, key=found.__getitem__, reverse=True)


def _least_scores(
    own: PassTable, verify: PassTable, budget: int, gain: float
) -> tuple[float, float]:
    """The scores at which a guess, and a level of guesses, bring as many tokens as come otherwise
    in the time of a row, and of a draft's pass and a row.

    gain    tokens in the time of a round of plain decoding
    """
    rows = min(budget, BUDGETS[-1])
    plain = verify.at(1)
    row = max(0.0, (verify.at(rows + 1) - plain) / rows)
    return min(1.0, gain * row / plain), min(1.0, gain * (row + own.at(1)) / plain)


def _needed_by_turns(
    target: LanguageModel, drafts: Sequence[Draft], sampler: Sampler, repeats: int
) -> list[float]:
    """`needed_tokens` of each of several drafts, which take turns with plain decoding."""
    for draft in drafts:
        refuse_learners("timing rounds", draft)
    room = min(model.max_positions for one in drafts for model in models_in(target, one).values())
    length = max(1, min(CONTEXT, room // 2))
    period = min(PERIOD, target.vocabulary)
    text = tuple(target.vocabulary * (at % period) // period for at in range(room))
    start = Context.of(text[:length])
    racing = [NoDraft(), *drafts]
    seconds: list[list[float]] = [[] for _ in racing]
    for turn in range(repeats + 1):
        for own, draft in zip(seconds, racing, strict=True):
            read_prompt(target, draft, start, again=True)
            took = list(_rounds_along(target, draft, start, text, Chance(0, sampler)))
            if turn:
                own += took
    plain, *drafted = map(median, seconds)
    return [max(1.0, one / plain) for one in drafted]


def _timed(
    target: LanguageModel, model: LanguageModel, repeats: int
) -> tuple[PassTable, PassTable]:
    """Seconds of the draft's passes and of the target's, over one row and over the rows of as many
    `BUDGETS` as the models have room for.
    """
    asked = [1, *(guesses + 1 for guesses in BUDGETS)]
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
