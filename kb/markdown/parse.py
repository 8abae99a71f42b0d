"""Markdown to a record of the kind that its front matter names. Collects every problem of a file
before it gives up."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kb.check import Check, CheckBody, CheckHeader
from kb.errors import IncidentError
from kb.files import read_regular
from kb.guides import GUIDE_KINDS, Record, is_guide
from kb.incident import Body, Header, Incident
from kb.markdown import check as check_form
from kb.markdown import incident as incident_form
from kb.markdown import playbook as playbook_form
from kb.markdown import rules
from kb.markdown.frontmatter import AnyHeader
from kb.markdown.reader import Blocks, Heading, Reader
from kb.markdown.rules import ShapeRule
from kb.playbook import Playbook, PlaybookBody, PlaybookHeader
from kb.problem import Problem

MAX_BYTES = 200_000
"""A record is a page or two. A larger file is something else."""


def read(path: Path, name: str | None = None) -> Record:
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


def parse_source(data: bytes, shown: str, expected_id: str) -> Record:
    """Read a record from the bytes of its file, whose name is `expected_id`.

    Raises:
        IncidentError: it is not valid.
    """
    try:
        text = data.decode("utf-8-sig")  # editors of Windows begin a file with a mark
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


def parse(text: str, path: str = "<text>", expected_id: str | None = None) -> Record:
    """Read a record from its Markdown; `expected_id` is the file name without its ending.

    Raises:
        IncidentError: with all problems found, each with line, rule code and help.
    """
    reader = Reader(text.replace("\r\n", "\n"), path)
    reader.check_characters()
    header = reader.header()
    form = _FORMS[type(header)] if header else _INCIDENT
    if header:
        form.check_patterns(reader, header)
        _check_kind(reader, header)
        _check_id(reader, header, expected_id)
    body = _body(reader, form)
    if reader.problems or header is None or body is None:
        raise IncidentError(sorted(reader.problems))
    return form.record(header, body)


class _Form(msgspec.Struct, frozen=True):
    """How one kind of record is written."""

    record: Callable[[Any, Any], Record]
    body: type[Body | CheckBody | PlaybookBody]
    headings: Mapping[str, Heading]
    check_patterns: Callable[[Reader, Any], None]
    read: Callable[[Reader, Mapping[str, Blocks]], dict[str, Any]]
    page: str
    """The page of docs that describes it."""


_INCIDENT = _Form(
    Incident,
    Body,
    incident_form.HEADINGS,
    incident_form.check_patterns,
    incident_form.read,
    "record-format.md",
)
_FORMS: Mapping[type[AnyHeader], _Form] = {
    Header: _INCIDENT,
    CheckHeader: _Form(
        Check,
        CheckBody,
        check_form.HEADINGS,
        check_form.check_patterns,
        check_form.read,
        "check-format.md",
    ),
    PlaybookHeader: _Form(
        Playbook,
        PlaybookBody,
        playbook_form.HEADINGS,
        playbook_form.check_patterns,
        playbook_form.read,
        "playbook-format.md",
    ),
}


def _body(reader: Reader, form: _Form) -> Body | CheckBody | PlaybookBody | None:
    sections = reader.sections(form.headings)
    if reader.problems:
        return None
    values = form.read(reader, sections)
    if reader.problems:
        return None
    try:
        return msgspec.convert(values, form.body)
    except msgspec.ValidationError as error:
        reader.report(1, rules.WrongField, str(error), f"see docs/{form.page}")
        return None


def _check_kind(reader: Reader, header: AnyHeader) -> None:
    """The tiers are filled by what `is_guide` sees; both must see the same."""
    if (header.kind in GUIDE_KINDS) is not is_guide("\n".join(reader.lines).encode()):
        reader.report(
            reader.line_of("kind:"),
            rules.KindNotPlain,
            "the kind is not written plainly",
            f"write a line of its own in the front matter: kind: {header.kind}",
        )


def _check_id(reader: Reader, header: AnyHeader, expected_id: str | None) -> None:
    if expected_id is not None and header.id != expected_id:
        reader.report(
            reader.line_of("id:"),
            rules.IdIsNotFileName,
            f"the id `{header.id}` differs from the file name `{expected_id}`",
            f"rename the file to {header.id}.md, or write `id: {expected_id}`",
        )
