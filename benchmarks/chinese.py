"""What there is to translate of a record: `python -m benchmarks.chinese ID`.

Prints its entry for kb/conversation/chinese with the English texts, whose place the Chinese takes.
An entry may hold any of them. After a change of the English its new digest is printed here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from kb.check import Check
from kb.conversation.language import Language, digest
from kb.conversation.speech import first_sentence
from kb.corpus.directories import GuideDirectories, IncidentDirectories
from kb.guides import Record
from kb.incident import Incident
from kb.playbook import Playbook
from kb.soft_breaks import join_soft_breaks


def texts_of(record: Record) -> dict[str, str]:
    """What the conversation shows of a record, by its name in an entry."""
    texts = {"title": record.title, **dict(_texts(record))}
    return {name: join_soft_breaks(text) for name, text in texts.items() if text}


def _texts(record: Record) -> Iterator[tuple[str, str | None]]:
    if isinstance(record, Incident):
        yield from _of_incident(record)
    elif isinstance(record, Playbook):
        yield from _of_playbook(record)
    elif isinstance(record, Check):
        yield from _of_check(record)


def _of_incident(record: Incident) -> Iterator[tuple[str, str | None]]:
    body = record.body
    yield "cause", first_sentence(body.cause, Language.ENGLISH)
    for number, step in enumerate(body.fix, 1):
        yield f"fix-{number}", step.text
        yield f"why-{number}", step.why
    yield "verify", body.verify
    yield "prevention", first_sentence(body.prevention or "", Language.ENGLISH)
    yield "prevention-whole", body.prevention
    yield "caution", record.header.caution


def _of_playbook(record: Playbook) -> Iterator[tuple[str, str | None]]:
    body = record.body
    for number, what in enumerate(body.secure, 1):
        yield f"secure-{number}", what
    yield "wait", body.safe_to_wait
    for step in body.checks:
        yield f"check-{step.check}", step.why
    for cause in body.causes:
        yield f"cause-{cause.key}", cause.cause
        yield f"tell-{cause.key}", cause.tell
        yield f"remedy-{cause.key}", cause.remedy
    for way in body.tonight[:1]:
        yield "tonight", way.do
        yield "tonight-cost", way.cost
        yield "tonight-risk", way.risk
    for number, what in enumerate(body.escalate, 1):
        yield f"escalate-{number}", what


def _of_check(record: Check) -> Iterator[tuple[str, str | None]]:
    header, body = record.header, record.body
    yield "question", header.question
    yield "where", header.where
    for number, need in enumerate(header.needs, 1):
        yield f"needs-{number}", need
    yield "caution", header.caution
    for number, apart in enumerate(header.tells_apart, 1):
        yield f"apart-{number}", apart
    for command in body.commands:
        yield f"note-{command.place}", command.note
    for finding in body.findings:
        yield f"finding-{finding.id}", finding.means
        yield f"suggests-{finding.id}", finding.suggests
        yield f"then-{finding.id}", finding.then
    for limit in (*body.cannot_see, *body.false_pass)[:1]:
        yield "limit", limit.text


def shipped() -> dict[str, Record]:
    """All records of the package, by id."""
    records = [*IncidentDirectories().load()[0], *GuideDirectories().load()[0]]
    return {record.id: record for record in records}


def main() -> None:
    """Print the entries of the records that are named."""
    records = shipped()
    for name in sys.argv[1:]:
        texts = texts_of(records[name]).items()
        lines = (f'"{key}": {_quoted([digest(text), text])}' for key, text in texts)
        print(f"{_quoted(name)}: {{", ",\n".join(lines), "},", sep="\n")


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    main()
