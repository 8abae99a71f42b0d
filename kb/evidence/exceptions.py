"""The exceptions that a log shows last, by the process that raised them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

import msgspec

from index.signatures import Scanner
from kb.evidence.model import EvidenceLine, Raised
from kb.expression import Expression
from kb.log.clean import strip_controls
from kb.log.lines import BlockLines
from kb.log.prefixes import split_prefix

_EXCEPTION = Expression(r"(?:\w+\.)*[A-Za-z]\w*(?:Error|Exception|Exit|Interrupt)(?::|$|\()")
_AFTER_STACK = Expression(rf"{_EXCEPTION.pattern}|(?:\w+\.)+\w+(?::|$)|[A-Z]\w+: ")
"""Behind a stack other names are exceptions as well: `cv2.error`, `queue.Empty`."""
_LINK = b"above exception"
"""Python prints it in front of the stack of an exception that another one led to."""
_LINES_TO_LINK = 3
_MAX_KEPT = 6
"""Exceptions kept of one process: what ended it, and the wrappers around that."""
_MAX_PROCESSES = 64
"""The first that raise; those of a larger job say the same."""
_MAX_MESSAGE_LINES = 4
"""Lines of a message; further ones are advice."""
_MAX_MESSAGE_BYTES = 2_000


class _Kept(msgspec.Struct, frozen=True):
    """An exception that is not read further while others may follow."""

    line: EvidenceLine
    data: bytes
    """The text from its line on."""
    follows: bool


class RaisedExceptions:
    """Keeps the last exceptions of each process while a log is read."""

    def __init__(self) -> None:
        self._by_process: dict[tuple[str | None, int | None], deque[_Kept]] = {}

    def add(self, block: BlockLines, begin: int, start: int, line: EvidenceLine) -> None:
        """Take in the line at `start` if it is an exception. Its stack begins at `begin`; where
        there is none, that is the same line."""
        form = _EXCEPTION if begin == start else _AFTER_STACK
        if not form.match(_said(line.text)):
            return
        process = (line.file, line.rank)
        if process not in self._by_process:
            if len(self._by_process) == _MAX_PROCESSES:
                return
            self._by_process[process] = deque(maxlen=_MAX_KEPT)
        kept = self._by_process[process]
        if kept and kept[-1].line.number == line.number:
            return
        before = islice(block.starts_before(begin), _LINES_TO_LINK)
        follows = any(
            _LINK in block.data[place : place + _MAX_MESSAGE_BYTES].partition(b"\n")[0]
            for place in before
        )
        kept.append(_Kept(line, block.data[start : start + _MAX_MESSAGE_BYTES], follows))

    def read(self, signatures: Scanner) -> Iterator[Raised]:
        """Those that were kept, in the order of each process."""
        for kept in self._by_process.values():
            for one in kept:
                message = "\n".join(_message(one))
                yield Raised(
                    line=one.line,
                    message=message,
                    patterns=frozenset(
                        signatures.patterns[number]
                        for number, _end in signatures.scan(message.encode())
                    ),
                    follows=one.follows,
                )


def _message(one: _Kept) -> Iterator[str]:
    """The lines of the message, as far as its process goes on speaking."""
    first, *further = strip_controls(one.data.decode("utf-8", "replace")).split("\n")
    yield _said(first)
    for line in further[: _MAX_MESSAGE_LINES - 1]:
        spoken = split_prefix(line)
        ends = not spoken.text.strip() or spoken.text.startswith("Traceback (")
        if ends or spoken.rank != one.line.rank:
            return
        yield spoken.text


def _said(line: str) -> str:
    """The line without its prefixes; a name such as `cv2.error` only looks like that of a host."""
    return line if _AFTER_STACK.match(line) else split_prefix(line).text
