"""The note that one engineer hands to the next: what is known, what was done, what was said.

It goes into tickets and chats, so secrets are masked in all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from kb.diagnosis import Diagnosis, Match
from kb.evidence import EvidenceLine
from kb.evidence.markers import Grade
from kb.evidence.secrets import without_secrets
from kb.incident import Step
from kb.service.wire import indented, to_answer, with_whole_keys_masked

SCHEMA = 1
"""Of the JSON; grows when a key is removed or changes its meaning."""

MAX_LINES_QUOTED = 20
"""Lines of the log in a note: what one person reads of another's ticket."""


class SpokenTurn(Protocol):
    """A turn of a conversation, as the caller has it."""

    @property
    def speaker(self) -> str:
        """Who speaks."""

    @property
    def text(self) -> str:
        """What is said."""


class NoteTurn(msgspec.Struct, frozen=True):
    """The turn as the note has it."""

    speaker: str
    text: str


class HandOff(msgspec.Struct, frozen=True):
    """All that goes into the note."""

    time: datetime
    """With its time zone."""
    sources: tuple[str, ...]
    """Names of the files, or what else was diagnosed."""
    diagnosis: Diagnosis
    """With its matches as they stand now: a conversation may have changed them."""
    done: Mapping[str, Collection[int]]
    """The steps that were done, from 0, by the id of the incident whose fix they are."""
    conversation: tuple[NoteTurn, ...]

    @classmethod
    def of(
        cls,
        diagnosis: Diagnosis,
        time: datetime,
        sources: Sequence[str],
        matches: Sequence[Match] | None = None,
        done: Mapping[str, Collection[int]] | None = None,
        conversation: Iterable[SpokenTurn] = (),
    ) -> HandOff:
        """Create the note, with secrets masked. `matches` defaults to those of the diagnosis."""
        if matches is not None:
            diagnosis = diagnosis.with_matches(tuple(matches))
        said = tuple(NoteTurn(turn.speaker, turn.text) for turn in conversation)
        note = cls(time, tuple(sources), with_whole_keys_masked(diagnosis), done or {}, said)
        return without_secrets(note)

    def evidence(self) -> list[EvidenceLine]:
        """The lines that speak for the first match and the most telling ones, in order of place."""
        lines = [why.line for match in self.diagnosis.matches[:1] for why in match.why]
        lines += [line for line in self.diagnosis.evidence.lines if line.grade >= Grade.ERROR]
        chosen = {(line.file or "", line.number): line for line in lines[:MAX_LINES_QUOTED]}
        return [chosen[key] for key in sorted(chosen)]

    def fixes(self) -> Iterator[tuple[Match, list[tuple[Step, bool]]]]:
        """The fix of the first match and those that were begun: each step and if it is done."""
        for match in self.diagnosis.matches:
            done = self.done.get(match.incident.id, ())
            if match is self.diagnosis.matches[0] or done:
                steps = enumerate(match.incident.body.fix)
                yield match, [(step, number in done) for number, step in steps]


def to_json(handoff: HandOff) -> str:
    """One JSON object, indented: what `kb ask --json` prints as `diagnosis`, and beside it what was
    done and said."""
    return indented(_to_object(handoff))


def _to_object(handoff: HandOff) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "time": handoff.time,
        "sources": handoff.sources,
        "diagnosis": to_answer(handoff.diagnosis),
        "evidence": [
            {"file": line.file, "line": line.number, "text": line.text, "count": line.count}
            for line in handoff.evidence()
        ],
        "steps": [
            {
                "incident": match.incident.id,
                "step": step.text,
                "command": step.command,
                "done": done,
            }
            for match, steps in handoff.fixes()
            for step, done in steps
        ],
        "conversation": handoff.conversation,
    }
