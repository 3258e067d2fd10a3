"""Threads that share a memory take turns, so that what is remembered between calls fits one of
them.
"""

import threading
from collections.abc import Callable
from functools import wraps
from weakref import WeakKeyDictionary

_LOCKS: "WeakKeyDictionary[object, threading.RLock]" = WeakKeyDictionary()
_MAKING = threading.Lock()


def in_turn(method: Callable) -> Callable:
    """A method that one thread at a time runs: of all objects with the same `model`, or of the
    object itself where it has none.
    """

    @wraps(method)
    def locked(self: object, *given: object, **named: object) -> object:
        with _MAKING:
            lock = _LOCKS.setdefault(getattr(self, "model", self), threading.RLock())
        with lock:
            return method(self, *given, **named)

    return locked
