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
    """Decorator: calls of such methods run one at a time, with a lock per `self.model`, or per
    object without a `model`. A method may call another that has the same lock.
    """

    @wraps(method)
    def locked(self: object, *given: object, **named: object) -> object:
        with _MAKING:
            lock = _LOCKS.setdefault(getattr(self, "model", self), threading.RLock())
        with lock:
            return method(self, *given, **named)

    return locked


@contextlib.contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Lock a folder, with the process that holds it named in the file "lock.owner".  Raises
    ValueError if another process holds it, which the message names, with its machine and since
    when.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / "lock")
    owner = folder / "lock.owner"
    try:
        lock.acquire(timeout=0)
    except Timeout as problem:
        raise ValueError(
            f"{folder} is being written to by {_holder(owner)}; wait until it ends, or name another"
            " with --out"
        ) from problem
    try:
        since = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
        owner.write_text(
            f"process {os.getpid()} on {platform.node()}, since {since}", encoding="utf-8"
        )
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def _holder(owner: Path) -> str:
    try:
        return owner.read_text(encoding="utf-8") or "another process"
    except FileNotFoundError:  # it has just begun, or just ended
        return "another process"
