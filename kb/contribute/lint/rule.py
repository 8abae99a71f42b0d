"""What a rule is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from kb.contribute.lint.checked import CheckedFile
from kb.contribute.lint.context import LintContext
from kb.problem import DocumentedRule, Problem


class Rule(DocumentedRule):
    """A rule that looks at files of the right shape."""

    help: ClassVar[str] = ""

    def check(self, file: CheckedFile) -> Iterable[Problem]:  # noqa: ARG002
        """Look at one file."""
        return ()

    def finish(self, context: LintContext) -> Iterable[Problem]:  # noqa: ARG002
        """Look at all files together."""
        return ()

    def problem(self, file: CheckedFile, text: str, message: str) -> Problem:
        """Report a finding at the first line that holds `text`."""
        line = file.line_of(text)
        source = file.lines[line - 1].strip()[:100]
        return Problem(file.name, line, self.code, message, self.help, source, self.severity)
