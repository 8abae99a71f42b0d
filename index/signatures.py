"""Many patterns at once, at memory speed, with Hyperscan.

Patterns come from contributors, so no pattern may slow down matching: Hyperscan runs in linear
time and rejects patterns that cannot (look-around, back-references). Matching is within a line:
`.` does not match a newline.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import hyperscan

from index.documents import Pattern
from index.errors import PatternError

_FIRST_ONLY: int = hyperscan.HS_FLAG_SINGLEMATCH
_FLAGS: int = hyperscan.HS_FLAG_MULTILINE


class Scanner:
    """A compiled set of patterns, numbered in the order given.

    `first_only` reports a pattern once per block, which is what keeps a scan at memory speed when
    a pattern fires on every line.
    """

    def __init__(self, patterns: Sequence[Pattern], *, first_only: bool = True) -> None:
        self.patterns = tuple(patterns)
        """By the numbers that `scan` reports."""
        self.key = _key(patterns, first_only)
        self._database = _compile(patterns, first_only) if patterns else None

    @classmethod
    def cached(
        cls, patterns: Sequence[Pattern], blob: bytes | None, *, first_only: bool = True
    ) -> Scanner:
        """Load a scanner from what `dump` gave, or compile it when that is of other patterns,
        another Hyperscan or another processor."""
        scanner = cls((), first_only=first_only)
        scanner.patterns = tuple(patterns)
        scanner.key = _key(patterns, first_only)
        prefix = scanner.key.encode() + b"\n"
        if blob is not None and blob.startswith(prefix):
            try:
                scanner._database = _load(blob[len(prefix) :])
            except hyperscan.error:
                scanner._database = None
        if scanner._database is None and patterns:
            scanner._database = _compile(patterns, first_only)
        return scanner

    def dump(self) -> bytes:
        """Return the compiled form, for `cached`."""
        body = b"" if self._database is None else hyperscan.dumpb(self._database)
        return self.key.encode() + b"\n" + bytes(body)

    def scan(self, block: bytes) -> list[tuple[int, int]]:
        """Return (number of the pattern, offset behind its match) in order of offset."""
        found: list[tuple[int, int]] = []
        if self._database is not None and block:
            self._database.scan(
                block, lambda number, _start, end, _flags, _context: found.append((number, end))
            )
        return found


def _load(blob: bytes) -> hyperscan.Database:
    database = hyperscan.loadb(blob, mode=hyperscan.HS_MODE_BLOCK)
    database.scratch = hyperscan.Scratch(database)
    return database


def _key(patterns: Sequence[Pattern], first_only: bool) -> str:
    digest = hashlib.sha256(f"{hyperscan.__version__} {first_only}".encode())  # type: ignore[attr-defined]
    for pattern in patterns:
        digest.update(f"\0{pattern.regex:d}{pattern.text}".encode())
    return digest.hexdigest()


def _compile(patterns: Sequence[Pattern], first_only: bool) -> hyperscan.Database:
    expressions = [
        (pattern.text if pattern.regex else re.escape(pattern.text)).encode()
        for pattern in patterns
    ]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=expressions,
            ids=list(range(len(expressions))),
            elements=len(expressions),
            flags=_FLAGS | (_FIRST_ONLY if first_only else 0),
        )
    except hyperscan.error as error:
        for pattern in patterns:
            check(pattern)
        raise PatternError(f"the signatures do not compile together: {error}") from error
    return database


def check(pattern: Pattern) -> None:
    """Compile one pattern alone.

    Raises:
        PatternError: with the reason, when it does not compile or matches the empty text.
    """
    expression = (pattern.text if pattern.regex else re.escape(pattern.text)).encode()
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(expressions=[expression], ids=[0], elements=1, flags=_FLAGS | _FIRST_ONLY)
    except hyperscan.error as error:
        raise PatternError(f"the pattern `{pattern.text}` does not compile: {error}") from error
