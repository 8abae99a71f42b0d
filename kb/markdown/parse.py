"""Markdown to `Incident`. Collects every problem of a file before it gives up."""

from __future__ import annotations

import errno
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.front_matter import front_matter_plugin

from index.documents import Pattern
from index.errors import PatternError
from index.signatures import check
from kb.errors import IncidentError
from kb.files import read_regular
from kb.incident import Body, Distinction, Header, Incident, Step
from kb.markdown import rules
from kb.markdown.frontmatter import FrontMatterError, parse_header
from kb.markdown.rules import ShapeRule
from kb.problem import Problem

MAX_BYTES = 200_000
"""A record is a page or two. A larger file is something else."""

HEADINGS: Mapping[str, bool] = {
    "Symptom": True,
    "Environment": True,
    "Cause": True,
    "Fix": True,
    "Verify": True,
    "Prevention": False,
    "Distinguish": False,
    "Evidence": True,
}
"""The headings in their order, and whether each is required."""

_MARKDOWN = MarkdownIt("commonmark").use(front_matter_plugin).disable("inline")
"""Finds the blocks; what stands within a line is kept as it is written."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_DISTINCTION = re.compile(r"^`(?P<other>[^`]+)`:\s+(?P<question>.+)$", re.DOTALL)


def read(path: Path, name: str | None = None) -> Incident:
    """Read one file; `name` is how it is called in messages.

    Raises:
        IncidentError: the file is not a valid record, or cannot be read.
    """
    shown = name or str(path)
    return parse_source(read_source(path, shown), shown, path.stem)


def read_source(path: Path, shown: str) -> bytes:
    """The bytes of a file of the size of a record.

    Raises:
        IncidentError: it is larger, or cannot be read.
    """
    try:
        return read_regular(path, MAX_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            advice = "keep only the lines of evidence that matter"
            large = f"the file is too large: {error.strerror}"
            raise _failure(shown, 1, rules.FileTooLarge, large, advice) from error
        reason = f"the file cannot be read: {error.strerror or error}"
        advice = "make it readable, or remove it"
        raise _failure(shown, 1, rules.FileUnreadable, reason, advice) from error


def parse_source(data: bytes, shown: str, expected_id: str) -> Incident:
    """Read a record from the bytes of its file, whose name is `expected_id`.

    Raises:
        IncidentError: it is not valid.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _failure(
            shown, line, rules.NotUtf8, "the file is not valid UTF-8", "save it as UTF-8"
        ) from error
    return parse(text, shown, expected_id)


def _failure(
    path: str, line: int, rule: type[ShapeRule], message: str, advice: str
) -> IncidentError:
    return IncidentError([Problem(path, line, rule.code, message, advice)])


def parse(text: str, path: str = "<text>", expected_id: str | None = None) -> Incident:
    """Read a record from its Markdown; `expected_id` is the file name without its ending.

    Raises:
        IncidentError: with all problems found, each with line, rule code and help.
    """
    reader = _Reader(text.replace("\r\n", "\n"), path)
    reader.check_characters()
    header = reader.header()
    if header:
        reader.check_patterns(header)
    body = reader.body()
    if header and expected_id is not None and header.id != expected_id:
        reader.report(
            reader.line_of("id:"),
            rules.IdIsNotFileName,
            f"the id `{header.id}` differs from the file name `{expected_id}`",
            f"rename the file to {header.id}.md, or write `id: {expected_id}`",
        )
    if reader.problems or header is None or body is None:
        raise IncidentError(sorted(reader.problems))
    return Incident(header, body)


class _Reader:
    """One pass over one file."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.lines = text.split("\n")
        self.root = SyntaxTreeNode(_MARKDOWN.parse(text))

    def report(self, line: int, rule: type[ShapeRule], message: str, advice: str) -> None:
        source = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        self.problems.append(Problem(self.path, line, rule.code, message, advice, source[:100]))

    def line_of(self, start: str, text: str = "") -> int:
        """Number of the first line with the text from the line on that starts so."""
        numbered = list(enumerate(self.lines, 1))
        first = next((n for n, line in numbered if line.startswith(start)), 1)
        return next((n for n, line in numbered[first - 1 :] if text in line), first)

    def check_characters(self) -> None:
        """What moves a cursor or ends a line unseen has no place in a page of text."""
        for number, line in enumerate(self.lines, 1):
            if match := _CONTROL.search(line):
                self.report(
                    number,
                    rules.ControlCharacter,
                    f"the text contains the control character U+{ord(match[0]):04X}",
                    "remove it; keep only the readable part of terminal output",
                )

    def header(self) -> Header | None:
        first = self.root.children[0] if self.root.children else None
        if first is None or first.type != "front_matter":
            self.report(
                1,
                rules.NoFrontMatter,
                "the record does not start with front matter",
                "start the file with a `---` line, the keys, and another `---` line",
            )
            return None
        try:
            return parse_header(first.content)
        except FrontMatterError as error:
            self.report(error.line + 1, error.rule, str(error), error.advice)
            return None

    def check_patterns(self, header: Header) -> None:
        """Signatures run over every log in linear time: look-around and back-references do not
        exist, and what matches the empty text would match everywhere."""
        for signature in header.signatures:
            try:
                check(Pattern(signature.pattern, signature.regex))
            except PatternError as error:
                self.report(
                    self.line_of("signatures:", as_written(signature.pattern, self.lines)),
                    rules.PatternDoesNotCompile,
                    str(error),
                    "remove `regex: true` to match literal text, or correct the expression",
                )

    def body(self) -> Body | None:
        sections = self._sections()
        if self.problems:
            return None
        values: dict[str, Any] = {
            "symptom": self._prose(sections["Symptom"]),
            "setting": self._prose(sections["Environment"]),
            "cause": self._prose(sections["Cause"]),
            "fix": self._steps(sections["Fix"]),
            "verify": self._prose(sections["Verify"]),
            "evidence": self._evidence(sections["Evidence"]),
        }
        if "Prevention" in sections:
            values["prevention"] = self._prose(sections["Prevention"])
        if "Distinguish" in sections:
            values["distinguish"] = self._distinctions(sections["Distinguish"])
        if self.problems:
            return None
        try:
            return msgspec.convert(values, Body)
        except msgspec.ValidationError as error:
            self.report(1, rules.WrongField, str(error), "see docs/record-format.md")
            return None

    def _sections(self) -> dict[str, Sequence[SyntaxTreeNode]]:
        """Blocks by heading; the heading's own node comes first."""
        found: dict[str, list[SyntaxTreeNode]] = {}
        current: list[SyntaxTreeNode] | None = None
        for node in self.root.children:
            if node.type == "front_matter":
                continue
            if node.type == "heading":
                current = self._heading(node, found)
            elif current is None:
                self.report(
                    _first(node),
                    rules.WrongHeading,
                    "there is text before the first heading",
                    "move it under `## Symptom`",
                )
            else:
                current.append(node)
        self._check_headings(found)
        return dict(found)

    def _heading(
        self, node: SyntaxTreeNode, found: dict[str, list[SyntaxTreeNode]]
    ) -> list[SyntaxTreeNode]:
        title = node.children[0].content
        if node.tag != "h2" or title not in HEADINGS:
            self.report(
                _first(node),
                rules.WrongHeading,
                f"unknown heading `{title}`",
                f"valid headings (each with `##`): {', '.join(HEADINGS)}",
            )
            return [node]
        if title in found:
            self.report(
                _first(node),
                rules.WrongHeading,
                f"duplicate heading `{title}`",
                "merge the two sections",
            )
        elif [*HEADINGS].index(title) < max(([*HEADINGS].index(t) for t in found), default=0):
            self.report(
                _first(node),
                rules.WrongHeading,
                f"the heading `{title}` is out of order",
                f"the order is {', '.join(HEADINGS)}",
            )
        return found.setdefault(title, [node])

    def _check_headings(self, found: Mapping[str, Sequence[SyntaxTreeNode]]) -> None:
        for title, required in HEADINGS.items():
            if title in found and len(found[title]) == 1:
                self.report(
                    _first(found[title][0]),
                    rules.EmptySection,
                    f"the section `{title}` is empty",
                    "fill it, or remove the heading if it is optional",
                )
            elif required and title not in found:
                self.report(
                    len(self.lines),
                    rules.WrongHeading,
                    f"the heading `{title}` is missing",
                    f"add `## {title}`",
                )

    def _slice(self, first: int, last: int) -> str:
        """Lines `first` to `last` (from 0, end excluded) without surrounding blank lines."""
        return "\n".join(line.rstrip() for line in self.lines[first:last]).strip("\n")

    def _prose(self, blocks: Sequence[SyntaxTreeNode]) -> str:
        return self._slice(_map(blocks[1])[0], _map(blocks[-1])[1])

    def _steps(self, blocks: Sequence[SyntaxTreeNode]) -> list[Step]:
        if len(blocks) != 2 or blocks[1].type != "ordered_list":
            self.report(
                _first(blocks[0]),
                rules.FixIsNoList,
                "the section `Fix` is not a single numbered list",
                "number the steps `1.`, `2.`, ... and indent everything else below its step",
            )
            return []
        return [step for item in blocks[1].children if (step := self._step(item))]

    def _step(self, item: SyntaxTreeNode) -> Step | None:
        parts = item.children
        if not parts or parts[0].type != "paragraph":
            self.report(
                _first(item),
                rules.WrongStep,
                "a step of the fix does not start with a sentence",
                "write an imperative sentence after the number",
            )
            return None
        fence = parts[1] if len(parts) > 1 and parts[1].type == "fence" else None
        rest = parts[2:] if fence else parts[1:]
        if any(part.type == "fence" for part in rest):
            self.report(
                _first(item),
                rules.WrongStep,
                "a step of the fix has more than one command",
                "split it into one step per command",
            )
        why = self._slice(_map(rest[0])[0], _map(rest[-1])[1]) if rest else None
        return Step(
            text=parts[0].children[0].content,
            command=fence.content.removesuffix("\n") if fence else None,
            language=fence.info if fence else "",
            why=textwrap.dedent(why) if why else None,
        )

    def _distinctions(self, blocks: Sequence[SyntaxTreeNode]) -> list[Distinction]:
        if len(blocks) != 2 or blocks[1].type != "bullet_list":
            self.report(
                _first(blocks[0]),
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
                self.report(
                    _first(item),
                    rules.WrongDistinction,
                    "this item names no other incident",
                    "write it as: - `other-id`: question?",
                )
            else:
                found.append(Distinction(match["other"], match["question"]))
        return found

    def _evidence(self, blocks: Sequence[SyntaxTreeNode]) -> list[str]:
        for node in blocks[1:]:
            if node.type != "fence":
                self.report(
                    _first(node),
                    rules.EvidenceIsNoBlock,
                    "the section `Evidence` contains text outside of fenced blocks",
                    "put the log lines between ```text and ```",
                )
        return [node.content.removesuffix("\n") for node in blocks[1:] if node.type == "fence"]


def as_written(pattern: str, lines: Sequence[str]) -> str:
    """The pattern as it stands in the YAML, where quoting may have changed it."""
    forms = (pattern, pattern.replace("'", "''"), pattern.replace("\\", "\\\\"))
    return next((form for form in forms if any(form in line for line in lines)), "signatures:")


def _map(node: SyntaxTreeNode) -> tuple[int, int]:
    assert node.map is not None, node.type  # noqa: S101  every block has one
    return node.map


def _first(node: SyntaxTreeNode) -> int:
    return _map(node)[0] + 1
