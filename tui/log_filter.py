"""What somebody types to see only some lines of a log: `rank 3`, `host node-1`, `error`, words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

import msgspec

from kb.numbers import read_int

if TYPE_CHECKING:
    from index.signatures import Scanner
    from kb.log.layout import Origin
    from kb.log.speakers import Way
    from tui.conditions import Condition

_RANK = re.compile(r"\brank[ :=]?(\d{1,7})\b", re.IGNORECASE)
_HOST = re.compile(r"\b(?:host|node)[ :=]([\w.-]{1,100})", re.IGNORECASE)
_SEVERITY = re.compile(r"\b(fatal|error|warning)s?\b", re.IGNORECASE)


class LogFilter(msgspec.Struct, frozen=True):
    """All that a line has to be; nothing, where all lines are seen."""

    rank: int | None = None
    host: str | None = None
    severity: str | None = None
    text: str = ""

    @classmethod
    def parse(cls, typed: str) -> Self:
        """Read what was typed; words that mean nothing else are a text in the line."""
        rest, rank = _taken(_RANK, typed)
        rest, host = _taken(_HOST, rest)
        rest, severity = _taken(_SEVERITY, rest)
        text = " ".join(rest.replace(",", " ").split())
        return cls(read_int(rank) if rank else None, host, severity and severity.lower(), text)

    def __bool__(self) -> bool:
        return self != type(self)()

    def __str__(self) -> str:
        parts = (
            "" if self.rank is None else f"rank {self.rank}",
            f"host {self.host}" if self.host else "",
            self.severity or "",
            self.text,
        )
        return ", ".join(filter(None, parts))

    def admits(self, origin: Origin) -> bool:
        """Whether a file may hold such lines, by the rank and the host that its name tells."""
        return (self.rank is None or origin.rank in (None, self.rank)) and (
            self.host is None or origin.host in (None, self.host)
        )

    def within(self, origin: Origin) -> LogFilter:
        """What is left of it in a file: not what its name tells."""
        return msgspec.structs.replace(
            self,
            rank=None if origin.rank == self.rank else self.rank,
            host=None if origin.host == self.host else self.host,
        )

    def conditions(self, markers: Scanner | None, way: Way | None) -> Iterator[Condition]:
        """What is searched for. `markers` are needed for a severity; `way` is how the lines of the
        file name who says them."""
        from tui.conditions import Severity, as_severe_as, said_by, with_text

        if self.text:
            yield with_text(self.text)
        if self.severity and markers:
            yield as_severe_as(Severity(self.severity), markers)
        if self.rank is not None or self.host:
            yield said_by(self.rank, self.host, way)


def _taken(pattern: re.Pattern[str], text: str) -> tuple[str, str | None]:
    found = pattern.search(text)
    if found is None:
        return text, None
    return f"{text[: found.start()]} {text[found.end() :]}", found[1]
