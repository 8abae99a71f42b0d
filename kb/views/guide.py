"""The terminal view of a check and of a playbook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from kb.check import Check, Command, Finding, Limit
from kb.guides import Guide
from kb.playbook import Cause, CheckStep, Mitigation, Playbook, Question
from kb.views.prose import command_block, heading, indented, link, prose


def guide_parts(guide: Guide) -> Iterator[RenderableType]:
    """The pieces of the page, from the top."""
    yield Text.assemble((guide.id, "cyan"), f"  {guide.kind}")
    yield Text(guide.title, "bold")
    yield from _check_parts(guide) if isinstance(guide, Check) else _playbook_parts(guide)
    yield heading("References")
    yield from (link(url) for url in guide.header.references)


def _check_parts(check: Check) -> Iterator[RenderableType]:
    header, body = check.header, check.body
    yield prose(header.question)
    if header.caution:
        yield Text(f"Caution: {header.caution}", "yellow")
    facts = {
        "where": header.where,
        "needs": "; ".join(header.needs),
        "costs": f"{header.cost.seconds} s, {header.cost.risk}",
        "lost by": ", ".join(header.lost_by),
    }
    yield from (indented(Text(f"{name}: {value}")) for name, value in facts.items() if value)
    yield heading("Commands")
    for command in body.commands:
        yield from _command_parts(command)
    yield heading("Findings")
    for finding in body.findings:
        yield from _finding_parts(finding)
    limits = {
        "Cannot see": body.cannot_see,
        "False pass": body.false_pass,
        "False fail": body.false_fail,
    }
    for title, found in limits.items():
        yield from _limit_parts(title, found)
    if body.differs_by:
        yield heading("Differs by")
        yield indented(prose(body.differs_by))
    yield heading("Normal")
    yield indented(Text(body.normal, "dim", overflow="fold"))


def _command_parts(command: Command) -> Iterator[RenderableType]:
    yield indented(Text(f"{command.place}:"))
    yield command_block(command.run, 4)
    if command.note:
        yield indented(prose(command.note), 4)


def _finding_parts(finding: Finding) -> Iterator[RenderableType]:
    mark = Text("! ", "red") if finding.abnormal else Text("  ")
    yield indented(Text.assemble(mark, (finding.id, "cyan")))
    yield indented(prose(finding.means), 4)
    then = " ".join(filter(None, (finding.then, finding.next and f"Next: `{finding.next}`.")))
    said = {
        "if": finding.rule,
        "suggests": finding.suggests,
        "see": ", ".join(finding.points_to),
        "then": then,
    }
    for name, value in said.items():
        if value:
            yield indented(Text.assemble(f"{name}: ", prose(value)), 4)


def _limit_parts(title: str, limits: Sequence[Limit]) -> Iterator[RenderableType]:
    if limits:
        yield heading(title)
        yield from _listed(limit.text for limit in limits)


def _playbook_parts(playbook: Playbook) -> Iterator[RenderableType]:
    body = playbook.body
    yield heading("Secure before a restart")
    yield from _listed(body.secure)
    yield indented(prose(body.safe_to_wait))
    if body.ask:
        yield heading("Ask")
        for question in body.ask:
            yield from _question_parts(question)
    yield heading("Checks")
    for number, step in enumerate(body.checks, 1):
        yield from _step_parts(number, step)
    yield heading("Causes")
    for cause in body.causes:
        yield from _cause_parts(cause)
    if body.tonight:
        yield heading("Tonight")
        yield from _listed(map(_mitigation, body.tonight))
    if body.not_this:
        yield heading("Not this")
        yield from _listed(f"{one.sees}: `{one.see}`" for one in body.not_this)
    if body.escalate:
        yield heading("Escalate with")
        yield from _listed(body.escalate)


def _question_parts(question: Question) -> Iterator[RenderableType]:
    yield indented(prose(question.text))
    for answer in question.answers:
        favoured = ", ".join(f"`{key}`" for key in answer.favours)
        yield indented(prose(f"{answer.text}: {favoured}" if favoured else answer.text), 4)


def _step_parts(number: int, step: CheckStep) -> Iterator[RenderableType]:
    yield indented(Text.assemble(f"{number}. ", (step.check, "cyan")))
    yield indented(prose(step.why), 4)
    for outcome in step.outcomes:
        yield indented(prose(f"{outcome.sees}: `{outcome.then}`"), 4)


def _cause_parts(cause: Cause) -> Iterator[RenderableType]:
    yield indented(Text.assemble((cause.key, "cyan"), f"  {cause.share}"))
    yield indented(prose(cause.cause), 4)
    yield indented(prose(f"Tell: {cause.tell}"), 4)
    yield indented(prose(f"Remedy: {cause.remedy}"), 4)
    if cause.incidents:
        yield indented(Text.assemble("Records: ", (", ".join(cause.incidents), "cyan")), 4)


def _mitigation(mitigation: Mitigation) -> str:
    return f"{mitigation.do} (cost: {mitigation.cost}; risk: {mitigation.risk})"


def _listed(texts: Iterable[str]) -> Iterator[RenderableType]:
    return (indented(Text.assemble("- ", prose(text))) for text in texts)
