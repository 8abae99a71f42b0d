"""What the screen says of a verdict, and where nothing matches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.content import Content

if TYPE_CHECKING:
    from kb.diagnosis import Diagnosis, Note
    from kb.job import Job

_VERDICTS = {
    "match": ("●", "Match", "$success", "a known incident"),
    "possible": ("◐", "Possible", "$warning", "worth reading, not an answer"),
    "unknown": ("○", "Unknown", "$error", "nothing known matches"),
    "healthy": ("✓", "Healthy", "$success", "no sign of a failure"),
}

_MOST_NAMES = 2

_FOLLOW_ON = """\
## Only follow-on errors

These errors follow from another failure. Look for the first one: an earlier line, or the log of
another rank or host.
"""
_HEALTHY = """\
## No sign of a failure

Nothing in this log shows an error, and nothing that is known to hang fits it.
"""
_SLOW = "The job is slow, but it did not fail: `r` shows which rank is late.\n"
_EMPTY = "## Nothing to read\n\nThe input is empty.\n"
_UNKNOWN = """\
## Nothing known matches

It is a failure, but no record fits it well enough to be named.

**What would help**

- the first error in time, over all ranks, with the lines before it
- the logs of all ranks: open the directory with `o`
- versions and the launch command

When it is solved, `n` drafts a record of it from this log, so that the next one is found.
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
    from kb.views.job import who

    names = ", ".join(map(who, job.culprits[:_MOST_NAMES]))
    rest = len(job.culprits) - _MOST_NAMES
    more = f" and {rest} more" if rest > 0 else ""
    title = "First to fail" if job.failed else "Slow"
    return Content.assemble((f"{title}  ", "bold"), f"{names}{more}")


def explain(diagnosis: Diagnosis) -> str:
    """What to show instead of an incident, as Markdown."""
    return "\n".join(_explained(diagnosis))


def _explained(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.verdict == "healthy":
        yield _HEALTHY
        if diagnosis.job and diagnosis.job.culprits:
            yield _SLOW
    elif diagnosis.verdict == "possible":
        yield _FOLLOW_ON
    elif not diagnosis.evidence.total_lines:
        yield _EMPTY
    else:
        yield _UNKNOWN
        yield from _nearest(diagnosis)
    yield from _notes(diagnosis.notes)


def _nearest(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.nearest:
        yield "**The nearest, and why not**\n"
    for near in diagnosis.nearest:
        yield f"- `{near.incident.id}`: {near.incident.title}.\n  {near.why_not}"
    yield ""


def _notes(notes: tuple[Note, ...]) -> Iterator[str]:
    if notes:
        yield "**Known, and no cause**\n"
    for note in notes:
        lines = ", ".join(str(why.line.number) for why in note.why)
        kind = "follow-on error" if note.incident.kind == "cascade" else "harmless"
        yield f"- `{note.incident.id}` ({kind}, line {lines}): {note.incident.title}"
