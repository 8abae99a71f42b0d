"""The sections of a playbook, read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markdown_it.tree import SyntaxTreeNode

from index.documents import Pattern
from kb.markdown import rules
from kb.markdown.blocks import code_span, read_spans
from kb.markdown.reader import Blocks, Heading, Part, Reader, first_line
from kb.playbook import Cause, CheckStep, Mitigation, PlaybookBody, PlaybookHeader, Question

HEADINGS: Mapping[str, Heading] = {
    "Secure": Heading(),
    "Safe to wait": Heading(),
    "Ask": Heading(required=False, parts=True),
    "Checks": Heading(parts=True),
    "Causes": Heading(parts=True),
    "Tonight": Heading(required=False),
    "Not this": Heading(required=False),
    "Escalate": Heading(required=False),
}

_LED = re.compile(r"^(?P<text>.+?)(?:: (?P<to>`[^`]+`(?:, `[^`]+`)*))?$")
"""A sentence, and the codes to which it leads."""
_CAUSE_FIELDS = ("share", "basis", "tell", "remedy", "incidents")
_ANSWER_FORM = "- answer: `cause`, `other-cause`"
_OUTCOME_FORM = "- what is seen: `cause:KEY`, `check:ID`, `playbook:ID` or `incident:ID`"


def check_patterns(reader: Reader, header: PlaybookHeader) -> None:
    """Report the patterns of the front matter that do not compile."""
    for line in header.lines:
        reader.check_pattern(Pattern(line.pattern, line.regex), "lines:")


def read(reader: Reader, sections: Mapping[str, Blocks]) -> dict[str, Any]:
    """The values of a `PlaybookBody`."""
    values: dict[str, Any] = {
        "secure": reader.lines_of_list(sections["Secure"], "- text"),
        "safe_to_wait": reader.as_written(sections["Safe to wait"][1:]),
        "checks": [_step(reader, part) for part in reader.parts(sections["Checks"])],
        "causes": [_cause(reader, part) for part in reader.parts(sections["Causes"])],
    }
    if "Ask" in sections:
        values["ask"] = [_question(reader, part) for part in reader.parts(sections["Ask"])]
    if "Tonight" in sections:
        heading, *blocks = sections["Tonight"]
        items = reader.items(blocks[0], first_line(heading), "- what to do")
        values["tonight"] = [_mitigation(reader, item) for item in items]
    if "Not this" in sections:
        values["not_this"] = [
            {"sees": sees, "see": see} for sees, see in _ways(reader, sections["Not this"][1:])
        ]
    if "Escalate" in sections:
        values["escalate"] = reader.lines_of_list(sections["Escalate"], "- text")
    return values


def write(body: PlaybookBody) -> Iterator[tuple[str, str | None]]:
    """The sections with their headings; an absent one has no content."""
    yield "Secure", _written_list(body.secure)
    yield "Safe to wait", body.safe_to_wait
    yield "Ask", "\n\n".join(map(_written_question, body.ask))
    yield "Checks", "\n\n".join(map(_written_step, body.checks))
    yield "Causes", "\n\n".join(map(_written_cause, body.causes))
    yield "Tonight", "\n".join(map(_written_mitigation, body.tonight))
    yield "Not this", _written_list(f"{one.sees}: {code_span(one.see)}" for one in body.not_this)
    yield "Escalate", _written_list(body.escalate)


def _question(reader: Reader, part: Part) -> dict[str, Any]:
    answers = []
    for item in reader.items(_only(reader, part.blocks), part.line, _ANSWER_FORM):
        text, favours = _led(reader.text_of(item))
        answers.append({"text": text, "favours": favours})
    return {"text": part.title, "answers": answers}


def _step(reader: Reader, part: Part) -> dict[str, Any]:
    blocks = list(part.blocks)
    outcomes = [blocks.pop()] if blocks and blocks[-1].type == "bullet_list" else []
    if not blocks or any(block.type != "paragraph" for block in blocks):
        reader.report(
            part.line,
            rules.WrongPart,
            f"the check `{part.title}` has another form",
            "write why it is run, then a list of what it can show",
        )
        return {}
    ways = _ways(reader, outcomes) if outcomes else []
    return {
        "check": part.title,
        "why": reader.as_written(blocks),
        "outcomes": [{"sees": sees, "then": then} for sees, then in ways],
    }


def _cause(reader: Reader, part: Part) -> dict[str, Any]:
    prose = list(part.blocks)
    entries = prose.pop() if prose else None
    if not prose or any(block.type != "paragraph" for block in prose):
        reader.report(
            part.line,
            rules.WrongPart,
            f"the cause `{part.title}` has another form",
            f"write what it is, then a list of {', '.join(_CAUSE_FIELDS)}",
        )
        return {}
    form = "- name: value"
    fields = reader.fields(reader.items(entries, part.line, form), _CAUSE_FIELDS)
    values: dict[str, Any] = {
        "key": part.title,
        "cause": reader.as_written(prose),
        **fields,
    }
    if "incidents" in fields:
        values["incidents"] = read_spans(fields["incidents"])
        if values["incidents"] is None:
            reader.report(
                part.line,
                rules.WrongItem,
                "`incidents` holds something that is not in backticks",
                "write it as: - incidents: `id`, `other-id`",
            )
    return values


def _mitigation(reader: Reader, item: SyntaxTreeNode) -> dict[str, Any]:
    below = item.children[1] if len(item.children) > 1 else None
    items = reader.items(below, first_line(item), "- cost: text, and below it - risk: text")
    return {"do": reader.text_of(item), **reader.fields(items, ("cost", "risk"))}


def _ways(reader: Reader, blocks: Blocks) -> list[tuple[str, str]]:
    """Items that lead to one place each."""
    found = []
    line = first_line(blocks[0])
    for item in reader.items(_only(reader, blocks), line, _OUTCOME_FORM):
        text, to = _led(reader.text_of(item))
        if len(to) != 1:
            reader.report(
                first_line(item),
                rules.WrongItem,
                "this item does not lead to one place",
                f"write it as: {_OUTCOME_FORM}",
            )
        else:
            found.append((text, to[0]))
    return found


def _only(reader: Reader, blocks: Blocks) -> SyntaxTreeNode | None:
    """The only block that belongs here."""
    for block in blocks[1:]:
        advice = "keep one list here"
        reader.report(first_line(block), rules.WrongItem, "there is something behind it", advice)
    return blocks[0] if blocks else None


def _led(text: str) -> tuple[str, tuple[str, ...]]:
    match = _LED.match(text)
    if match is None or match["to"] is None:
        return text, ()
    return match["text"], read_spans(match["to"]) or ()


def _written_list(texts: Sequence[str] | Iterator[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _written_question(question: Question) -> str:
    answers = (
        f"{answer.text}: {', '.join(map(code_span, answer.favours))}"
        if answer.favours
        else answer.text
        for answer in question.answers
    )
    return f"### {question.text}\n\n{_written_list(answers)}"


def _written_step(step: CheckStep) -> str:
    outcomes = (f"{one.sees}: {code_span(one.then)}" for one in step.outcomes)
    parts = [f"### {step.check}", step.why, _written_list(outcomes)]
    return "\n\n".join(part for part in parts if part)


def _written_cause(cause: Cause) -> str:
    entries = {
        "share": cause.share,
        "basis": cause.basis,
        "tell": cause.tell,
        "remedy": cause.remedy,
        "incidents": ", ".join(map(code_span, cause.incidents)),
    }
    listed = _written_list(f"{name}: {value}" for name, value in entries.items() if value)
    return f"### {cause.key}\n\n{cause.cause}\n\n{listed}"


def _written_mitigation(mitigation: Mitigation) -> str:
    return f"- {mitigation.do}\n  - cost: {mitigation.cost}\n  - risk: {mitigation.risk}"
