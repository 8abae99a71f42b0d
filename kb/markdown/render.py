"""A record to Markdown, in the one canonical form."""

from __future__ import annotations

from collections.abc import Iterator

from kb.check import Check
from kb.guides import Record
from kb.markdown import check, incident, playbook
from kb.markdown.frontmatter import dump_header
from kb.playbook import Playbook


def render(record: Record) -> str:
    """Return the whole file, ending with a newline."""
    sections = "\n\n".join(
        f"## {heading}\n\n{content}" for heading, content in _sections(record) if content
    )
    return f"---\n{dump_header(record.header)}---\n\n{sections}\n"


def is_web_link(url: str) -> bool:
    """Whether a link means the same wherever the record is read."""
    return url.lower().startswith(("https://", "http://"))


def _sections(record: Record) -> Iterator[tuple[str, str | None]]:
    if isinstance(record, Check):
        return check.write(record.body)
    if isinstance(record, Playbook):
        return playbook.write(record.body)
    return incident.write(record.body)
