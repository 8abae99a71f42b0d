"""The outputs of checks that the scan came upon, read as the records of the checks say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.check import Check
from kb.checks import Observation
from kb.checks.read import in_order, observe
from kb.checks.recognise import Window, WindowLines, cut_output
from kb.corpus.base import KnowledgeBase

MAX_OBSERVATIONS = 50
"""Of one diagnosis: more are not read by anybody."""


def read_outputs(windows: Iterable[Window], knowledge: KnowledgeBase) -> tuple[Observation, ...]:
    """What the outputs show, abnormal ones first; the same of the same file once."""
    seen: dict[tuple[str, str | None, str], Observation] = {}
    for window in windows:
        lines = WindowLines(window)
        for check in recognised_in(window, knowledge):
            for one in observe(cut_output(lines, check), check):
                seen.setdefault((one.check, one.file, one.text), one)
    return tuple(in_order(seen.values())[:MAX_OBSERVATIONS])


def recognised_in(window: Window, knowledge: KnowledgeBase) -> Iterator[Check]:
    """The checks whose output a part of a source holds."""
    patterns = knowledge.guide_patterns.patterns
    owners = dict.fromkeys(
        owner for number in window.hits for owner in knowledge.guide_owners[patterns[number]]
    )
    for owner in owners:
        guide = knowledge.guides[owner]
        if isinstance(guide, Check):
            yield guide
