"""Regular expressions that are compiled when they are first used. One answer needs a part of them,
and to compile all would be a tenth of a cold answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any


class Expression:
    """An `re.Pattern` of text that is not compiled so far, with the methods that are used."""

    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    findall: Callable[..., list[Any]]
    sub: Callable[..., str]
    subn: Callable[..., tuple[str, int]]
    split: Callable[..., list[Any]]

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """The first use of a method: from then on, all are those of the compiled expression."""
        if name not in Expression.__annotations__:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        for method in Expression.__annotations__:
            setattr(self, method, getattr(compiled, method))
        return getattr(self, name)
