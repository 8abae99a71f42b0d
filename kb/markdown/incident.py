"""The sections of an incident, read and written."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from markdown_it.tree import SyntaxTreeNode

from index.documents import Pattern
from kb.incident import Body, Distinction, EvidenceBlock, Header, Step
from kb.markdown import rules
from kb.markdown.blocks import fenced
from kb.markdown.reader import Blocks, Heading, Reader, first_line, one_line

HEADINGS: Mapping[str, Heading] = {
    "Symptom": Heading(),
    "Environment": Heading(),
    "Cause": Heading(),
    "Fix": Heading(),
    "Verify": Heading(),
    "Prevention": Heading(required=False),
    "Distinguish": Heading(required=False),
    "Evidence": Heading(),
}

_SOURCE = re.compile(r"^Source: (?P<source>.+)$", re.DOTALL)
_READ_ONLY = "read-only"
"""Stands behind the language of a command that changes nothing."""
_DISTINCTION = re.compile(r"^`(?P<other>[^`]+)`:\s+(?P<question>.+)$", re.DOTALL)


def check_patterns(reader: Reader, header: Header) -> None:
    """Report the signatures that do not compile."""
    for signature in header.signatures:
        reader.check_pattern(Pattern(signature.pattern, signature.regex), "signatures:")


def read(reader: Reader, sections: Mapping[str, Blocks]) -> dict[str, Any]:
    """The values of a `Body`."""
    values: dict[str, Any] = {
        "symptom": reader.as_written(sections["Symptom"][1:]),
        "setting": reader.as_written(sections["Environment"][1:]),
        "cause": reader.as_written(sections["Cause"][1:]),
        "fix": _steps(reader, sections["Fix"]),
        "verify": reader.as_written(sections["Verify"][1:]),
        "evidence": _evidence(reader, sections["Evidence"]),
    }
    if "Prevention" in sections:
        values["prevention"] = reader.as_written(sections["Prevention"][1:])
    if "Distinguish" in sections:
        values["distinguish"] = _distinctions(reader, sections["Distinguish"])
    return values


def write(body: Body) -> Iterator[tuple[str, str | None]]:
    """The sections with their headings; an absent one has no content."""
    yield "Symptom", body.symptom
    yield "Environment", body.setting
    yield "Cause", body.cause
    yield "Fix", "\n\n".join(_written(number, step) for number, step in enumerate(body.fix, 1))
    yield "Verify", body.verify
    yield "Prevention", body.prevention
    yield (
        "Distinguish",
        "\n".join(
            textwrap.indent(f"`{item.other}`: {item.question}", "  ").replace("  ", "- ", 1)
            for item in body.distinguish
        ),
    )
    yield "Evidence", "\n\n".join(map(_written_block, body.evidence))


def _written_block(block: EvidenceBlock) -> str:
    source = f"Source: {block.source}\n\n" if block.source else ""
    return source + fenced(block.text, "text")


def _written(number: int, step: Step) -> str:
    mark = f" {_READ_ONLY}" if step.read_only else ""
    command = None if step.command is None else fenced(step.command, step.language + mark)
    parts = [part for part in (step.text, command, step.why) if part]
    marker = f"{number}. "
    return marker + textwrap.indent("\n\n".join(parts), " " * len(marker)).lstrip(" ")


def _steps(reader: Reader, blocks: Blocks) -> list[Step]:
    if len(blocks) != 2 or blocks[1].type != "ordered_list":
        reader.report(
            first_line(blocks[0]),
            rules.FixIsNoList,
            "the section `Fix` is not a single numbered list",
            "number the steps `1.`, `2.`, ... and indent everything else below its step",
        )
        return []
    return [step for item in blocks[1].children if (step := _step(reader, item))]


def _step(reader: Reader, item: SyntaxTreeNode) -> Step | None:
    parts = item.children
    if not parts or parts[0].type != "paragraph":
        reader.report(
            first_line(item),
            rules.WrongStep,
            "a step of the fix does not start with a sentence",
            "write an imperative sentence after the number",
        )
        return None
    fence = parts[1] if len(parts) > 1 and parts[1].type == "fence" else None
    rest = parts[2:] if fence else parts[1:]
    if any(part.type == "fence" for part in rest):
        reader.report(
            first_line(item),
            rules.WrongStep,
            "a step of the fix has more than one command",
            "split it into one step per command",
        )
    why = reader.as_written(rest) if rest else None
    language, _space, mark = (fence.info if fence else "").partition(" ")
    if mark not in ("", _READ_ONLY):
        reader.report(
            first_line(item),
            rules.WrongStep,
            f"the command of a step is marked as {mark!r}",
            f"write `{_READ_ONLY}` behind its language if it changes nothing, or else nothing",
        )
    return Step(
        text=parts[0].children[0].content,
        command=fence.content.removesuffix("\n") if fence else None,
        language=language,
        why=textwrap.dedent(why) if why else None,
        read_only=mark == _READ_ONLY,
    )


def _distinctions(reader: Reader, blocks: Blocks) -> list[Distinction]:
    if len(blocks) != 2 or blocks[1].type != "bullet_list":
        reader.report(
            first_line(blocks[0]),
            rules.WrongDistinction,
            "the section `Distinguish` is not a single list",
            "write each item as: - `other-id`: question?",
        )
        return []
    found = []
    for item in blocks[1].children:
        content = item.children[0].children[0].content if item.children else ""
        match = _DISTINCTION.match(content)
        if match is None:
            reader.report(
                first_line(item),
                rules.WrongDistinction,
                "this item names no other incident",
                "write it as: - `other-id`: question?",
            )
        else:
            found.append(Distinction(match["other"], match["question"]))
    return found


def _evidence(reader: Reader, blocks: Blocks) -> list[EvidenceBlock]:
    found = []
    source: str | None = None
    for node in blocks[1:]:
        named = _SOURCE.match(node.children[0].content) if node.type == "paragraph" else None
        if node.type == "fence":
            found.append(EvidenceBlock(node.content.removesuffix("\n"), source))
            source = None
        elif named and source is None:
            source = one_line(named["source"])
        else:
            reader.report(
                first_line(node),
                rules.EvidenceIsNoBlock,
                "the section `Evidence` contains text outside of fenced blocks",
                "put the log lines between ```text and ```",
            )
    return found
