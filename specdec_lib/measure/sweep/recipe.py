"""How any process makes the same thing: a function's import path and plain arguments, small enough
to be sent anywhere.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Recipe:
    """A function by its import path, to be called with keyword arguments:
    `Recipe("specdec_lib.workload:load_ladder", {"device": "cpu"})`.

    function     "package.module:name"; every process that makes the thing must be able to import it
    arguments    plain values: numbers, texts, None, paths, samplers, and lists and tuples of them

    Raises ValueError if `function` is no such path.
    """

    function: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        module, _, name = self.function.partition(":")
        if not (name.isidentifier() and all(part.isidentifier() for part in module.split("."))):
            raise ValueError(
                f'a recipe names a function as "package.module:name", got {self.function!r}'
            )

    def __hash__(self) -> int:
        return hash(self.function)

    def made(self, *given: object) -> object:
        """What the function returns for `given` and the arguments.

        Raises ValueError if it cannot be imported.
        """
        module, _, name = self.function.partition(":")
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(
                f"the recipe {self.function!r} cannot be imported here: {error}"
            ) from error
        return function(*given, **self.arguments)
