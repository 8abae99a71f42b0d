"""The outputs of checks that the scan came upon, read as the records of the checks say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kb.check import Check
from kb.checks import Observation, OutputKeeper
from kb.checks.compare import Reading, compare
from kb.checks.model import CollectedOutput, Output
from kb.checks.read import in_order, observe
from kb.checks.recognise import Window, WindowLines, cut_output
from kb.corpus.base import KnowledgeBase
from kb.log import Block

MAX_OBSERVATIONS = 50
"""Of one diagnosis: more are not read by anybody."""


class ReadOutput(msgspec.Struct, frozen=True):
    """The output of a check, and what it shows."""

    check: Check
    output: Output
    observations: tuple[Observation, ...]

    @property
    def is_normal(self) -> bool:
        """Whether all of it is there and could be read, and nothing of it is abnormal."""
        return (
            bool(self.output.lines)
            and not self.output.is_cut
            and all(one.abnormal is False for one in self.observations)
        )

    def holds(self, file: str | None, line: int) -> bool:
        """Whether a line of the input is one of its own."""
        row = line - self.output.first_line
        return (
            file == self.output.source
            and 0 <= row < len(self.output.lines)
            and bool(self.output.lines[row])
        )


class OutputsRead(msgspec.Struct, frozen=True):
    """All outputs of an input, and what they show together."""

    outputs: tuple[ReadOutput, ...] = ()
    observations: tuple[Observation, ...] = ()
    """What differs between hosts first, then what is abnormal."""
    taken: frozenset[str] = frozenset()
    """The checks that a script ran."""

    @property
    def checks(self) -> frozenset[str]:
        """The checks whose output is there."""
        return frozenset(one.check.id for one in self.outputs)

    @property
    def shows_fault(self) -> bool:
        """Whether something is abnormal in what is no line of the job's own log."""
        return any(
            seen.abnormal
            for one in self.outputs
            if not one.check.header.in_log
            for seen in one.observations
        )


def read_outputs(
    windows: Iterable[Window],
    knowledge: KnowledgeBase,
    collected: Iterable[CollectedOutput] = (),
) -> OutputsRead:
    """What the outputs show; the same of the same file once. What a script took is compared between
    hosts, and stands in front; of the rest, what is abnormal comes first."""
    pasted = [one for window in windows for one in _read_window(window, knowledge)]
    seen: dict[tuple[str, str | None, str], Observation] = {}
    for output in pasted:
        for one in output.observations:
            seen.setdefault((one.check, one.file, one.text), one)
    readings = list(_readings(collected, knowledge))
    taken = (ReadOutput(one.check, one.taken.output, one.observations) for one in readings)
    observations = [*compare(readings), *in_order(seen.values())][:MAX_OBSERVATIONS]
    return OutputsRead(
        (*pasted, *taken), tuple(observations), frozenset(one.check.id for one in readings)
    )


def read_text(text: str, source: str | None, knowledge: KnowledgeBase) -> OutputsRead:
    """What a text shows that somebody pastes into a conversation."""
    keeper = OutputKeeper(knowledge.guides.patterns)
    keeper.add(Block(source, 1, text.count("\n") + 1, text.encode()))
    return read_outputs(keeper.windows(), knowledge)


def _read_window(window: Window, knowledge: KnowledgeBase) -> Iterator[ReadOutput]:
    lines = WindowLines(window)
    guides = knowledge.guides
    for check in recognised_in(window, knowledge):
        output = cut_output(lines, check, guides.anchor_scanner(check))
        yield ReadOutput(
            check, output, tuple(observe(output, check, guides.finding_scanner(check)))
        )


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
