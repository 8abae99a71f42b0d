"""Which files a client may have read: those below directories that a person named."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kb.errors import LogError
from kb.log import Log

_HOW_TO_ALLOW = "start the server with --root DIR, or paste the lines as text"


def open_below(paths: Sequence[str], roots: Sequence[Path]) -> Log:
    """The files and directories as one log. A link in a directory that leads out of it is not
    followed, and is a loss.

    Raises:
        LogError: one is not below a root, or is neither a file nor a directory.
    """
    return Log.from_paths([_allowed(path, roots) for path in paths], _check_link)


def roots_of(uris: Iterable[str]) -> Iterator[Path]:
    """The directories that a client announces as `file:///...`; other addresses name none here."""
    for uri in uris:
        parts = urlsplit(uri)
        path = Path(unquote(parts.path))
        if parts.scheme == "file" and parts.netloc in ("", "localhost") and path.is_absolute():
            yield path


def _allowed(name: str, roots: Sequence[Path]) -> Path:
    """The path without links, which nobody can lead elsewhere afterwards."""
    if not roots:
        raise LogError(name, f"no directory is open to this server; {_HOW_TO_ALLOW}")
    if ".." in Path(name).parts or not name.isprintable():
        raise LogError(name, "write it without `..` and control characters")
    for root in roots:
        path = _below(root, name) or _below(root.resolve(), name)
        if path:
            _check_kind(path, name)
            return path
    shown = ", ".join(map(str, roots))
    raise LogError(name, f"there is no such file below {shown}; {_HOW_TO_ALLOW}")


def _below(root: Path, name: str) -> Path | None:
    """None where there is no such file, or it lies elsewhere: of that nothing is told, not even
    whether it exists."""
    try:
        path = (root / name).resolve(strict=True) if (root / name).is_relative_to(root) else None
    except (OSError, RuntimeError, ValueError):  # it is gone, closed, or links in a circle
        return None
    return path if path and path.is_relative_to(root.resolve()) else None


def _check_kind(path: Path, name: str) -> None:
    mode = path.stat().st_mode
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise LogError(name, "it is neither a file nor a directory")


def _check_link(file: Path, directory: Path) -> None:
    """Links of a directory may lead anywhere."""
    if not os.path.realpath(file).startswith(f"{directory}{os.sep}"):
        raise LogError(file.name, "it is a link that leads out of its directory")
