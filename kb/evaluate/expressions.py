"""Regular expressions of labels: what a right fix or the line of a cause contains."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from index.documents import Pattern
from index.errors import PatternError
from index.signatures import Scanner, check
from kb.errors import EvaluationError

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def check_expression(regex: str) -> None:
    """Find out whether an expression of a label can be searched for.

    Raises:
        EvaluationError: it does not compile.
    """
    try:
        re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise EvaluationError(f"the expression {regex[:80]!r} does not compile: {error}") from error


def contains(regex: str, text: str) -> bool:
    """Whether the text has what an expression describes."""
    return _search(regex)(text)


class Expressions:
    """Expressions that are searched for together, in linear time.

    A character is one of Unicode; `\\w` and `\\b` know ASCII alone, `^` and `$` stand at lines.
    """

    def __init__(self, expressions: Sequence[str]) -> None:
        """
        Raises:
            EvaluationError: one does not compile, matches the empty text, or needs more than linear
                time, as look-around and back-references do.
        """
        self._expressions = tuple(expressions)
        for one in self._expressions:
            try:
                check(_pattern(one))
            except PatternError as error:
                why = str(error).rpartition(": ")[2]
                raise EvaluationError(
                    f"the expression {one[:80]!r} cannot be used: {why}; write one that needs no"
                    " look-around and matches no empty text"
                ) from error
        self._scanner = Scanner([_pattern(one) for one in self._expressions])

    def found_in(self, text: str) -> frozenset[str]:
        """Those that the text has."""
        hits = self._scanner.scan(text.encode("utf-8", "replace"))
        return frozenset(self._expressions[number] for number, _end in hits)


def _pattern(expression: str) -> Pattern:
    """As Hyperscan reads it by characters, not by bytes."""
    escaped = _NOT_ASCII.sub(lambda sign: f"\\x{{{ord(sign[0]):x}}}", expression)
    return Pattern(f"(*UTF8){escaped}", regex=True)


@lru_cache(1)
def _search(regex: str) -> Callable[[str], bool]:
    """In linear time, but for an expression with look-around, which only Python knows."""
    try:
        scanner = Scanner([Pattern(regex, regex=True)])
    except PatternError:
        compiled = re.compile(regex)
        return lambda text: compiled.search(text) is not None
    return lambda text: bool(scanner.scan(text.encode("utf-8", "replace")))
