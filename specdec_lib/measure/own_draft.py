"""A draft of somebody's own in the bench: found by its name in the current folder, checked, and
timed beside plain decoding and our fastest methods, prompt by prompt on the same texts.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import shown
from specdec_lib.core.protocols import Draft, check_root
from specdec_lib.core.tree import TokenTree
from specdec_lib.workload import Ladder

FORM = "MODULE:NAME, such as my_draft:MyDraft for the class MyDraft in ./my_draft.py"
WANTED = "a draft has a method propose(context, chance) that returns a TokenTree"
PASSED = ("ladder", "sampler")  # what makes a draft may take these, by name
LESSON = "TokenTree.rooted(context).grown(tokens, parents, source=…, scores=…)"


@dataclass(frozen=True)
class OwnDraft:
    """What a name stands for: a draft, or a class or function that makes one.

    named    as it was given, "my_draft:MyDraft"
    """

    named: str
    found: Any

    def draft(self, ladder: Ladder, sampler: Sampler) -> Draft:
        """The draft for a sampler, tried on short contexts; a class or function is called with the
        ladder and the sampler if its parameters are called so.

        Raises ValueError, in one line, if it is no draft.
        """
        made = self._made({"ladder": ladder, "sampler": sampler})
        if not _proposes(made):
            self._refuse(f"it is {shown(made)}, and {WANTED}")
        try:
            inspect.signature(made.propose).bind(Context.of((0,)), Chance(0))
        except TypeError as problem:
            self._refuse(f"propose takes other arguments ({problem}); {WANTED}")
        prompt = ladder.encode("What is a prime number? What is a prime number?")
        for tokens in (prompt[:1], prompt):
            self._try(made, Context.of(tokens), Chance(0, sampler), ladder)
        return made

    def _made(self, known: Mapping[str, object]) -> Any:
        """The object itself if it proposes or cannot be called, else what calling it gives."""
        if not callable(self.found) or _proposes(self.found):
            return self.found
        maker: Callable[..., Any] = self.found
        parameters = inspect.signature(maker).parameters
        lacking = [
            name
            for name, one in parameters.items()
            if one.default is one.empty
            and name not in PASSED
            and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]
        if lacking:
            self._refuse(
                f"it takes {', '.join(lacking)} without a default; give defaults, or name a"
                " function that makes the draft (it may take ladder and sampler)"
            )
        given = {name: one for name, one in known.items() if name in parameters}
        return self._called("making it", maker, **given)

    def _try(self, draft: Draft, context: Context, chance: Chance, ladder: Ladder) -> None:
        """Raise ValueError unless the draft continues a context as its target can verify."""
        behind = f"after {len(context)} token{'s' * (len(context) > 1)}"
        tree = self._called(f"propose {behind}", draft.propose, context, chance)
        if not isinstance(tree, TokenTree):
            self._refuse(f"propose returned {shown(tree)} {behind}; {WANTED}: {LESSON}")
        target = ladder.target
        try:
            check_root(context, tree, target.vocabulary, target.max_positions, "the target")
        except ValueError as problem:
            self._refuse(f"the tree that it proposes {behind} does not fit: {problem}")

    def _called(self, what: str, function: Callable, *given: object, **named: object) -> Any:
        """What somebody's function gives; whatever it raises becomes a line."""
        try:
            return function(*given, **named)
        except Exception as problem:  # of code that is not ours
            self._refuse(f"{what} raised {_in_a_line(problem)}", problem)

    def _refuse(self, why: str, cause: Exception | None = None) -> NoReturn:
        raise ValueError(f"--mine {self.named}: {why}") from cause


def _proposes(found: object) -> bool:
    """Whether it is a draft itself, and no class of drafts."""
    return isinstance(found, Draft) and not inspect.isclass(found)


def find_own(named: str, folder: Path | None = None) -> OwnDraft:
    """What "my_draft:MyDraft" names: the object MyDraft of the module my_draft in a folder, the
    current one unless given.

    Raises ValueError, in one line, if there is no such module or object, or importing it fails.
    """
    folder = (folder or Path.cwd()).resolve()
    module, _, name = named.partition(":")
    parts = module.split(".")
    if not name.isidentifier() or not all(one.isidentifier() for one in parts):
        raise ValueError(f"--mine is {FORM}, got {named!r}")
    base = folder.joinpath(*parts)
    if not (base.with_suffix(".py").is_file() or (base / "__init__.py").is_file()):
        raise ValueError(f"--mine {named}: there is no {'/'.join(parts)}.py in {folder}")
    held = _imported(module, folder, named)
    public = [one for one in vars(held) if not one.startswith("_")]
    if name not in vars(held):
        raise ValueError(
            f"--mine {named}: {module} has no {name}, it has {', '.join(public) or 'nothing'}"
        )
    return OwnDraft(named, vars(held)[name])


def _imported(module: str, folder: Path, named: str) -> ModuleType:
    """The module of a folder, whose own imports find what lies beside it."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        found = importlib.import_module(module)
    except Exception as problem:  # of code that is not ours
        said = _in_a_line(problem)
        raise ValueError(f"--mine {named}: importing {module} raised {said}") from problem
    place = getattr(found, "__file__", None) or ""
    if not place or not Path(place).resolve().is_relative_to(folder):
        raise ValueError(
            f"--mine {named}: {module} is also {place or 'a part of Python'}, which was imported;"
            " give your file a name of its own"
        )
    return found


def _in_a_line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"
