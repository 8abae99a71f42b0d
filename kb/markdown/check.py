"""The sections of a check, read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markdown_it.tree import SyntaxTreeNode

from index.documents import Pattern
from kb.check import CheckBody, CheckHeader, Command, Finding, Limit
from kb.markdown import rules
from kb.markdown.blocks import code_span, fenced, read_spans
from kb.markdown.reader import Blocks, Heading, Part, Reader, first_line

HEADINGS: Mapping[str, Heading] = {
    "Commands": Heading(parts=True),
    "Normal": Heading(),
    "Findings": Heading(parts=True),
    "Cannot see": Heading(required=False),
    "False pass": Heading(required=False),
    "False fail": Heading(required=False),
    "Differs by": Heading(required=False),
}

_FIELDS = ("pattern", "rule", "abnormal", "suggests", "points to", "then", "next")
_LIMITS = {"Cannot see": "cannot_see", "False pass": "false_pass", "False fail": "false_fail"}
_LIMIT = re.compile(r"^(?P<text>.+?)(?: <(?P<source>https?://[^\s<>]+)>)?$")
_LIMIT_FORM = "- text, and its source in angle brackets: <https://...>"


def check_patterns(reader: Reader, header: CheckHeader) -> None:
    """Report the patterns of the front matter that do not compile."""
    for pattern in header.recognise:
        reader.check_pattern(Pattern(pattern, regex=True), "recognise:")


def read(reader: Reader, sections: Mapping[str, Blocks]) -> dict[str, Any]:
    """The values of a `CheckBody`."""
    values: dict[str, Any] = {
        "commands": [_command(reader, part) for part in reader.parts(sections["Commands"])],
        "normal": _normal(reader, sections["Normal"]),
        "findings": [_finding(reader, part) for part in reader.parts(sections["Findings"])],
    }
    for title, name in _LIMITS.items():
        if title in sections:
            texts = reader.lines_of_list(sections[title], _LIMIT_FORM)
            values[name] = [_limit(text) for text in texts if text]
    if "Differs by" in sections:
        values["differs_by"] = reader.as_written(sections["Differs by"][1:])
    return values


def write(body: CheckBody) -> Iterator[tuple[str, str | None]]:
    """The sections with their headings; an absent one has no content."""
    yield "Commands", "\n\n".join(map(_written_command, body.commands))
    yield "Normal", fenced(body.normal, "text")
    yield "Findings", "\n\n".join(map(_written_finding, body.findings))
    yield "Cannot see", _written_limits(body.cannot_see)
    yield "False pass", _written_limits(body.false_pass)
    yield "False fail", _written_limits(body.false_fail)
    yield "Differs by", body.differs_by


def _command(reader: Reader, part: Part) -> dict[str, Any]:
    fence = part.blocks[0] if part.blocks else None
    if fence is None or fence.type != "fence":
        reader.report(
            part.line,
            rules.WrongPart,
            f"there is no command under `{part.title}`",
            "write the command in a fenced block, ```sh, and what to know about it below",
        )
        return {}
    values = {"place": part.title, "run": _content(fence), "language": fence.info or "sh"}
    if len(part.blocks) > 1:
        values["note"] = reader.as_written(part.blocks[1:])
    return values


def _normal(reader: Reader, section: Blocks) -> str:
    if len(section) != 2 or section[1].type != "fence":
        reader.report(
            first_line(section[0]),
            rules.WrongPart,
            "the section `Normal` is not one fenced block",
            "put the lines of a healthy output between ```text and ```",
        )
        return ""
    return _content(section[1])


def _finding(reader: Reader, part: Part) -> dict[str, Any]:
    """Prose, then the list of what the finding is made of, then the example."""
    blocks = list(part.blocks)
    example = blocks.pop() if blocks and blocks[-1].type == "fence" else None
    items = list(blocks.pop().children) if blocks and blocks[-1].type == "bullet_list" else []
    if not blocks or any(block.type != "paragraph" for block in blocks):
        reader.report(
            part.line,
            rules.WrongPart,
            f"the finding `{part.title}` has another form",
            "write what it means, then a list of its entries, then an example in a fenced block",
        )
        return {}
    values: dict[str, Any] = {"id": part.title, "means": reader.as_written(blocks)}
    values |= _entries(reader, items)
    if example:
        values["example"] = _content(example)
    return values


def _entries(reader: Reader, items: Sequence[SyntaxTreeNode]) -> dict[str, Any]:
    """What the items say, by the name of the field of a `Finding`."""
    fields = reader.fields(items, _FIELDS)
    line = first_line(items[0]) if items else 1
    values: dict[str, Any] = {
        name: fields[name] for name in ("rule", "suggests", "then") if name in fields
    }
    for name, key in (("pattern", "pattern"), ("next", "next")):
        if name in fields:
            values[key] = next(iter(_codes(reader, line, name, fields[name])), "")
    if "points to" in fields:
        values["points_to"] = _codes(reader, line, "points to", fields["points to"])
    if "abnormal" in fields:
        values["abnormal"] = _is_yes(reader, line, fields["abnormal"])
    if "pattern" in values:
        reader.check_pattern(Pattern(values["pattern"], regex=True))
    return values


def _codes(reader: Reader, line: int, name: str, value: str) -> tuple[str, ...]:
    found = read_spans(value)
    if found is None:
        reader.report(
            line,
            rules.WrongItem,
            f"`{name}` holds something that is not in backticks",
            f"write it as: - {name}: `value`",
        )
    return found or ()


def _is_yes(reader: Reader, line: int, value: str) -> bool:
    if value not in ("yes", "no"):
        advice = "write `- abnormal: no` for a reading that is no fault, else leave it out"
        reader.report(line, rules.WrongItem, f"`abnormal` cannot be `{value}`", advice)
    return value == "yes"


def _limit(text: str) -> Limit:
    match = _LIMIT.match(text)
    return Limit(match["text"], match["source"]) if match else Limit(text)


def _content(fence: SyntaxTreeNode) -> str:
    return fence.content.removesuffix("\n")


def _written_command(command: Command) -> str:
    parts = [f"### {command.place}", fenced(command.run, command.language), command.note]
    return "\n\n".join(part for part in parts if part)


def _written_finding(finding: Finding) -> str:
    entries = {
        "pattern": finding.pattern and code_span(finding.pattern),
        "rule": finding.rule,
        "abnormal": None if finding.abnormal else "no",
        "suggests": finding.suggests,
        "points to": ", ".join(map(code_span, finding.points_to)),
        "then": finding.then,
        "next": finding.next and code_span(finding.next),
    }
    parts = [
        f"### {finding.id}",
        finding.means,
        "\n".join(f"- {name}: {value}" for name, value in entries.items() if value),
        finding.example and fenced(finding.example, "text"),
    ]
    return "\n\n".join(part for part in parts if part)


def _written_limits(limits: Sequence[Limit]) -> str:
    return "\n".join(
        f"- {limit.text} <{limit.source}>" if limit.source else f"- {limit.text}"
        for limit in limits
    )
