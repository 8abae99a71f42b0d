"""What `kb watch` says, one line each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import PurePath

import msgspec

from kb.log.clean import strip_controls
from kb.verdict import Verdict, percent
from kb.watch import Event, Watcher

_MAX_TEXT_CHARACTERS = 300
"""Of the line of the log."""


def to_line(event: Event) -> str:
    """For people: when, how sure, what, who and where."""
    parts = [event.time, f"{event.verdict:8}", *_what(event)]
    if event.rank is not None:
        parts.append(f"rank {event.rank}{f' on {event.host}' if event.host else ''}")
    parts += [_where(event), _text(event)]
    line = strip_controls("  ".join(filter(None, parts)))
    return " ".join(line.splitlines())  # the name of a file may hold a line break


def to_json_line(event: Event) -> str:
    """For programs."""
    return msgspec.json.encode(event).decode()


def _what(event: Event) -> Iterable[str]:
    if event.incident and event.confidence is not None and event.title:
        return (percent(event.confidence), event.incident, f'"{event.title}"')
    if event.verdict is Verdict.HEALTHY:
        return ("the log says at its end that the work is done",)
    return ("something failed, and nothing known matches",)


def _where(event: Event) -> str:
    """As compilers write it, so that editors and terminals find the line."""
    if event.line is None or event.file is None:
        return event.path
    path = PurePath(event.path)
    file = path if path.name == event.file else path / event.file
    return f"{file}:{event.line}"


def _text(event: Event) -> str:
    text = event.text or ""
    return text if len(text) <= _MAX_TEXT_CHARACTERS else f"{text[:_MAX_TEXT_CHARACTERS]} ..."


def to_summary(watcher: Watcher, seconds: float) -> str:
    """What a watch came to."""
    found = sorted({said.incident for said in watcher.said if said.incident})
    unknown = sum(
        said.incident is None and said.verdict is not Verdict.HEALTHY for said in watcher.said
    )
    if unknown:
        found.append(f"{unknown} that nothing known fits")
    read = f"{watcher.bytes_read / 1e6:,.1f} MB in {timedelta(seconds=round(seconds))}"
    return f"read {read}; failures: {', '.join(found) or 'none'}"
