"""One pass over one file: its problems, its front matter, and the blocks of its sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.front_matter import front_matter_plugin

from index.documents import Pattern
from index.errors import PatternError
from index.signatures import check
from kb.markdown import rules
from kb.markdown.frontmatter import CONTROL, AnyHeader, FrontMatterError, parse_header
from kb.markdown.rules import ShapeRule
from kb.problem import Problem

_MARKDOWN = MarkdownIt("commonmark").use(front_matter_plugin).disable("inline")
"""Finds the blocks; what stands within a line is kept as it is written."""

Blocks = Sequence[SyntaxTreeNode]


class Heading(msgspec.Struct, frozen=True):
    """A heading of a kind of record."""

    required: bool = True
    parts: bool = False
    """Whether the section is made of parts, each under a `###` heading."""


class Part(msgspec.Struct, frozen=True):
    """What stands under one `###` heading."""

    title: str
    line: int
    """Of the heading, from 1."""
    blocks: Blocks


class Reader:
    """Finds sections and problems. What stands in a section is read by the module of its kind."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.lines = text.split("\n")
        self.root = SyntaxTreeNode(_MARKDOWN.parse(text))

    def report(self, line: int, rule: type[ShapeRule], message: str, advice: str) -> None:
        """Add a problem."""
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
            if match := CONTROL.search(line):
                self.report(
                    number,
                    rules.ControlCharacter,
                    f"the text contains the control character U+{ord(match[0]):04X}",
                    "remove it; keep only the readable part of terminal output",
                )

    def check_pattern(self, pattern: Pattern, after: str = "---") -> None:
        """Patterns run over every log in linear time: look-around and back-references do not
        exist, and what matches the empty text would match everywhere. The pattern stands in a line
        behind the one that starts with `after`."""
        try:
            check(pattern)
        except PatternError as error:
            self.report(
                self.line_of(after, as_written(pattern.text, self.lines)),
                rules.PatternDoesNotCompile,
                str(error),
                "remove `regex: true` to match literal text, or correct the expression",
            )

    def header(self) -> AnyHeader | None:
        """The front matter, of the kind that it names."""
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

    def sections(self, headings: Mapping[str, Heading]) -> dict[str, Blocks]:
        """Blocks by heading; the heading's own node comes first."""
        found: dict[str, list[SyntaxTreeNode]] = {}
        current: list[SyntaxTreeNode] | None = None
        divided = False
        for node in self.root.children:
            if node.type == "front_matter":
                continue
            if node.type == "heading" and not (divided and node.tag == "h3"):
                current = self._heading(node, found, headings)
                title = current[0].children[0].content
                divided = title in headings and headings[title].parts
            elif current is None:
                self.report(
                    first_line(node),
                    rules.WrongHeading,
                    "there is text before the first heading",
                    f"move it under `## {next(iter(headings))}`",
                )
            else:
                current.append(node)
        self._check_headings(found, headings)
        return dict(found)

    def _heading(
        self,
        node: SyntaxTreeNode,
        found: dict[str, list[SyntaxTreeNode]],
        headings: Mapping[str, Heading],
    ) -> list[SyntaxTreeNode]:
        title = node.children[0].content
        if node.tag != "h2" or title not in headings:
            self.report(
                first_line(node),
                rules.WrongHeading,
                f"unknown heading `{title}`",
                f"valid headings (each with `##`): {', '.join(headings)}",
            )
            return [node]
        if title in found:
            self.report(
                first_line(node),
                rules.WrongHeading,
                f"duplicate heading `{title}`",
                "merge the two sections",
            )
        elif [*headings].index(title) < max(([*headings].index(t) for t in found), default=0):
            self.report(
                first_line(node),
                rules.WrongHeading,
                f"the heading `{title}` is out of order",
                f"the order is {', '.join(headings)}",
            )
        return found.setdefault(title, [node])

    def _check_headings(self, found: Mapping[str, Blocks], headings: Mapping[str, Heading]) -> None:
        for title, heading in headings.items():
            if title in found and len(found[title]) == 1:
                self.report(
                    first_line(found[title][0]),
                    rules.EmptySection,
                    f"the section `{title}` is empty",
                    "fill it, or remove the heading if it is optional",
                )
            elif heading.required and title not in found:
                self.report(
                    len(self.lines),
                    rules.WrongHeading,
                    f"the heading `{title}` is missing",
                    f"add `## {title}`",
                )

    def as_written(self, blocks: Blocks) -> str:
        """The lines of the blocks, without surrounding blank lines."""
        first, last = _map(blocks[0])[0], _map(blocks[-1])[1]
        return "\n".join(line.rstrip() for line in self.lines[first:last]).strip("\n")

    def parts(self, section: Blocks) -> Iterator[Part]:
        """The parts of a section; `section` begins with the node of its heading."""
        starts = [number for number, node in enumerate(section) if node.tag == "h3"]
        if starts[:1] != [1]:
            self.report(
                first_line(section[min(1, len(section) - 1)]),
                rules.WrongPart,
                f"the section `{section[0].children[0].content}` does not start with a `###` line",
                "put each of its entries under a `###` heading of its own",
            )
        titles: set[str] = set()
        for start, end in pairwise([*starts, len(section)]):
            title, line = section[start].children[0].content, first_line(section[start])
            if title in titles:
                advice = "give each its own name, or merge the two"
                self.report(line, rules.WrongPart, f"duplicate heading `{title}`", advice)
            titles.add(title)
            yield Part(title, line, section[start + 1 : end])

    def items(self, block: SyntaxTreeNode | None, line: int, form: str) -> list[SyntaxTreeNode]:
        """The items of a list; `form` shows how one is written, `line` is where it belongs."""
        if block is None or block.type != "bullet_list":
            self.report(
                line if block is None else first_line(block),
                rules.WrongItem,
                "there is no list here",
                f"write each item as: {form}",
            )
            return []
        return list(block.children)

    def text_of(self, item: SyntaxTreeNode) -> str:
        """The first paragraph of a list item, on one line."""
        first = item.children[0] if item.children else None
        if first is None or first.type != "paragraph":
            self.report(
                first_line(item),
                rules.WrongItem,
                "this item does not start with a sentence",
                "write text after the dash",
            )
            return ""
        return one_line(first.children[0].content)

    def lines_of_list(self, section: Blocks, form: str) -> list[str]:
        """A section that is one list of plain items."""
        if len(section) > 2:
            self.report(
                first_line(section[2]),
                rules.WrongItem,
                "there is something behind the list",
                f"write each item as: {form}",
            )
        return [self.text_of(item) for item in self.items(section[1], first_line(section[0]), form)]

    def fields(self, items: Sequence[SyntaxTreeNode], names: Sequence[str]) -> dict[str, str]:
        """Items of the form `name: value`."""
        found: dict[str, str] = {}
        for item in items:
            name, colon, value = self.text_of(item).partition(":")
            if not colon or name not in names or name in found or not value.strip():
                self.report(
                    first_line(item),
                    rules.WrongItem,
                    f"`{name}` is given twice" if name in found else "this item is no known entry",
                    f"write `- name: value`; the names are {', '.join(names)}",
                )
            else:
                found[name] = value.strip()
        return found


def as_written(pattern: str, lines: Sequence[str]) -> str:
    """The pattern as it stands in the YAML, where quoting may have changed it."""
    forms = (pattern, pattern.replace("'", "''"), pattern.replace("\\", "\\\\"))
    return next((form for form in forms if any(form in line for line in lines)), "signatures:")


def one_line(text: str) -> str:
    """A paragraph without its line breaks."""
    return " ".join(line.strip() for line in text.split("\n"))


def first_line(node: SyntaxTreeNode) -> int:
    """Number of the first line of a block, from 1."""
    return _map(node)[0] + 1


def _map(node: SyntaxTreeNode) -> tuple[int, int]:
    assert node.map is not None, node.type  # noqa: S101  every block has one
    return node.map
