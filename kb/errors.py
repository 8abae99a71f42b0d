"""
Errors raised on purpose. Each message tells the user in one sentence what to do.

* KbError
  x EvaluationError   a file of labelled reports cannot be used, or what draws it is missing
  x IncidentError     one incident file is wrong; carries its problems (path, line, rule code, help)
  x CorpusError       a directory of incidents cannot be used
  x DamagedError      stored JSON was cut off, rotted, or edited into something else
  x LogError          input that cannot be read
    x NothingReadError  of all that was given, nothing could be read
  x MissingExtraError an optional dependency is not installed; says how to install it
  x OutputError       a file of results cannot be written or continued
  x RunError          a command is not run here, or did not run to its end
  x SettingsError     the configuration file or an environment variable is wrong

The errors of the package `index` have the same root and are in `index.errors`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from index.errors import KbError

__all__ = [
    "CorpusError",
    "DamagedError",
    "EvaluationError",
    "IncidentError",
    "KbError",
    "LogError",
    "MissingExtraError",
    "NothingReadError",
    "OutputError",
    "SettingsError",
    "short_name",
    "unknown",
]

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from kb.problem import Problem


_USER_INFO = re.compile(r"(?<=:/)(/?)[^/\s@]{0,200}:[^/\s]{0,1000}@")
"""User and password in a URL; a path keeps one of the two slashes."""
_MAX_NAME_CHARACTERS = 400
"""Of a name in a message: several lines of a terminal, and far more than a name has in practice."""


def short_name(name: Path | str) -> str:
    """A name for a message, without the password of a URL: of a very long one, its beginning and
    its end."""
    text, half = _USER_INFO.sub(r"\1<secret: password>@", str(name)), _MAX_NAME_CHARACTERS // 2
    return text if len(text) <= _MAX_NAME_CHARACTERS else f"{text[:half]}...{text[-half:]}"


def unknown(kind: str, name: str, known: Collection[str], otherwise: str) -> str:
    """A sentence with the known names that are close, or with what to do `otherwise`."""
    from difflib import get_close_matches

    close = " or ".join(f"`{other}`" for other in get_close_matches(name, known, cutoff=0.5))
    return f"unknown {kind} `{name}`; {f'did you mean {close}?' if close else otherwise}"


class EvaluationError(KbError):
    """A file of labelled reports cannot be used, or what draws the result is missing."""


class IncidentError(KbError):
    """One incident file is wrong."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in problems))


class CorpusError(KbError):
    """A directory of incidents cannot be used."""


class DamagedError(KbError):
    """Stored JSON was cut off, rotted, or edited into something else."""


class LogError(KbError):
    """Input that cannot be read."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"cannot read {short_name(path)}: {reason}")


class NothingReadError(LogError):
    """Nothing of the input can be read."""

    def __init__(self, losses: Sequence[str]) -> None:
        """`losses` tell what could not be read, of each file one or more."""
        first, *others = losses
        told = f"none of the {len(losses)} files can be read; {first}" if others else first
        KbError.__init__(self, f"{told}; nothing is left to diagnose")


class MissingExtraError(KbError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what}; install it with: pip install 'incident-kb[{extra}]'")


class OutputError(KbError):
    """A file of results cannot be written or continued."""


class RunError(KbError):
    """A command is not run here, or did not run to its end."""


class SettingsError(KbError):
    """The configuration file or an environment variable is wrong."""
