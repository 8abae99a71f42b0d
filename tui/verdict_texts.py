"""What the screen says of a verdict, and where nothing matches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.content import Content

from kb.verdict import percent

if TYPE_CHECKING:
    from kb.diagnosis import Diagnosis, Note
    from kb.job import Job

_VERDICTS = {
    "match": ("●", "Match", "$success", "a known incident"),
    "possible": ("◐", "Possible", "$warning", "worth reading, but not certain"),
    "unknown": ("○", "Unknown", "$error", "no known incident matches"),
    "healthy": ("✓", "Healthy", "$success", "the work went on to its end"),
}

_MAX_NAMES = 2
"""Number of ranks named in the line of those that failed first; it does not wrap."""

_SLOW = "Press `r` to see the slow rank.\n"
_HELPFUL = """\
The logs of all ranks tell most: open their directory with `o`. Once it is solved, press `n` to
draft a record from this log, so that kb recognises the next one.
"""


def verdict_line(verdict: str) -> Content:
    """The verdict in a sign, a word and a sentence."""
    sign, word, colour, meaning = _VERDICTS[verdict]
    return Content.assemble(
        (f"{sign} {word}", f"bold {colour}"),
        (f"  {meaning}", "dim"),
    )


def first_to_fail(job: Job | None) -> Content:
    """Who failed first, in a line; empty where the log does not tell."""
    if job is None or not job.culprits:
        return Content()
    from kb.views.job_names import rank_and_host

    names = ", ".join(map(rank_and_host, job.culprits[:_MAX_NAMES]))
    rest = len(job.culprits) - _MAX_NAMES
    more = f" and {rest} more" if rest > 0 else ""
    title = "First to fail" if job.failed else "Slow"
    return Content.assemble((f"{title}  ", "bold"), f"{names}{more}")


def explain(diagnosis: Diagnosis, *, has_matches: bool = False) -> str:
    """What to say where no incident is sure, as Markdown; the check to run stands above it."""
    return "\n".join(_explained(diagnosis, has_matches))


def _explained(diagnosis: Diagnosis, has_matches: bool) -> Iterator[str]:
    from kb.diagnosis import without_incident

    if has_matches:
        yield from _symptom(diagnosis)
        return
    yield f"{without_incident(diagnosis)}\n"
    if diagnosis.verdict == "healthy":
        if diagnosis.job and diagnosis.job.culprits:
            yield _SLOW
    elif diagnosis.evidence.total_lines:
        yield from _symptom(diagnosis)
        yield _HELPFUL
        yield from _nearest(diagnosis)
    yield from _notes(diagnosis.notes)


def _symptom(diagnosis: Diagnosis) -> Iterator[str]:
    """The leading playbook: what to secure, and where its checks are."""
    from kb.diagnosis import cause_pointed, collecting, likely_causes

    if not diagnosis.playbooks:
        return
    leading = diagnosis.playbooks[0]
    playbook = leading.playbook
    yield f"**Symptom: {playbook.title}** ({percent(leading.share)})\n"
    if pointed := cause_pointed(diagnosis):
        yield f"{pointed}\n"
    yield "Secure before a restart:\n"
    yield from (f"- {what}" for what in playbook.body.secure)
    yield f"- by a script for every host: `{collecting(playbook)}`\n"
    if diagnosis.symptom_leads:
        yield "Causes, the likeliest first:\n"
        yield from (f"- {said}" for said in likely_causes(diagnosis))
        yield ""
    yield f"All checks and causes: `kb show {playbook.id}`\n"


def _nearest(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.nearest:
        yield "**Closest records, and why they were rejected**\n"
    for near in diagnosis.nearest:
        yield f"- `{near.incident.id}`: {near.incident.title}.\n  {near.why_not}"
    yield ""


def _notes(notes: tuple[Note, ...]) -> Iterator[str]:
    if notes:
        yield "**Known messages that are not the cause**\n"
    for note in notes:
        lines = ", ".join(str(why.line.number) for why in note.why)
        kind = "follow-on error" if note.incident.kind == "cascade" else "harmless"
        yield f"- `{note.incident.id}` ({kind}, line {lines}): {note.incident.title}"
