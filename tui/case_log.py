"""The log of a case: its files, what is to be marked in them, and where one reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

import msgspec

if TYPE_CHECKING:
    from index.documents import Pattern
    from kb.diagnosis import Diagnosis, Why
    from kb.log import Source
    from kb.log.layout import Origin
    from kb.service.input import UserInput
    from tui.growth import Growth
    from tui.lines import Lines
    from tui.log_filter import LogFilter

Line = tuple[str | None, int]
"""A file of the log, None for what has no name, and the number of a line in it."""


class CaseLog(msgspec.Struct, frozen=True):
    """What the log pane knows of a case. Its files may be gone when it is shown again."""

    sources: Mapping[str | None, Source]
    origins: Mapping[str | None, Origin]
    """What the names of the files tell."""
    text: str
    """What was typed or pasted."""
    ranks: str
    hits: Mapping[Line, Pattern]
    """What signatures match."""
    first_failure: Line | None
    growth: Growth

    @classmethod
    def of(cls, user_input: UserInput, diagnosis: Diagnosis, growth: Growth) -> Self:
        """That of a case that was diagnosed.

        Raises:
            LogError: a path is gone by now.
        """
        from kb.log.layout import origin_of

        sources = {source.name: source for source in user_input.sources}
        hits = diagnosis.evidence.hits
        return cls(
            sources,
            {name: origin_of(name or "") for name in sources},
            user_input.text,
            _ranks(diagnosis),
            {(hit.line.file, hit.line.number): hit.pattern for hit in hits},
            _first_failure(diagnosis),
            growth,
        )


class LogPlace(msgspec.Struct, frozen=True):
    """Where one reads in a log."""

    file: str | None
    lines: Lines
    """Of the file: counting them anew would take a while."""
    top: int
    """The number of the line in the first row."""
    current: int | None
    """The number of the highlighted line."""
    why: tuple[Why, ...] | None
    """What is marked."""
    step: int | None
    """Which of it was gone to, from 0."""
    only: LogFilter
    """Which lines are seen."""
    words: str
    """What is searched for."""


def _first_failure(diagnosis: Diagnosis) -> Line | None:
    culprits = diagnosis.job.culprits if diagnosis.job else ()
    return next(
        ((culprit.file, culprit.line) for culprit in culprits if culprit.line is not None), None
    )


def _ranks(diagnosis: Diagnosis) -> str:
    size = diagnosis.job.world_size if diagnosis.job else None
    return f"ranks 0-{size - 1}" if size and size > 1 else ""
