"""Numba's cache of compiled code, in which a damaged file, or one that was compiled from another
version of the code, is as good as none.

Numba reads a file that was cut short, by a full disk or a killed copy, into a traceback, at every
later start. Here each file ends in the SHA-256 of what stands before; one that does not is deleted
before anything of it is read, and its function is compiled and stored again.
"""

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from numba.core.caching import FunctionCache, IndexDataCacheFile

DIGEST_BYTES = hashlib.sha256().digest_size


class CheckedFiles(IndexDataCacheFile):
    """The index and the data files of one function; Numba passes over what follows its own data."""

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BinaryIO]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(content.getvalue())
            file.write(hashlib.sha256(content.getvalue()).digest())

    def _load_index(self) -> dict:
        delete_damaged(Path(self._index_path))
        try:
            return super()._load_index()
        except (AttributeError, ImportError):  # it names a class that is no longer there
            return {}

    def _load_data(self, name: str) -> object:
        delete_damaged(Path(self._data_path(name)))
        return super()._load_data(name)  # an OSError if there is no file: it is compiled


class CheckedCache(FunctionCache):
    """The cache of one compiled function, on checked files.

    version    of all code that may be compiled into it: Numba itself asks for the date of the
               function's own file alone
    """

    def __init__(self, function: Callable, version: str) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), version
        self._cache_file = CheckedFiles(self.cache_path, self._impl.filename_base, stamp)


def delete_damaged(path: Path) -> None:
    """Delete a file, if there is one, that does not end in the digest of what stands before."""
    try:
        whole = path.read_bytes()
    except FileNotFoundError:
        return
    content = whole[:-DIGEST_BYTES]
    if hashlib.sha256(content).digest() != whole[-DIGEST_BYTES:]:
        path.unlink(missing_ok=True)
