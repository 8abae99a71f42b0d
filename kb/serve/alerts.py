"""`POST /v1/alerts`: what Alertmanager sends to a webhook, or `{"text": ...}`, to a diagnosis and,
where a chat is configured, to a message there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from http import HTTPStatus
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kb.diagnosis import Diagnosis, without_incident
from kb.errors import KbError
from kb.guides import Record
from kb.log import Log
from kb.serve.bodies import read_json
from kb.serve.diagnoses import Diagnoses
from kb.serve.refusal import RefusedError
from kb.serve.respond import json_response
from kb.service.wire import Answer, to_answer
from kb.verdict import Verdict, percent
from kb.views.web import place_of
from kb.webhook import post

MAX_ALERTS = 20
"""Of one notification that are answered: nobody reads more messages at once."""
LOG_ANNOTATIONS = ("log", "logs", "log_excerpt", "excerpt", "description", "summary", "message")
"""Annotations that are read, in this order."""

_MAX_QUOTE_CHARACTERS = 300
_MAX_STEP_CHARACTERS = 500
_RESOLVED = "resolved"
_FENCE = "```"


class Alert(msgspec.Struct, frozen=True):
    """One alert, as Alertmanager sends it; keys that are not read may be there."""

    status: str = "firing"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    fingerprint: str = ""


class Notification(msgspec.Struct, frozen=True):
    """Some alerts, or a text."""

    alerts: list[Alert] = []
    text: str = ""


class AlertAnswer(msgspec.Struct, frozen=True):
    """What is known about one alert."""

    fingerprint: Annotated[str, msgspec.Meta(description="As Alertmanager gave it.")]
    message: Annotated[str, msgspec.Meta(description="For a chat.")]
    annotations: Annotated[dict[str, str], msgspec.Meta(description="To be added to the alert.")]
    answer: Answer


class AlertAnswers(msgspec.Struct, frozen=True):
    """One for each alert that fires, in their order."""

    alerts: list[AlertAnswer]


class Links(msgspec.Struct, frozen=True):
    """Where people and messages go."""

    chat: str | None
    """The URL of the incoming webhook of a chat."""
    public: str | None
    """How people reach this server."""

    def to_page(self, place: str) -> str:
        """The address of a page; "" where nobody knows it."""
        return f"{self.public.rstrip('/')}/{place}" if self.public else ""


class Alerts:
    """Answers alerts."""

    def __init__(self, diagnoses: Diagnoses, links: Links) -> None:
        self._diagnoses = diagnoses
        self._links = links

    async def answer(self, request: Request) -> Response:
        """A diagnosis of each alert that fires. If the chat does not take the message, this is an
        error, so that Alertmanager sends the notification again."""
        notification = await read_json(request, Notification)
        answers = [await self._one(request, alert) for alert in _firing(notification)]
        if self._links.chat and answers:
            message = "\n\n".join(answer.message for answer in answers)
            await asyncio.to_thread(_send, self._links.chat, message)
        return json_response(AlertAnswers(answers))

    async def _one(self, request: Request, alert: Alert) -> AlertAnswer:
        diagnosis = await self._diagnoses.of(request, Log.from_text(_said(alert)))
        answer = to_answer(diagnosis)
        leading = _leading(diagnosis)
        link = self._links.to_page(place_of(leading)) if leading else ""
        return AlertAnswer(
            alert.fingerprint,
            "\n".join(_message(alert, diagnosis, answer, link)),
            dict(_annotations(answer, link)),
            answer,
        )


def _firing(notification: Notification) -> list[Alert]:
    if notification.text:
        return [Alert(annotations={"log": notification.text})]
    firing = [alert for alert in notification.alerts if alert.status != _RESOLVED]
    return firing[:MAX_ALERTS]


def _said(alert: Alert) -> str:
    """What the alert tells, as one text."""
    told = [alert.annotations[name] for name in LOG_ANNOTATIONS if name in alert.annotations]
    return "\n".join(told) or alert.labels.get("alertname", "")


def _leading(diagnosis: Diagnosis) -> Record | None:
    """What the answer says first."""
    if diagnosis.matches and not diagnosis.symptom_leads:
        return diagnosis.matches[0].incident
    return diagnosis.playbooks[0].playbook if diagnosis.playbooks else None


def _annotations(answer: Answer, link: str) -> Iterator[tuple[str, str]]:
    yield "kb_verdict", answer.verdict
    if answer.matches:
        first = answer.matches[0]
        yield "kb_incident", first.id
        yield "kb_title", first.title
        yield "kb_confidence", percent(first.confidence)
        if answer.verdict == Verdict.MATCH:
            yield "kb_first_step", first.fix[0].step
    elif answer.playbooks:
        yield "kb_playbook", answer.playbooks[0].id
        yield "kb_title", answer.playbooks[0].title
    if link:
        yield "kb_link", link


def _message(alert: Alert, diagnosis: Diagnosis, answer: Answer, link: str) -> Iterator[str]:
    """For Slack and Mattermost: `*bold*`, and nothing of the alert or the log is obeyed."""
    name = alert.labels.get("alertname", "")
    yield f"*{answer.verdict.upper()}*{f' for {_quoted(name)}' if name else ''}"
    if answer.matches and not diagnosis.symptom_leads:
        first = answer.matches[0]
        yield f"{percent(first.confidence)} {_shown(first.title)} (`{first.id}`)"
        if first.why:
            yield _fenced(first.why[0].text[:_MAX_QUOTE_CHARACTERS])
        if answer.verdict == Verdict.MATCH:
            yield f"First: {_shown(first.fix[0].step[:_MAX_STEP_CHARACTERS])}"
            if command := first.fix[0].command:
                yield _fenced(command)
    else:
        yield _shown(without_incident(diagnosis))
        for symptom in diagnosis.playbooks[:1]:
            yield f"Symptom: {_shown(symptom.playbook.title)} ({percent(symptom.share)})"
    if answer.verdict != Verdict.MATCH and answer.next:
        yield f"Check next: {_shown(answer.next.title)}"
        yield _fenced(answer.next.command)
    if link:
        yield link


def _quoted(text: str) -> str:
    """In a code span, where nobody is called by `@`."""
    return f"`{_shown(' '.join(text.split()))[:_MAX_QUOTE_CHARACTERS]}`" if text.strip() else ""


def _fenced(text: str) -> str:
    return f"{_FENCE}\n{_shown(text)}\n{_FENCE}"


def _shown(text: str) -> str:
    """Without what Slack and Mattermost obey: links, calls of people, the end of a fence."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("`", "'")


def _send(url: str, message: str) -> None:
    """
    Raises:
        RefusedError: the chat did not take it.
    """
    try:
        post(url, {"text": message})
    except KbError as error:
        raise RefusedError(
            HTTPStatus.BAD_GATEWAY, f"the chat did not take the message: {error}"
        ) from error
