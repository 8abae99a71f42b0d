"""How the tool puts things: what is cited can be found again in a record or in the log."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from kb.conversation.state import Speaker, Turn
from kb.diagnosis import Match, NextCheck
from kb.evidence import EvidenceLine
from kb.incident import Incident, Step
from kb.log.clean import strip_controls
from kb.soft_breaks import join_soft_breaks
from kb.verdict import percent

_MAX_QUOTE_CHARACTERS = 160
"""Of a quoted line, two rows of a terminal; the rest is cut."""
_MAX_CHANGES_NAMED = 3
"""Records whose change is stated after a statement, the largest changes first."""
_MIN_CHANGE = 0.01
"""Minimum change of a confidence that is stated; smaller ones vanish when rounded to percent."""
_CITED = re.compile(r"\[([A-Za-z0-9][A-Za-z0-9.-]*)\]")


def tool_turn(text: str, known: Collection[str], lines: Iterable[EvidenceLine] = ()) -> Turn:
    """What the tool says; `known` are the ids that it may cite."""
    records = tuple(dict.fromkeys(name for name in _CITED.findall(text) if name in known))
    cited = tuple(dict.fromkeys((line.file, line.number) for line in lines))
    return Turn(Speaker.TOOL, strip_controls(text), records, cited)


def quote(text: str) -> str:
    """A line of the log, as code."""
    whole = text.strip().replace("`", "'")
    shown = whole[:_MAX_QUOTE_CHARACTERS]
    return f"`{shown}`" if shown == whole else f"`{shown} ...`"


def location(line: EvidenceLine) -> str:
    """The file and number of a line."""
    return f"{line.file} line {line.number}" if line.file else f"line {line.number}"


def quote_with_location(line: EvidenceLine) -> str:
    """A line with its location."""
    return f"{quote(line.text)} ({location(line)})"


def cite(incident: Incident) -> str:
    """A record by its title and id."""
    return f"{incident.title} [{incident.id}]"


def numbered_step(number: int, step: Step) -> str:
    """A step of a fix, its command ready to copy."""
    command = f"\n```{step.language}\n{step.command}\n```" if step.command else ""
    why = f"\n{join_soft_breaks(step.why)}" if step.why else ""
    return f"{number}. {join_soft_breaks(step.text)}{command}{why}"


def described_check(step: NextCheck) -> str:
    """The check to run next, its command ready to copy."""
    header = step.check.header
    return "\n".join(
        [
            f"Check next: {step.check.title} [{step.check.id}].",
            f"```{step.command.language}\n{step.command.run}\n```",
            f"Where: {header.where} ({header.cost.risk.in_words}).",
            f"Why: {join_soft_breaks(step.why)}",
        ]
    )


def describe_change(before: Sequence[Match], after: Sequence[Match]) -> str:
    """What went up or down, and what is first now."""
    if not after:
        return "No known incident is likely enough to show."
    sentences = [*_moves(before, after), _first(before, after)]
    return " ".join(sentences)


def _moves(before: Sequence[Match], after: Sequence[Match]) -> list[str]:
    was = {match.incident.id: match.confidence for match in before}
    now = {match.incident.id: match.confidence for match in after}
    ids = sorted(was.keys() | now.keys(), key=lambda i: (-_change(i, was, now), i))
    return [
        _move(identifier, was.get(identifier), now.get(identifier))
        for identifier in ids[:_MAX_CHANGES_NAMED]
        if _change(identifier, was, now) >= _MIN_CHANGE
    ]


def _change(identifier: str, was: dict[str, float], now: dict[str, float]) -> float:
    return abs(now.get(identifier, 0.0) - was.get(identifier, 0.0))


def _move(identifier: str, was: float | None, now: float | None) -> str:
    if was is None:
        return f"[{identifier}] is new at {percent(now or 0.0)}."
    if now is None:
        return f"[{identifier}] drops off the list (was {percent(was)})."
    way = "rises" if now > was else "falls"
    return f"[{identifier}] {way} from {percent(was)} to {percent(now)}."


def _first(before: Sequence[Match], after: Sequence[Match]) -> str:
    first = after[0]
    stays = bool(before) and before[0].incident.id == first.incident.id
    word = "is still first" if stays else "is now first"
    return f"[{first.incident.id}] {word} at {percent(first.confidence)}."
