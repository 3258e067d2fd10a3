"""Tables of trees, rounds, passes, generated text, exact distributions and match rates."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation, Round
from specdec_lib.core.protocols import Usage
from specdec_lib.core.tree import ROOT, MatchTable, Shape, TokenTree
from specdec_lib.core.verify import ChildTest, Choice, FinalDraw, look_up
from specdec_lib.drafts.cascade.matrix import Matrix
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.show.figures.theme import visible
from specdec_lib.theory import Rates
from specdec_lib.theory.trees import path_probabilities

TokenText = Callable[[int], str]
CANDIDATES = ("target's choice", "runner-up")


def nodes(tree: TokenTree, *, labels: Sequence[str], path: Sequence[int] = ()) -> pd.DataFrame:
    """A row per node: its place, token, source and score, and whether it was accepted.

    labels    the text of each node's token, root first; ValueError unless there is one per node
    path      accepted nodes, from below the root on; ValueError unless they follow the edges
    """
    if len(labels) != len(tree):
        raise ValueError(f"{len(tree)} nodes, root first, need as many labels, got {len(labels)}")
    check_path(tree, path)
    places: dict[str, Sequence[int]] = {"parent": tree.parents, "depth": tree.depths}
    places["position"] = [tree.position(node) for node in range(len(tree))]
    guesses = {"token": labels, "source": tree.sources, "score": tree.scores}
    accepted = [node in path for node in range(len(tree))]
    return pd.DataFrame({"node": range(len(tree)), **places, **guesses, "accepted": accepted})


def check_path(tree: TokenTree, path: Sequence[int]) -> None:
    """Raises ValueError unless these nodes follow the tree's edges from below the root on."""
    for parent, node in zip((ROOT, *path), path, strict=False):
        if not 0 < node < len(tree) or tree.parents[node] != parent:
            raise ValueError(f"a path follows the tree's edges from the root on, got {tuple(path)}")


def walk(
    tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance, *, text: TokenText
) -> pd.DataFrame:
    """Two rows per node that `look_up` comes to, or one where sampling leaves one token alone: the
    target's choice there and the runner-up, with white space shown; `position` of that token; its
    log-probability (at temperature 0 the unwarped one), its noise and their sum, in nats; and for
    the choice whether it is among the node's children, which the walk then goes to.
    """
    events: list[Choice | ChildTest | FinalDraw] = []
    look_up(tree, target_logits, chance, trace=events.append)
    rows = []
    for node, _, child in (event for event in events if isinstance(event, Choice)):
        position = tree.position(node) + 1
        ranked, _ = chance.rank(target_logits[node], position, 2)
        logits = target_logits[node]
        warped = chance.sampler.temperature > 0
        log_probs = chance.sampler.probs(logits).log() if warped else logits.log_softmax(-1)
        held = "no: emitted" if child is None else "yes: followed"
        for candidate, token, goes in zip(CANDIDATES, ranked, (held, ""), strict=False):
            one, noise = float(log_probs[token]), chance.noise(position, [token])[0]
            row = {"at": visible(text(tree.tokens[node])), "position": position}
            row |= {"candidate": candidate, "token": visible(text(token))}
            row |= {"log-probability": one, "noise": noise, "sum": one + noise}
            rows.append(row | {"guessed": goes})
    return pd.DataFrame(rows)


def reviewed_proposal(
    played: Round, matrix: Matrix, *, text: TokenText, reviewer: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A round's proposal by a cascade of one reviewing model and Max-Gram, for `figures.cascade`: a
    row per guess, `token`, `whose` (with who reviewed it), `source` and `verdict` ("✓" or "✗"); and
    the brackets, `first`, `last`, `level` and `said`: parts of the K matrix's first row, and below
    them each review, as guesses kept + its own token.

    reviewer    the model's name, as sources have it

    Raises ValueError for a matrix of other drafters, or a proposal without a token of the model.
    """
    if len(matrix) != 2 or [*map(len, matrix)] != [2, 2]:
        raise ValueError(f"K has two rows of two entries here, got {matrix}")
    tree = played.tree
    guessed = pd.DataFrame({"token": [text(token) for token in tree.tokens[1:]]})
    guessed["whose"] = tree.sources[1:]
    guessed["source"] = guessed["whose"].str.partition(" via ")[0]
    guessed["verdict"] = ["✓" if node in played.path else "✗" for node in range(1, len(tree))]
    ends = [at for at, whose in enumerate(guessed["whose"]) if whose == reviewer]
    if not ends:
        whose = ", ".join(dict.fromkeys(guessed["whose"]))
        raise ValueError(f"a review ends with a token of {reviewer}; guesses here are of {whose}")
    (own, tail), _ = matrix
    starts = [0, *(end + 1 for end in ends[:-1])]
    spans = [(0, ends[-1], 0, f"K₀₀ = {own} or more, from reviews by {reviewer}")]
    if ends[-1] < len(guessed) - 1:
        tailed = f"K₀₁ = {tail}: a tail that no drafter reviewed"
        spans.append((ends[-1] + 1, len(guessed) - 1, 0, tailed))
    for start, end in zip(starts, ends, strict=True):
        spans.append((start, end, 1, f"{end - start} + 1"))
    return guessed, pd.DataFrame(spans, columns=["first", "last", "level", "said"])


def emitted_tokens(generation: Generation, *, text: TokenText) -> pd.DataFrame:
    """A row per generated token: its text, its source, and in which round."""
    rows = [
        (text(token), source, number)
        for number, played in enumerate(generation.rounds)
        for token, source in zip(played.emitted, played.sources, strict=True)
    ]
    return pd.DataFrame(rows, columns=["token", "source", "round"])


def outcomes(
    distributions: Mapping[str, Mapping[tuple[int, ...], float]], *, words: Sequence[str]
) -> pd.DataFrame:
    """A row per outcome and distribution; `words` are the texts of the tokens, by id."""
    found = sorted({outcome for one in distributions.values() for outcome in one})
    rows = [
        ("·".join(words[token] for token in outcome), name, one.get(outcome, 0.0))
        for name, one in distributions.items()
        for outcome in found
    ]
    return pd.DataFrame(rows, columns=["token", "distribution", "probability"])


def shape_nodes(shapes: Mapping[str, Shape], rates: Rates) -> pd.DataFrame:
    """A row per node of each shape, for `figures.shapes`: the probability of the path down to it,
    given the rates by depth and rank. They add up to the shape's `theory.expected_tokens`.
    """
    if not shapes:
        raise ValueError("nodes are of at least one shape, got none")
    rows = []
    for name, shape in shapes.items():
        chances = path_probabilities(shape, rates)
        places = zip(shape.parents, shape.depths, shape.ranks, chances, strict=True)
        rows += [(name, node, *place) for node, place in enumerate(places)]
    columns = ["shape", "node", "parent", "depth", "rank", "probability"]
    return pd.DataFrame(rows, columns=columns)


def gap_rates(match: MatchTable) -> pd.DataFrame:
    """A match table as rows: gap, rank, rate.  Raises ValueError if its rates are not by gap."""
    bins = zip(match.bins, match.binned, strict=True)
    rows = [(name, rank, rate) for name, rates in bins for rank, rate in enumerate(rates)]
    return pd.DataFrame(rows, columns=["gap", "rank", "rate"])


def scout_rows(
    staged: StagedTree, context: Context, chance: Chance, *, text: TokenText
) -> pd.DataFrame:
    """The first pass of a staged tree's draft in a round: a row per node that the draft reads in it
    or chooses by it, for `figures.scout_pass`: `node` (from 0, the root), `parent`, `depth`,
    `token` (its text) and `role`: "own" (the root, which the draft has to read), "taken" (a guess
    of the scout that the draft chooses too, and has read already), "wasted" (another guess of the
    scout) or "chosen" (by the draft alone: what follows it takes another pass).

    Raises ValueError for a draft that reads level by level: no scout's rows are in its pass.
    """
    draft = staged.draft.as_tree if isinstance(staged.draft, ChainDraft) else staged.draft
    if draft.by_level:
        raise ValueError("a draft that reads level by level has no scout's rows in its pass")
    inner = chance.inner("scout", (len(context) - 1,))  # as `StagedTree` draws its scout's
    guessed = staged.scout.propose(context, inner).cut(draft.reach(context) - 1)
    tree = staged.propose(context, chance)
    read = list(map(guessed.path_tokens, range(len(guessed))))
    own = list(map(tree.path_tokens, range(len(tree))))
    known = [path for path in own if path[:-1] in read]
    shown = TokenTree.of_paths(context, [*known, *(path for path in read if path not in own)])
    rows = []
    for node, (parent, depth) in enumerate(zip(shown.parents, shown.depths, strict=True)):
        path = shown.path_tokens(node)
        role = "chosen" if path not in read else "taken" if path in own else "wasted"
        token = text(shown.tokens[node])
        rows.append((node, parent, depth, token, role if node else "own"))
    return pd.DataFrame(rows, columns=["node", "parent", "depth", "token", "role"])


def scout_passes(staged: StagedTree, context: Context, chance: Chance) -> pd.DataFrame:
    """How many passes a draft takes for its tree after `context`, which it has not read before,
    alone and with its scout: `guesses`, `passes` (of the draft), and `the same tree` (as alone).
    The draft's model forgets what it has read.
    """
    model = staged.draft.model
    rows = {}
    first: TokenTree | None = None
    for name, draft in (("without a scout", staged.draft), ("with a scout", staged)):
        model.forget()
        before = model.usage or Usage()
        tree = draft.propose(context, chance)
        first = first or tree
        passes = ((model.usage or Usage()) - before).passes
        same = (tree.tokens, tree.parents) == (first.tokens, first.parents)
        rows[name] = {"guesses": tree.guesses, "passes": passes, "the same tree": same}
    return pd.DataFrame.from_dict(rows, orient="index")
