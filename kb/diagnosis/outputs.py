"""The outputs of checks that the scan came upon, read as the records of the checks say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.check import Check
from kb.checks import Observation
from kb.checks.compare import Reading, compare
from kb.checks.model import CollectedOutput
from kb.checks.read import in_order, observe
from kb.checks.recognise import Window, WindowLines, cut_output
from kb.corpus.base import KnowledgeBase

MAX_OBSERVATIONS = 50
"""Of one diagnosis: more are not read by anybody."""


def read_outputs(
    windows: Iterable[Window],
    knowledge: KnowledgeBase,
    collected: Iterable[CollectedOutput] = (),
) -> tuple[Observation, ...]:
    """What the outputs show; the same of the same file once. What a script took is compared between
    hosts, and stands in front; of the rest, what is abnormal comes first."""
    seen: dict[tuple[str, str | None, str], Observation] = {}
    for window in windows:
        lines = WindowLines(window)
        for check in recognised_in(window, knowledge):
            for one in observe(
                cut_output(lines, check), check, knowledge.guides.finding_scanner(check)
            ):
                seen.setdefault((one.check, one.file, one.text), one)
    compared = compare(_readings(collected, knowledge))
    return tuple([*compared, *in_order(seen.values())][:MAX_OBSERVATIONS])


def _readings(collected: Iterable[CollectedOutput], knowledge: KnowledgeBase) -> Iterator[Reading]:
    """A check that nobody knows here, because the script is of another version, is left out."""
    for taken in collected:
        check = knowledge.guides.by_id.get(taken.origin.check)
        if isinstance(check, Check):
            scanner = knowledge.guides.finding_scanner(check)
            seen = observe(taken.output, check, scanner) if taken.output.lines else []
            yield Reading(check, taken, (*_stopped(taken), *seen))


def _stopped(taken: CollectedOutput) -> Iterator[Observation]:
    """A tool that hangs is a finding of its own."""
    if taken.origin.stopped:
        yield Observation(
            check=taken.origin.check,
            finding=None,
            text=f"The command {taken.origin.stopped}, so it hangs or is slow.",
            file=taken.output.source,
            line=max(len(taken.output.lines), 1),
            abnormal=True,
        )


def recognised_in(window: Window, knowledge: KnowledgeBase) -> Iterator[Check]:
    """The checks whose output a part of a source holds."""
    patterns = knowledge.guides.patterns.patterns
    owners = dict.fromkeys(
        owner for number in window.hits for owner in knowledge.guides.owners[patterns[number]]
    )
    for owner in owners:
        guide = knowledge.guides.by_id[owner]
        if isinstance(guide, Check):
            yield guide
