"""The terminal view of a diagnosis. It fits 80 columns and reads the same without colour.

Lines of logs are hostile: they become `Text`, in which markup means nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kb.checks import Observation
from kb.diagnosis import (
    Diagnosis,
    Match,
    NearMiss,
    Note,
    Why,
    cause_pointed,
    collecting,
    likely_causes,
    without_incident,
)
from kb.incident import Incident, Kind
from kb.verdict import Verdict, percent
from kb.views.job import render_job
from kb.views.leads import render_leads
from kb.views.prose import bar, command_block, heading, indented, link, prose, steps

_BAR_CELLS = 20
_SMALL_BAR_CELLS = 6
"""Columns of the bar of a confidence: of the first incident, and of the others."""
_MAX_OBSERVATIONS = 8
"""Shown of what the outputs of checks show; the rest is in the JSON."""
_MAX_QUOTE_CHARACTERS = 300
"""Of a line of evidence, which may wrap to four rows."""

_VERDICTS = {
    Verdict.MATCH: ("MATCH", "bold green"),
    Verdict.POSSIBLE: ("POSSIBLE", "bold yellow"),
    Verdict.UNKNOWN: ("UNKNOWN", "bold red"),
    Verdict.HEALTHY: ("HEALTHY", "bold green"),
}


_SIGNS = {True: ("! ", "bold red"), None: ("? ", "bold yellow"), False: ("", "")}
"""In front of an observation: abnormal, not readable, reassuring."""


def render(diagnosis: Diagnosis, earlier: str = "") -> RenderableType:
    """Return the whole answer; `earlier` is a sentence about how the same ended the last time."""
    return Group(*_parts(diagnosis, earlier))


def _parts(diagnosis: Diagnosis, earlier: str) -> Iterator[RenderableType]:
    word, style = _VERDICTS[diagnosis.verdict]
    differing = [seen for seen in diagnosis.observations if seen.differs]
    shared = [seen for seen in diagnosis.observations if not seen.differs]
    if diagnosis.job and (diagnosis.job.culprits or diagnosis.job.earlier):
        yield from render_job(diagnosis.job)
        yield Text()
    if differing:
        yield heading("What differs between hosts or processes")
        yield from map(_observed, differing[:_MAX_OBSERVATIONS])
        yield Text()
    best = None if diagnosis.symptom_leads else next(iter(diagnosis.matches), None)
    if best:
        yield from _best(best, Text(f"{word}  ", style))
    else:
        yield Text.assemble((f"{word}  ", style), without_incident(diagnosis))
    yield from _solved_before(earlier)
    if shared:
        yield heading("What the outputs show")
        yield from map(_observed, shared[:_MAX_OBSERVATIONS])
    if diagnosis.verdict is not Verdict.MATCH:
        yield from _way_forward(diagnosis)
    if best:
        yield from _remedy(best.incident)
    if diagnosis.nearest:
        yield heading("Closest records, and why they were rejected")
        yield from map(_near, diagnosis.nearest)
    if question := diagnosis.question:
        yield heading("To narrow it down")
        yield indented(prose(question.text))
        yield indented(Text(f"({', '.join(question.answers)}; continue with kb chat)", "dim"))
    if others := diagnosis.matches[1:] if best else diagnosis.matches:
        yield heading("Also possible" if best else "Possible causes (kb show ID)")
        yield _others(others)
    yield from _notes(diagnosis.notes)
    yield from render_leads(diagnosis.leads)


def _solved_before(earlier: str) -> Iterator[RenderableType]:
    if earlier:
        yield heading("Solved here before")
        yield indented(Text(earlier))


def _way_forward(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """The leading playbook, in the order in which its parts are needed."""
    if not diagnosis.playbooks:
        return
    leading, *others = diagnosis.playbooks
    playbook = leading.playbook
    yield heading(f"Symptom: {playbook.title}")
    yield indented(Text.assemble((f"{percent(leading.share)} ", "bold"), (playbook.id, "cyan")))
    if pointed := cause_pointed(diagnosis):
        yield indented(prose(pointed))
    yield indented(Text("Secure before a restart:"))
    yield from (indented(Text(f"- {what}"), 4) for what in playbook.body.secure)
    yield indented(Text("- by a script for every host:"), 4)
    yield command_block(collecting(playbook), 6)
    if step := diagnosis.next:
        yield indented(Text.assemble("Check next: ", (step.check.title, "bold")))
        yield command_block(step.command.run, 4)
        header = step.check.header
        yield indented(Text(f"Where: {header.where} ({header.cost.risk.in_words})"))
        yield indented(prose(f"Why: {step.why}"))
    if diagnosis.symptom_leads:
        yield indented(Text("Causes, the likeliest first:"))
        yield from (indented(prose(f"- {said}"), 4) for said in likely_causes(diagnosis))
    if others:
        named = ", ".join(f"{one.playbook.id} ({percent(one.share)})" for one in others)
        yield indented(Text(f"Or: {named}", "dim"))
    yield indented(Text(f"All checks and causes: kb show {playbook.id}", "dim"))


def _best(match: Match, verdict: Text) -> Iterator[RenderableType]:
    header = match.incident.header
    yield Text.assemble(
        verdict,
        (f"{percent(match.confidence)} ", "bold"),
        bar(match.confidence, _BAR_CELLS),
        "  ",
        (header.id, "cyan"),
    )
    yield Text(header.title, "bold")
    if header.caution:
        yield Text(f"Caution: {header.caution}", "yellow")
    yield heading("Why")
    yield from (_quote(why) for why in match.why)


def _remedy(incident: Incident) -> Iterator[RenderableType]:
    yield heading("Fix")
    yield steps(incident.body.fix)
    yield heading("Verify")
    yield indented(prose(incident.body.verify))
    yield heading("Cause")
    yield indented(prose(incident.body.cause))
    yield heading("References")
    yield from (link(url) for url in incident.header.references)


def _quote(why: Why) -> RenderableType:
    where = f"{why.line.file}:{why.line.number}" if why.line.file else f"line {why.line.number}"
    times = f", {why.line.count} times" if why.line.count > 1 else ""
    text = why.line.text.strip()
    quoted = text if len(text) <= _MAX_QUOTE_CHARACTERS else text[:_MAX_QUOTE_CHARACTERS] + " ..."
    return Group(
        indented(Text(f"{where}{times}  (by {why.by})", "dim")),
        Padding(Text(quoted, overflow="fold"), (0, 0, 0, 4)),
    )


def _observed(seen: Observation) -> RenderableType:
    sign, style = _SIGNS[seen.abnormal]
    where = f"{seen.file}:{seen.line}" if seen.file else f"line {seen.line}"
    source = Text.assemble("\n", (seen.check, "cyan"), (f" ({where})", "dim"))
    return indented(Text.assemble((sign, style), seen.text, source))


def _near(near: NearMiss) -> RenderableType:
    named = Text.assemble((near.incident.id, "cyan"), "\n", near.incident.title)
    return indented(Text.assemble(named, "\n", (near.why_not, "dim")))


def _others(matches: tuple[Match, ...]) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for match in matches:
        title = Text.assemble((match.incident.id, "cyan"), "\n", match.incident.title)
        table.add_row(
            f"  {percent(match.confidence)}", bar(match.confidence, _SMALL_BAR_CELLS), title
        )
    return table


def _notes(notes: tuple[Note, ...]) -> Iterator[RenderableType]:
    for kind, title in (
        (Kind.CASCADE, "Follow-on errors"),
        (Kind.HARMLESS, "Harmless messages"),
    ):
        chosen = [note for note in notes if note.incident.kind is kind]
        if chosen:
            yield heading(title)
        for note in chosen:
            where = ", ".join(str(why.line.number) for why in note.why)
            yield indented(
                Text.assemble((note.incident.id, "cyan"), f" (line {where})\n", note.incident.title)
            )
