"""A recipe, with which any process can make the same thing."""

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field

from specdec_lib.core.kinds import checked


@checked
@dataclass(frozen=True)
class Recipe:
    """A function by its import path, "package.module:name", and the keyword arguments to call it
    with: plain values, lists and tuples of them. Every process that makes the thing must be able
    to import it.
    """

    function: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        module, _, name = self.function.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), name)):
            wanted = 'a recipe names a function as "package.module:name"'
            raise ValueError(f"{wanted}, got {self.function!r}")

    def __hash__(self) -> int:
        return hash(self.function)

    def make(self, *given: object) -> object:
        """The function's result for `given` and the arguments; raises ValueError without one."""
        try:
            function = pkgutil.resolve_name(self.function)
        except (ImportError, AttributeError) as error:
            wrong = f"the recipe {self.function!r} cannot be imported here: {error}"
            raise ValueError(wrong) from error
        return function(*given, **self.arguments)
