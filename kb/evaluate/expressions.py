"""Regular expressions of labels: what a right fix or the line of a cause contains."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from index.documents import Pattern
from index.errors import PatternError
from index.signatures import Scanner
from kb.errors import EvaluationError


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
    """Expressions that are searched for together, as Python reads them: whoever writes dialogues
    writes look-around, too."""

    def __init__(self, expressions: Sequence[str]) -> None:
        """
        Raises:
            EvaluationError: one does not compile.
        """
        for one in expressions:
            check_expression(one)
        self._compiled = {one: re.compile(one) for one in expressions}

    def found_in(self, text: str) -> frozenset[str]:
        """Those that the text has."""
        return frozenset(one for one, compiled in self._compiled.items() if compiled.search(text))


@lru_cache(1)
def _search(regex: str) -> Callable[[str], bool]:
    """In linear time, but for an expression with look-around, which only Python knows."""
    try:
        scanner = Scanner([Pattern(regex, regex=True)])
    except PatternError:
        compiled = re.compile(regex)
        return lambda text: compiled.search(text) is not None
    return lambda text: bool(scanner.scan(text.encode("utf-8", "replace")))
