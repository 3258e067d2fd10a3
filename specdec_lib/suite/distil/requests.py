"""How the conversations begin that the target writes: requests that it completes itself, and
requests about passages, code and translated strings that others wrote.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from specdec_lib.suite.distil.passages import LANGUAGES, Piece
from specdec_lib.workload import DOMAINS

KINDS = (
    *DOMAINS,
    "question",
    "passage",
    "passages",
    "dialogue",
    "translation",
    "rewriting",
    "file",
    "article",
)  # what a conversation can be; a shard stores a number in this order
LONG = ("passage", "passages", "file")  # kinds that are about a text of up to 1,500 tokens
ARTICLE_TOKENS = 600  # of an article, at most: it is a passage afterwards

OPENINGS = {
    "chat": (
        "", "", "", "", "", "", "",  # the empty turn: one chat request in six
        "How do I", "How does", "Can you", "Why", "I'm", "I", "Explain", "Describe", "Give me a",
        "When", "Who", "Compare", "Write an email", "List", "Compose a", "Draft a", "Imagine",
        "Pretend", "Suppose", "Write a short story", "Write a poem", "Write a blog post about",
        "What are some", "Develop", "Act as", "You are", "Could you", "Help me", "Suggest",
        "Discuss", "Provide", "Create a", "Evaluate", "Analyze",
    ),
    "code": (
        "Write a Python function", "Write a function that",
        "Complete this Python function:\n\ndef ",
        "Fix the bug in this code:\n\n", "Create a Python class", "def ", "Explain this code:\n\n",
        "Write a docstring for this function:\n\ndef ", "Write a test for", "Implement",
        "Write a C++ program", "Write a JavaScript function", "Write a SQL query",
    ),
    "summary": (
        "Summarize the following text:\n\n", "Summarize this article:\n\n", "Summarize",
        "Shorten this passage:\n\n",
        "Read the following passage and answer the question.\n\n",
        "Rewrite this text in plain words:\n\n",
    ),
    "math": (
        "How many", "Solve:", "Calculate", "If", "A", "What is", "Calculate the average", "There",
        "Solve this word problem step by step:\n\n", "Tom", "Maria", "Sam has", "Lisa bought",
        "Ben and his", "Every day,", "In a class of", "A store sells", "A train", "Emma wants to",
        "The price of", "Mr. Lee",
    ),
    "question": (
        "Who", "Who was", "Who wrote", "Who played", "Who sang", "Who won", "When did", "When was",
        "Where is", "Where was", "What is the capital of", "What is the name of", "How many",
        "Which", "In what year did", "What does", "Why did", "Which of the following", "What was",
        "True or false:", "Multiple choice question:\n\n", "who is the", "when did the",
        "what is the", "where does", "how many", "Answer the following question.\n\n", "Name",
        "Question:", "What type of", "How long", "How old",
    ),
    "dialogue": (
        "", "", "I want to", "Can you help me", "Tell me about", "What do you think", "Hello",
        "Explain", "I have a problem", "Write a", "Let's", "Give me advice", "Plan", "What is",
    ),
    "rewriting": (
        "Rewrite this sentence:", "Correct the grammar:", "Turn this into a list:\n\n",
        "Make a table of", "List ten", "Make a list of", "Rewrite this email politely:\n\n",
        "Put these words in alphabetical order:", "Write this as JSON:\n\n", "Extract the",
        "Make this shorter:\n\n", "Write in bullet points", "Fix the spelling:",
    ),
    "article": (
        "Write a news article about", "Write a long article about", "Write a report about",
        "Write an encyclopedia article about", "Write a biography of", "Write a story about",
        "Write a newspaper story about", "Write an essay on", "Write a history of",
    ),
}  # fmt: skip
FOLLOW_UPS = ("", "", "", "Can you", "Why", "And", "What about", "Now", "Rewrite", "Explain", "How")
ADDED = {
    "chat": 70, "code": 100, "summary": 160, "math": 90, "question": 40, "dialogue": 50,
    "rewriting": 120, "article": 30, "translation": 50,
}  # tokens that the target may add to a request of its own  # fmt: skip

ABOUT_PASSAGE = (
    "Summarize: {}", "Summarize the following text:\n\n{}", "{}\n\nSummarize this.", "TL;DR: {}",
    "{}\n\nSummarize the text above in three sentences.", "Shorten this passage:\n\n{}",
    "What are the main points of this text?\n\n{}", "{}\n\nList the key facts.",
    "Rewrite this text in plain words:\n\n{}", "Give this text a title and explain it:\n\n{}",
    "Extract all names and terms from this text:\n\n{}", "{}\n\nMake a table of this.",
    "Explain this to a beginner:\n\n{}", "Turn this text into a list of bullet points:\n\n{}",
    "Rewrite the following text as a news article:\n\n{}", "Write a conclusion for this:\n\n{}",
)  # fmt: skip
ASKED_ABOUT = (
    "Read the following passage and answer the question.\n\n{}\n\nQuestion:", "{}\n\nQuestion:",
    "{}\n", "{}\n\nWhat", "{}\n\nHow", "{}\n\nWhy", "{}\n\nWho", "Context:\n{}\n\nQuestion:",
    "{}\nWhat is", "{}\nDescribe", "Answer from this text.\n\n{}\n\nQ:",
)  # fmt: skip
ABOUT_CODE = (
    "Explain this code:\n\n{}", "Write docstrings for this code:\n\n{}", "{}\n\nWhat does it do?",
    "Write tests for this code:\n\n{}", "Find bugs in this code:\n\n{}", "Improve this code:\n\n{}",
    "Rewrite this code in JavaScript:\n\n{}", "Summarize this Python file:\n\n{}",
    "Add type hints to this code:\n\n{}", "Continue this file:\n\n{}", "Refactor:\n\n{}",
)  # fmt: skip


class Request(NamedTuple):
    """How a conversation is begun, and how long it goes on.

    kind      one of `KINDS`
    text      of the user's first turn
    added     tokens that the target may add to that turn, 0 if it is whole
    turns     pairs of a request and an answer; the target writes later requests itself
    source    the package of what others wrote
    """

    kind: str
    text: str
    added: int
    turns: int = 1
    source: str = ""


class Requests:
    """Draws requests of some kinds.

    pieces      what others wrote; without any, only kinds that need none can be drawn
    articles    texts that the target wrote, which are passages too; they may grow
    """

    def __init__(
        self, pieces: Sequence[Piece], kinds: dict[str, float], articles: list[str], seed: int
    ) -> None:
        self.kinds = kinds
        self.random = Random(seed)
        self.articles = articles
        self.prose = [one for one in pieces if one.kind == "prose"]
        self.code = [one for one in pieces if one.kind == "code"]
        self.functions = [one for one in pieces if one.kind == "function"]
        self.strings = [one for one in pieces if one.kind in LANGUAGES.values()]
        makers: dict[str, Callable[[], Request]] = {
            "code": self._code,
            "passage": self._passage,
            "passages": self._passages,
            "dialogue": self._dialogue,
            "translation": self._translation,
            "rewriting": self._rewriting,
            "file": self._file,
        }
        self.makers = makers

    def draw(self) -> Request:
        """A request of a kind drawn by its weight."""
        (kind,) = self.random.choices(list(self.kinds), list(self.kinds.values()))
        maker = self.makers.get(kind)
        return maker() if maker else self._own(kind)

    def _own(self, kind: str) -> Request:
        """A request that the target completes from its first words."""
        return Request(kind, self.random.choice(OPENINGS[kind]), ADDED[kind])

    def _code(self) -> Request:
        """Half of the time a function of others to complete."""
        if not self.functions or self.random.random() < 0.5:
            return self._own("code")
        piece = self.random.choice(self.functions)
        text = f"Complete this Python function:\n\n{piece.text}\n"
        return Request("code", text, 0, source=piece.package)

    def _any_passage(self) -> tuple[str, str]:
        """A passage and its source: one in four is an article of the target's own."""
        if self.articles and (not self.prose or self.random.random() < 0.25):
            return self.random.choice(self.articles), "the target"
        piece = self.random.choice(self.prose)
        return piece.text, piece.package

    def _passage(self) -> Request:
        """A passage with a task, or with a question whose rest the target writes."""
        passage, source = self._any_passage()
        if self.random.random() < 0.5:
            return Request(
                "passage", self.random.choice(ABOUT_PASSAGE).format(passage), 0, 1, source
            )
        turns = self.random.choice((1, 1, 1, 2))
        asked = self.random.choice(ASKED_ABOUT)
        return Request("passage", asked.format(passage), 40, turns, source)

    def _passages(self) -> Request:
        """Two to five passages, numbered or not, and a question whose rest the target writes."""
        found = [self._any_passage() for _ in range(self.random.randint(2, 5))]
        texts = []
        size = 0
        for passage, _ in found:
            part = passage[:2400]
            if size + len(part) <= 6500:
                texts.append(part)
                size += len(part)
        numbered = self.random.random() < 0.3
        shown = [f"[{place}] {one}" if numbered else one for place, one in enumerate(texts, 1)]
        asked = self.random.choice(ASKED_ABOUT).format("\n\n".join(shown))
        sources = ", ".join(sorted({source for _, source in found}))
        return Request("passages", asked, 40, source=sources)

    def _dialogue(self) -> Request:
        """Two to four turns."""
        opening = self.random.choice(OPENINGS["dialogue"])
        return Request("dialogue", opening, ADDED["dialogue"], self.random.randint(2, 4))

    def _translation(self) -> Request:
        """One to three translated strings to translate, or a text that the target adds."""
        language = self.random.choice(list(LANGUAGES.values()))
        found = [one for one in self.strings if one.kind == language]
        if not found or self.random.random() < 0.25:
            way = self.random.choice(("Translate to {}: ", "Translate English to {}: "))
            return Request("translation", way.format(language), ADDED["translation"])
        some = self.random.sample(found, min(len(found), self.random.choice((1, 1, 2, 3))))
        away = self.random.random() < 0.35
        strings = " ".join(one.text if away else one.other for one in some)
        ways = ("Translate English to {}: {}",) if away else ("Translate {} to English: {}",)
        ways += ("Translate this text to {}.\n\n{}",) if away else ("What is this {} text?\n\n{}",)
        text = self.random.choice(ways).format(language, strings)
        return Request("translation", text, 0, source=some[0].package)

    def _rewriting(self) -> Request:
        """A short text of others with a task, or a request that the target completes."""
        if not self.prose or self.random.random() < 0.5:
            return self._own("rewriting")
        piece = self.random.choice(self.prose)
        short = piece.text[: self.random.randint(200, 900)].rsplit(" ", 1)[0]
        text = f"{self.random.choice(OPENINGS['rewriting'])} {short}"
        return Request("rewriting", text, 0, source=piece.package)

    def _file(self) -> Request:
        """Code to explain, complete or document."""
        piece = self.random.choice(self.code)
        text = self.random.choice(ABOUT_CODE).format(piece.text)
        return Request("file", text, 0, source=piece.package)
