"""What `kb lint` found: for people, for programs, and as notes beside a change on GitHub."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kb.log.clean import decode_path, strip_controls
from kb.problem import Problem
from kb.service.wire import indented

_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY_ESCAPES = {**_ESCAPES, ":": "%3A", ",": "%2C"}


def as_text(problems: Sequence[Problem], _files: int) -> str:
    """In the manner of a compiler."""
    found = (
        strip_controls(line) for problem in problems for line in [*str(problem).split("\n"), ""]
    )
    return "".join(f"{line}\n" for line in found)


def as_github(problems: Sequence[Problem], _files: int) -> str:
    """As commands of GitHub Actions, which shows each beside its line."""
    return "".join(f"{_command(problem)}\n" for problem in problems)


def as_json(problems: Sequence[Problem], files: int) -> str:
    """One object; `schema` grows when it changes."""
    rows = [
        {name: decode_path(str(getattr(problem, name))) for name in Problem.__struct_fields__}
        | {"line": problem.line}
        for problem in problems
    ]
    found = {"schema": 1, "files": files, "problems": rows}
    return indented(found) + "\n"


FORMATS: Mapping[str, Callable[[Sequence[Problem], int], str]] = {
    "text": as_text,
    "github": as_github,
    "json": as_json,
}
"""The formats by their names; each takes the problems and the number of files."""


def _command(problem: Problem) -> str:
    properties = {"file": problem.path, "line": str(problem.line), "title": problem.code}
    named = ",".join(f"{key}={_escaped(value, True)}" for key, value in properties.items())
    return f"::{problem.severity} {named}::{_escaped(f'{problem.message} ({problem.help})')}"


def _escaped(text: str, is_property: bool = False) -> str:
    escapes = _PROPERTY_ESCAPES if is_property else _ESCAPES
    return "".join(escapes.get(letter, letter) for letter in strip_controls(text))
