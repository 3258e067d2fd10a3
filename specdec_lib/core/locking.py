"""Locks: threads take turns at an object's state, and one process writes to a folder."""

import contextlib
import datetime
import os
import platform
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from weakref import WeakKeyDictionary

_LOCKS: "WeakKeyDictionary[object, threading.RLock]" = WeakKeyDictionary()
_MAKING = threading.Lock()


def in_turn(method: Callable) -> Callable:
    """The method under one lock for all such methods of `self.model`, or else of the object."""

    @wraps(method)
    def locked(self: object, *given: object, **named: object) -> object:
        with _MAKING:
            lock = _LOCKS.setdefault(getattr(self, "model", self), threading.RLock())
        with lock:
            return method(self, *given, **named)

    return locked


@contextlib.contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Lock a folder, its owner named in "lock.owner"; ValueError if another process holds it."""
    from filelock import FileLock, Timeout

    lock, owner = FileLock(folder / "lock"), folder / "lock.owner"
    try:
        lock.acquire(timeout=0)
    except Timeout as problem:
        known = owner.read_text(encoding="utf-8") if owner.is_file() else "another process"
        remedy = "wait until it ends, or name another with --out DIR"
        raise ValueError(f"{folder} is being written to by {known}; {remedy}") from problem
    try:
        since = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
        who = f"process {os.getpid()} on {platform.node()}, since {since}"
        owner.write_text(who, encoding="utf-8")
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()
