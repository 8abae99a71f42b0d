"""`kb chat`: the conversation, in a plain terminal or as a protocol."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kb.cli.case import case_arguments, diagnosed, open_service, read_case
from kb.cli.exit_codes import ExitCode, of_verdict
from kb.cli.talk import MAX_MESSAGE_BYTES, Face, ForPeople, ForPrograms
from kb.cli.terminal import say
from kb.conversation import Conversation, begin, greet, leave_empty, leave_too_long
from kb.log import Log
from kb.outcomes import Outcomes
from kb.service.service import DEFAULT_MATCHES, Service, result_of
from kb.settings import load_settings


@click.command("chat")
@case_arguments
@click.option(
    "--jsonl",
    is_flag=True,
    help="For programs: a line of stdin is a message, a line of stdout a reply in JSON;"
    " see docs/chat.schema.json.",
)
def command(
    text: tuple[str, ...], paths: tuple[Path, ...], jsonl: bool, incidents: tuple[Path, ...]
) -> None:
    """Discuss an error: kb asks, you answer or add details, and kb ranks the incidents again.

    TEXT is an error message or a question; -f adds logs. Each line of stdin is one message,
    until `quit` or end of file. Type `help` to see what kb understands.

    Exit code: 0 an incident matches at the end, 1 none matches, 2 usage error. With --jsonl: 0 at
    the end of stdin.
    """
    if Path("-") in paths:
        raise click.UsageError("stdin holds the messages; pass the log as a file with -f PATH")
    log = read_case(text, paths)
    if log is None and not jsonl and not sys.stdin.isatty():
        raise click.UsageError("no error given; add TEXT or -f PATH (stdin holds the messages)")
    settings = load_settings(incidents)
    outcomes = Outcomes(settings, say)
    with open_service(settings) as service:
        face = ForPrograms(service) if jsonl else ForPeople()
        conversation = _talk(_opening(log, face, service, outcomes), face, service, outcomes)
    raise click.exceptions.Exit(ExitCode.FOUND if jsonl else of_verdict(conversation.verdict))


def _opening(log: Log | None, face: Face, service: Service, outcomes: Outcomes) -> Conversation:
    diagnosis = face.opened(diagnosed(log or Log.from_text(""), service, DEFAULT_MATCHES))
    start = begin if log else greet
    return start(diagnosis, outcomes.load())


def _talk(
    conversation: Conversation, face: Face, service: Service, outcomes: Outcomes
) -> Conversation:
    face.show(conversation, None)
    for said in face.messages():
        before = conversation
        conversation = _replied(before, said, service)
        outcomes.take(before, conversation)
        face.show(conversation, before)
    return conversation


def _replied(conversation: Conversation, said: str | None, service: Service) -> Conversation:
    """With a reply to every message."""
    if said is None:
        return leave_too_long(conversation, MAX_MESSAGE_BYTES)
    after = result_of(service.reply(conversation, said))
    return leave_empty(conversation) if after is conversation else after
