"""Find the longest suffix of a context that occurred before, in microseconds: a suffix automaton
accepts every n-gram of a region, and stores where each first ended. A caller may go back, branch,
or turn to another prompt: an answer depends on the context alone. Source: Blumer et al. 1985 (the
automaton); Hu et al. 2024 (SAM decoding) decode by one as well.
"""

from collections.abc import Sequence

from specdec_lib.core.context import Context
from specdec_lib.core.locking import in_turn

REMEMBERED = 8  # texts
# tokens at the end of a text, at least, that may be dropped and read anew; a text that differs
# before them is another one
LOOSE = 64
START = 0  # the state of the empty n-gram

Match = tuple[int, int]  # an n-gram: its state and how many tokens it has


class Automaton:
    """The suffix automaton of a text: n-grams that end at the same places share a state.

    steps      per state, the next state by token
    links      per state, that of its longest suffix that ends at more places; −1 for the empty one
    lengths    per state, that of its longest n-gram
    ends       per state, the number of tokens up to the end of its first occurrence
    wholes     states of the prefixes of 0, 1, 2, … tokens
    parted     per token of the text, the state that was split when it was appended, −1 for none
    """

    __slots__ = ("ends", "lengths", "links", "parted", "steps", "wholes")

    def __init__(self, tokens: Sequence[int] = ()) -> None:
        self.steps: list[dict[int, int]] = [{}]
        self.links, self.lengths, self.ends, self.wholes = [-1], [0], [0], [START]
        self.parted: list[int] = []
        self.extend(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens to the text."""
        steps, links, lengths, ends = self.steps, self.links, self.lengths, self.ends
        for token in tokens:
            state, new, size = self.wholes[-1], len(steps), len(self.wholes)
            link, parted = START, -1
            steps.append({})
            lengths.append(size)
            ends.append(size)
            while state >= 0 and token not in steps[state]:
                steps[state][token] = new
                state = links[state]
            if state >= 0:
                link = steps[state][token]
                if lengths[link] > lengths[state] + 1:
                    parted, link = link, new + 1
                    steps.append(steps[parted].copy())
                    lengths.append(lengths[state] + 1)
                    ends.append(ends[parted])
                    while state >= 0 and steps[state].get(token) == parted:
                        steps[state][token] = link
                        state = links[state]
            links.append(link)
            if parted >= 0:
                links.append(links[parted])
                links[parted] = link
            self.parted.append(parted)
            self.wholes.append(new)

    def drop(self, tokens: Sequence[int]) -> None:
        """Remove the text's last tokens, which are these."""
        steps, links = self.steps, self.links
        for token in reversed(tokens):
            new, parted = self.wholes.pop(), self.parted.pop()
            state = self.wholes[-1]
            while state >= 0 and steps[state].get(token) == new:
                del steps[state][token]
                state = links[state]
            if parted >= 0:
                while state >= 0 and steps[state].get(token) == new + 1:
                    steps[state][token] = parted
                    state = links[state]
                links[parted] = links[new + 1]
            for values in (steps, links, self.lengths, self.ends):
                del values[new:]

    def walk(self, match: Match, tokens: Sequence[int]) -> list[Match]:
        """After each token, the longest n-gram that ends there and begins not before `match`."""
        steps, (state, length), matches = self.steps, match, []
        for token in tokens:
            while state >= 0 and token not in steps[state]:
                state = self.links[state]
                length = self.lengths[state]
            state, length = (steps[state][token], length + 1) if state >= 0 else (START, 0)
            matches.append((state, length))
        return matches

    def end(self, match: Match, tokens: tuple[int, ...], window: int | None) -> int:
        """Where the first occurrence of a match, or of the last `window` of its `tokens`, ends."""
        state, length = match
        if window is not None and window < length:
            state = START
            for token in tokens[-window:]:
                state = self.steps[state][token]
        return self.ends[state]


class Text:
    """A context that was searched before, and the automatons of its prompt and its generation.

    given      the region searched first and its automaton, without the region's last token
    settled    a beginning that holds the prompt and is never dropped
    begun      the very tuple that the context went on from, compared by identity
    matches    in `given`, of the text that ends with the prompt's last token, the first new one, …
    """

    def __init__(self, context: Context, given: tuple[tuple[int, ...], Automaton]) -> None:
        self.given, self.generated = given, Automaton()
        self.source, self.prompt_tokens = context.source, context.prompt_tokens
        self.tokens = self.settled = context.prompt
        self.begun: tuple[int, ...] | None = None
        automaton, read = given[1], len(given[1].parted) if context.source is None else 0
        self.matches = automaton.walk((automaton.wholes[read], read), self.tokens[read:])[-1:]

    def shared(self, context: Context) -> int | None:
        """How many tokens both begin with; None if they part before the settled end, or start
        otherwise.
        """
        mine, tokens, settled = self.tokens, context.tokens, len(self.settled)
        if self.prompt_tokens != context.prompt_tokens or not (
            self.source is context.source or self.source == context.source
        ):
            return None
        if mine is tokens:
            return len(tokens)
        if context.begun is not None and context.begun is mine:
            return len(mine)
        if context.begun is not None and context.begun is self.begun and len(self.begun) >= settled:
            settled = len(self.begun)
        elif tokens[:settled] != self.settled:
            return None
        if mine[settled:] == tokens[settled : len(mine)]:
            return len(mine)
        pairs = zip(mine[settled:], tokens[settled:], strict=False)
        return next(
            (place for place, (old, new) in enumerate(pairs, settled) if old != new),
            min(len(mine), len(tokens)),
        )

    def follow(self, tokens: tuple[int, ...], shared: int) -> None:
        """Become the text of these tokens, of which the first `shared` are its own."""
        dropped, added = self.tokens[shared:], tokens[shared:]
        self.generated.drop(dropped)
        self.generated.extend(added)
        del self.matches[len(self.matches) - len(dropped) :]
        self.matches += self.given[1].walk(self.matches[-1], added)
        self.tokens = tokens
        if len(tokens) - len(self.settled) > 2 * LOOSE:
            self.settled = tokens[:-LOOSE]


class SuffixIndex:
    """An index of the last few texts that were searched; copies and pickles of it start empty."""

    def __init__(self) -> None:
        self._texts: list[Text] = []

    def __reduce__(self) -> tuple[type["SuffixIndex"], tuple[()]]:
        return SuffixIndex, ()

    @in_turn
    def forget(self) -> None:
        """Free the memory; no answer changes."""
        self._texts.clear()

    @in_turn
    def find(
        self, context: Context, window: int | None = None, least: int = 1
    ) -> tuple[bool, int] | None:
        """Whether the match lies in the generation, and where in its region the token stands that
        follows it; None where nothing matches.

        The match is the earliest of the longest suffixes of the context, of `least` to `window`
        tokens, that stand in the prompt, or in its source, with a token after it; else in the
        generation.
        """
        text = self._text(context)
        match = text.matches[-1]
        if match[1] >= least:
            return False, text.given[1].end(match, context.tokens, window)
        generated = text.generated
        state = generated.links[generated.wholes[-1]]
        if state > START and generated.lengths[state] >= least:
            return True, generated.end((state, generated.lengths[state]), context.tokens, window)
        return None

    def _text(self, context: Context) -> Text:
        """The text of a context; an interrupt leaves none half changed among the remembered."""
        for place, text in enumerate(self._texts):
            shared = text.shared(context)
            if shared is not None:
                del self._texts[place]
                break
        else:
            region = context.prompt if context.source is None else context.source
            known = next((text.given for text in self._texts if text.given[0] == region), None)
            given = known or (region, Automaton(region[:-1]))
            text, shared = Text(context, given), context.prompt_tokens
        if text.tokens is not context.tokens:
            text.follow(context.tokens, shared)
        text.begun = context.begun
        self._texts.insert(0, text)
        del self._texts[REMEMBERED:]
        return text
