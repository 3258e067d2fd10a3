"""How the target's own requests begin: a chat template's open user turn, and its first words.

The target completes the user turn itself and then answers it (Xu et al. 2024, "Magpie", give the
empty turn; the openings here add code, summaries and word problems, which an empty turn rarely
has).
"""

DOMAINS = ("chat", "code", "summary", "math")
OPENINGS = {
    "chat": (
        "", "", "", "", "", "",  # the empty turn: three in ten chat requests
        "How do I", "How does", "Can you", "Why", "I'm", "I", "Explain", "Describe", "Give me a",
        "When", "Who", "Compare", "Write an email", "List",
    ),
    "code": (
        "Write a Python function", "Write a function that",
        "Complete this Python function:\n\ndef ",
        "Fix the bug in this code:\n\n", "Create a Python class", "def ", "Explain this code:\n\n",
        "Write a docstring for this function:\n\ndef ", "Write a test for", "Implement",
    ),
    "summary": (
        "Summarize the following text:\n\n", "Summarize this article:\n\n", "Summarize",
        "Shorten this passage:\n\n",
        "Read the following passage and answer the question.\n\n",
        "Rewrite this text in plain words:\n\n",
    ),
    "math": (
        "How many", "Solve:", "Calculate", "If", "A", "What is", "Calculate the average",
        "Solve this word problem step by step:\n\n",
    ),
}  # fmt: skip
REQUEST_TOKENS = {"chat": 70, "code": 100, "summary": 160, "math": 90}  # that the target may add


def plain(text: str) -> str:
    """A text in lower case with single spaces: equal requests that are written differently."""
    return " ".join(text.casefold().split())
