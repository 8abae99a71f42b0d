"""What a rule is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from kb.incident import Incident
from kb.problem import Problem, Severity


class CheckedFile(msgspec.Struct, frozen=True):
    """A file of the right shape."""

    name: str
    lines: tuple[str, ...]
    incident: Incident
    chosen: bool
    """Whether the user asked about this file; the others are there to compare with."""

    def line_of(self, text: str) -> int:
        """Number of the first line that holds the text, from 1; 1 when none does."""
        return next((number for number, line in enumerate(self.lines, 1) if text in line), 1)


class Rule:
    """One thing that can be wrong. The docstring is the rule's documentation page."""

    code: ClassVar[str]
    help: ClassVar[str]
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, file: CheckedFile) -> Iterable[Problem]:  # noqa: ARG002
        """Look at one file."""
        return ()

    def finish(self, files: Sequence[CheckedFile]) -> Iterable[Problem]:  # noqa: ARG002
        """Look at all files together."""
        return ()

    def problem(self, file: CheckedFile, text: str, message: str) -> Problem:
        """Report a finding at the first line that holds `text`."""
        line = file.line_of(text)
        source = file.lines[line - 1].strip()[:100]
        return Problem(file.name, line, self.code, message, self.help, source, self.severity)
