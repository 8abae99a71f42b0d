"""`Incident` to Markdown, in the one canonical form."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from kb.incident import Body, Incident, Step
from kb.markdown.frontmatter import dump_header


def render(incident: Incident) -> str:
    """Return the whole file, ending with a newline."""
    sections = "\n\n".join(
        f"## {heading}\n\n{content}" for heading, content in _sections(incident.body) if content
    )
    return f"---\n{dump_header(incident.header)}---\n\n{sections}\n"


def is_web_link(url: str) -> bool:
    """Whether a link means the same wherever the record is read."""
    return url.lower().startswith(("https://", "http://"))


def _sections(body: Body) -> Iterator[tuple[str, str | None]]:
    yield "Symptom", body.symptom
    yield "Environment", body.setting
    yield "Cause", body.cause
    yield "Fix", "\n\n".join(_step(number, step) for number, step in enumerate(body.fix, 1))
    yield "Verify", body.verify
    yield "Prevention", body.prevention
    yield (
        "Distinguish",
        "\n".join(
            textwrap.indent(f"`{item.other}`: {item.question}", "  ").replace("  ", "- ", 1)
            for item in body.distinguish
        ),
    )
    yield "Evidence", "\n\n".join(fenced(block, "text") for block in body.evidence)


def _step(number: int, step: Step) -> str:
    command = None if step.command is None else fenced(step.command, step.language)
    parts = [part for part in (step.text, command, step.why) if part]
    marker = f"{number}. "
    return marker + textwrap.indent("\n\n".join(parts), " " * len(marker)).lstrip(" ")


def fenced(text: str, language: str) -> str:
    """A block whose fence no line of the text can close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
