"""Locks: threads take turns at an object's state, and one process writes to a folder."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from weakref import WeakKeyDictionary

_LOCKS: "WeakKeyDictionary[object, threading.RLock]" = WeakKeyDictionary()
_MAKING = threading.Lock()


def in_turn(method: Callable) -> Callable:
    """Decorator: calls of such methods on one `self.model` (else one object) run one at a time."""

    @wraps(method)
    def locked(self: object, *given: object, **named: object) -> object:
        with _MAKING:
            lock = _LOCKS.setdefault(getattr(self, "model", self), threading.RLock())
        with lock:
            return method(self, *given, **named)

    return locked


@contextlib.contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Lock a folder; raises ValueError if another process holds it."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as problem:
        wait = f"another process writes to {folder}; wait, or name another with --out"
        raise ValueError(wait) from problem
    try:
        yield
    finally:
        lock.release()
