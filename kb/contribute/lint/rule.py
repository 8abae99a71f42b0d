"""What a rule is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from kb.contribute.lint.checked import CheckedFile, CheckedGuide, CheckedText, GuideLibrary
from kb.contribute.lint.context import LintContext
from kb.problem import DocumentedRule, Problem


class FileRule(DocumentedRule):
    """A rule that looks at files of the right shape."""

    help: ClassVar[str] = ""

    def problem(self, file: CheckedText, text: str, message: str) -> Problem:
        """Report a finding at the first line that holds `text`."""
        line = file.line_of(text)
        source = file.lines[line - 1].strip()[:100]
        return Problem(file.name, line, self.code, message, self.help, source, self.severity)


class Rule(FileRule):
    """A rule about incidents."""

    def check(self, file: CheckedFile) -> Iterable[Problem]:  # noqa: ARG002
        """Look at one file."""
        return ()

    def finish(self, context: LintContext) -> Iterable[Problem]:  # noqa: ARG002
        """Look at all files together."""
        return ()


class TextRule(Rule):
    """A rule about the text of a record, whatever its kind."""

    def check(self, file: CheckedText) -> Iterable[Problem]:  # noqa: ARG002
        """Look at one file."""
        return ()


class GuideRule(FileRule):
    """A rule about checks and playbooks."""

    def check(self, file: CheckedGuide) -> Iterable[Problem]:  # noqa: ARG002
        """Look at one file."""
        return ()

    def finish(self, library: GuideLibrary) -> Iterable[Problem]:  # noqa: ARG002
        """Look at all files together."""
        return ()
