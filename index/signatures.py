"""Many patterns at once, at memory speed, with Hyperscan.

Patterns come from contributors, so no pattern may slow down matching: Hyperscan runs in linear
time and rejects patterns that cannot (look-around, back-references). Matching is within a line:
`.` does not match a newline.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from itertools import filterfalse

import hyperscan

from index.documents import Pattern
from index.errors import PatternError

_MAX_REPEATED = 512
"""Characters that counted repeats add to an expression when they are written out: `.{0,200}` adds
199. Two of a thousand in one expression take Hyperscan more than a second."""
_TOKEN = re.compile(
    r"\\x\{\w+\}|\\."
    r"|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]"
    r"|(?P<opens>\()|(?P<closes>\))|\{(?P<least>\d{1,9})(?:,(?P<most>\d{0,9}))?\}|.",
    re.DOTALL,
)
"""An element of an expression, a parenthesis, or a count; `*`, `+` and `|` pass as elements."""

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
        self.rejected: tuple[Pattern, ...] = ()
        """Those that `cached` had to leave out."""
        self.key = _key(patterns, first_only)
        self._database = _compile(patterns, first_only)

    @classmethod
    def cached(
        cls, patterns: Sequence[Pattern], blob: bytes | None, *, first_only: bool = True
    ) -> Scanner:
        """Load a scanner from what `dump` gave, or compile it when that is of other patterns,
        another Hyperscan or another processor. A pattern that does not compile is left out, because
        the others must be found: versions of Hyperscan differ in what they accept."""
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
            scanner._compile_fitting(first_only)
        return scanner

    def _compile_fitting(self, first_only: bool) -> None:
        try:
            self._database = _compile(self.patterns, first_only)
        except PatternError:
            self.rejected = tuple(filterfalse(_compiles, self.patterns))
            if not self.rejected:
                raise
            self._database = _compile(self.patterns, first_only, without=self.rejected)

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


def _compile(
    patterns: Sequence[Pattern], first_only: bool, without: Collection[Pattern] = ()
) -> hyperscan.Database | None:
    fitting = [(n, pattern) for n, pattern in enumerate(patterns) if pattern not in without]
    if not fitting:
        return None
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=[_expression(pattern) for _number, pattern in fitting],
            ids=[number for number, _pattern in fitting],
            elements=len(fitting),
            flags=_FLAGS | (_FIRST_ONLY if first_only else 0),
        )
    except hyperscan.error as error:
        for pattern in patterns:
            check(pattern)
        raise PatternError(f"the signatures do not compile together: {error}") from error
    return database


def _expression(pattern: Pattern) -> bytes:
    return (pattern.text if pattern.regex else re.escape(pattern.text)).encode()


def _compiles(pattern: Pattern) -> bool:
    try:
        check(pattern)
    except PatternError:
        return False
    return True


def check(pattern: Pattern) -> None:
    """Compile one pattern alone.

    Raises:
        PatternError: with the reason, when it does not compile, matches the empty text, or takes
            too long to compile.
    """
    if pattern.regex and _repeated(pattern.text) > _MAX_REPEATED:
        raise PatternError(
            f"the pattern `{pattern.text}` repeats too much: counts such as {{0,50}} must add up to"
            f" {_MAX_REPEATED} characters at most; write * or + instead"
        )
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=[_expression(pattern)], ids=[0], elements=1, flags=_FLAGS | _FIRST_ONLY
        )
    except hyperscan.error as error:
        raise PatternError(f"the pattern `{pattern.text}` does not compile: {error}") from error


def _repeated(regex: str) -> int:
    """How many elements counted repeats add to an expression when they are written out."""
    sizes, last, once = [0], 0, 0
    for token in _TOKEN.finditer(regex):
        if token["opens"]:
            sizes.append(0)
        elif token["closes"] and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif token["least"]:
            added = last * max(int(token["most"] or token["least"]) - 1, 0)
            sizes[-1] += added
            last += added
        else:
            last = 1
            once += 1
            sizes[-1] += 1
    return sum(sizes) - once
