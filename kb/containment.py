"""Whatever one of many things does, the rest is done, and the bad one is named.

Each loop over what users give (logs, records, dumps, results) holds a failure of one in one place,
with `contained` or `surviving`. They are for failures that nobody foresaw: a KbError was raised on
purpose, for whoever knows what to do about it, and passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from index.errors import TooManyFiles, is_lack_of_files
from index.progress import Notify
from kb.errors import KbError

Item = TypeVar("Item")
Made = TypeVar("Made")

_MAX_REASON_CHARACTERS = 200
"""Of an error's text, which may quote its input."""


@contextmanager
def contained(loss: str, notify: Notify) -> Iterator[None]:
    """Go on after the block, whatever fails in it. `loss` says in a few words what is missing then:
    "the timeline is left out".

    Raises:
        TooManyFiles: the item is not to blame, and the next one would fail too.
    """
    try:
        yield
    except KbError:
        raise
    except Exception as error:
        if is_lack_of_files(error):
            raise TooManyFiles from error
        notify(f"{loss}: {reason(error)}")


def surviving(
    items: Iterable[Item],
    make: Callable[[Item], Made],
    loss: Callable[[Item], str],
    notify: Notify,
) -> Iterator[Made]:
    """Yield what `make` returns for each item, but for those where it fails."""
    for item in items:
        with contained(loss(item), notify):
            yield make(item)


def reason(error: Exception) -> str:
    """Why something failed, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(error).split())[:_MAX_REASON_CHARACTERS]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shortage(error: BaseException) -> str | None:
    """The sentence for a failure because the system gives no more memory, threads, processes or
    files; None for any other one."""
    if is_lack_of_files(error):
        return str(TooManyFiles())
    if isinstance(error, (MemoryError, ImportError)):  # a library without memory cannot be loaded
        return (
            f"not enough memory, or a damaged installation ({error or 'out of memory'});"
            " allow kb 1 GB (ulimit -v), or reinstall incident-kb"
        )
    is_panic = type(error).__name__ == "PanicException"  # of a library in Rust
    is_refused_fork = isinstance(error, BlockingIOError) and error.filename is None
    if is_panic or is_refused_fork or str(error) == "can't start new thread":
        return (
            f"not enough threads, processes or memory ({error});"
            " allow kb more of them (ulimit -u, ulimit -v)"
        )
    return None
