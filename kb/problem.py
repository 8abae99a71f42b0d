"""A problem in an incident file: where, which rule, what is wrong and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar

import msgspec

MAX_NAMED = 10
"""Files that a notice names; a directory that holds no records at all has thousands."""


class Severity(StrEnum):
    """How much a problem weighs: an error keeps the record out, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class DocumentedRule:
    """One thing that can be wrong. The docstring is the rule's page in docs/lint."""

    code: ClassVar[str]
    severity: ClassVar[Severity] = Severity.ERROR


def skipped(paths: Iterable[str]) -> str:
    """The notice about files that are left out."""
    names = sorted(set(paths))
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"skipped (for the reasons, run: kb lint): {', '.join(names[:MAX_NAMED])}{more}"


class Problem(msgspec.Struct, frozen=True, order=True):
    """One finding, printed in the manner of a compiler."""

    path: str
    line: int
    code: str
    message: str
    help: str
    source: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        """The finding as the terminal shows it."""
        quoted = f"\n   |   {self.source}" if self.source else ""
        return (
            f"{self.severity}[{self.code}]: {self.message}\n"
            f"  --> {self.path}:{self.line}{quoted}\n"
            f"   = help: {self.help}"
        )
