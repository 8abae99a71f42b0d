"""YAML front matter to the header of its kind, with the line of every mistake.

Incident files are untrusted: only plain data is read, and anchors, aliases and tags are refused
(an alias can grow to gigabytes, a tag can name a Python object).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import msgspec
import yaml

from kb.check import CheckHeader
from kb.incident import Header, Kind
from kb.markdown import rules
from kb.markdown.rules import ShapeRule
from kb.playbook import PlaybookHeader

AnyHeader = Header | CheckHeader | PlaybookHeader

Path = tuple[str | int, ...]

_UNSAFE = (
    (yaml.AliasToken, "YAML aliases (*name) are not allowed in a record"),
    (yaml.AnchorToken, "YAML anchors (&name) are not allowed in a record"),
    (yaml.TagToken, "YAML tags (!name) are not allowed in a record"),
)
_OPENING = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_CLOSING = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_RELEASE = re.compile(r"(?P<name>[A-Za-z][\w -]*?)(?<! after) v?(?P<version>\d+(?:\.\d+)+)")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""What moves a cursor or ends a line unseen."""
_MAX_DEPTH = 20
"""Levels of nested collections. A record needs 4, and YAML readers are recursive."""


class FrontMatterError(Exception):
    """The front matter is wrong; `line` counts from 1 within it."""

    def __init__(self, rule: type[ShapeRule], line: int, message: str, advice: str) -> None:
        self.rule, self.line, self.advice = rule, line, advice
        super().__init__(message)


def parse_header(text: str) -> AnyHeader:
    """Read the YAML between the `---` lines.

    Raises:
        FrontMatterError: with the rule, line and help.
    """
    try:
        _refuse_unsafe(text)
        root, data = _load(text)
    except yaml.YAMLError as error:
        raise _syntax_error(error) from error
    except (ValueError, RecursionError) as error:
        raise FrontMatterError(
            rules.NotYaml, 1, f"the front matter is not valid YAML: {error}", "quote the value"
        ) from error
    if not isinstance(root, yaml.MappingNode):
        raise FrontMatterError(
            rules.NotYaml, 1, "the front matter is not a mapping", "write `key: value` lines"
        )
    lines = dict(_lines_of(root))
    _refuse_duplicates(root)
    _refuse_controls(root)
    _state_fix_as_data(data)
    try:
        return msgspec.convert(data, _header_type(data), builtin_types=(date,))
    except msgspec.ValidationError as error:
        raise _field_error(str(error), lines) from error


def _state_fix_as_data(data: dict[str, Any]) -> None:
    """Older records say in words what fixes them."""
    words, systems = data.get("fixed_in"), data.get("systems")
    if not isinstance(words, str):
        return
    if release := _RELEASE.fullmatch(words):
        data["fixed_in"] = [
            {"system": release["name"].lower().replace(" ", "-"), "version": release["version"]}
        ]
    elif isinstance(systems, list):
        data["fixed_in"] = [{"system": one, "note": words} for one in systems[:1]]


def _header_type(data: dict[str, Any]) -> type[AnyHeader]:
    """An unknown kind is reported as one of an incident."""
    kind = data.get("kind")
    return _GUIDES.get(kind, Header) if isinstance(kind, str) else Header


_GUIDES: Mapping[str, type[AnyHeader]] = {
    Kind.CHECK: CheckHeader,
    Kind.PLAYBOOK: PlaybookHeader,
}


def _load(text: str) -> tuple[yaml.Node | None, Any]:
    """The nodes, which know their lines, and the plain data that they stand for."""
    loader = yaml.CSafeLoader(text)
    try:
        root = loader.get_single_node()
        return root, None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()


def _refuse_unsafe(text: str) -> None:
    depth = 0
    for token in yaml.scan(text, Loader=yaml.CSafeLoader):
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if depth > _MAX_DEPTH:
            raise FrontMatterError(
                rules.UnsafeYaml,
                token.start_mark.line + 1,
                "the front matter is nested too deeply",
                "close the brackets, or quote a value that begins with a bracket",
            )
        for kind, message in _UNSAFE:
            if isinstance(token, kind):
                raise FrontMatterError(
                    rules.UnsafeYaml,
                    token.start_mark.line + 1,
                    message,
                    "write the value out, or quote it if it is meant as text",
                )


def _refuse_duplicates(node: yaml.Node) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise FrontMatterError(
                    rules.KeyGivenTwice,
                    key.start_mark.line + 1,
                    f"duplicate key `{key.value}`",
                    "remove one of the two",
                )
            seen.add(key.value)
            _refuse_duplicates(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_duplicates(item)


def _refuse_controls(node: yaml.Node) -> None:
    """In quotes, YAML makes a control character of plain ones: `"\\e"`."""
    if isinstance(node, yaml.ScalarNode):
        if match := CONTROL.search(node.value):
            raise FrontMatterError(
                rules.ControlCharacter,
                node.start_mark.line + 1,
                f"the value holds the control character U+{ord(match[0]):04X}, as an escape",
                "remove it; keep only the readable part of terminal output",
            )
    else:
        for part in node.value:
            for one in part if isinstance(part, tuple) else [part]:
                _refuse_controls(one)


def _lines_of(node: yaml.Node, path: Path = ()) -> Iterator[tuple[Path, int]]:
    """Yield the path of every value and the line (from 1) on which it stands."""
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, key.value)
            yield from _lines_of(value, here)
            yield here, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _lines_of(item, (*path, number))


def _syntax_error(error: yaml.YAMLError) -> FrontMatterError:
    mark = getattr(error, "problem_mark", None)
    return FrontMatterError(
        rules.NotYaml,
        mark.line + 1 if mark else 1,
        f"the front matter is not valid YAML: {getattr(error, 'problem', None) or error}",
        "quote values that contain `: ` or `#`, or start with a special character",
    )


_FIELD = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$")
_PATH_PART = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_HELP: Mapping[str, str] = {
    "unknown field": "docs/record-format.md lists the valid keys",
    "missing required": "add the key; docs/record-format.md shows an example",
    "Invalid enum": "use one of the values listed in docs/record-format.md",
    "matching regex": "use the form shown in docs/record-format.md",
}


def _field_error(message: str, lines: Mapping[Path, int]) -> FrontMatterError:
    match = _FIELD.match(message)
    what, where = (match["what"], match["path"] or "") if match else (message, "")
    path: Path = tuple(
        name or (int(number) if number.isdigit() else number)
        for name, number in _PATH_PART.findall(where)
    )
    named = re.search(r"unknown field `(\w+)`", what)
    best = (*path, named[1]) if named else path
    while best and best not in lines:
        best = best[:-1]
    advice = next((text for start, text in _HELP.items() if start in what), "correct the value")
    field = f"`{where.lstrip('.')}`: " if where else ""
    return FrontMatterError(rules.WrongField, lines.get(best, 1), f"{field}{what}", advice)


def dump_header(header: AnyHeader) -> str:
    """Write the front matter in its canonical form; empty and absent keys are left out."""
    data: dict[str, Any] = _without_absent(msgspec.to_builtins(header, builtin_types=(date,)))
    for key in _INLINE_KEYS & data.keys():
        data[key] = _Inline(data[key])
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return text


_INLINE_KEYS = frozenset({"systems", "symptoms", "lost_by"})
"""Lists of single words."""


def _without_absent(value: Any) -> Any:
    """Without the keys whose value is what an absent key means."""
    if isinstance(value, dict):
        kept = {key: _without_absent(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one not in (None, []) and one is not False}
    if isinstance(value, list | tuple):
        return [_without_absent(one) for one in value]
    return value


class _Inline(list[str]):
    """A list written on one line."""


class _Dumper(yaml.SafeDumper):
    """Plain data; a value that appears twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


_Dumper.add_representer(
    _Inline,
    lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True),
)
