"""`kb chat`: the conversation, in a plain terminal or as a protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import click
import msgspec

from kb.cli.case import (
    case_arguments,
    diagnosed,
    open_service,
    read_case,
    resume_option,
)
from kb.cli.exit_codes import ExitCode, of_verdict
from kb.cli.running import Running
from kb.cli.speaking import showing_prompts, speaker_of, speaking
from kb.cli.talk import MAX_MESSAGE_BYTES, Face, ForPeople, ForPrograms
from kb.cli.terminal import say
from kb.conversation import Conversation, begin, greet, leave_empty, leave_too_long
from kb.errors import KbError
from kb.log import Log
from kb.outcomes import Outcomes
from kb.service.service import DEFAULT_MATCHES, Service, result_of
from kb.sessions import Session, Sessions, paths_again, session_to_resume
from kb.settings import load_settings

_MAX_QUOTE_CHARACTERS = 60
"""Of the last message, where a conversation goes on."""


@click.command("chat")
@case_arguments
@click.option(
    "--jsonl",
    is_flag=True,
    help="For programs: a line of stdin is a message, a line of stdout a reply in JSON;"
    " see docs/chat.schema.json.",
)
@click.option(
    "--show-prompt",
    is_flag=True,
    help="Show what would be sent to the model of a configured voice, and send nothing; see"
    " docs/llm.md.",
)
@resume_option
def command(
    text: tuple[str, ...],
    paths: tuple[Path, ...],
    jsonl: bool,
    show_prompt: bool,
    resume: str | None,
    incidents: tuple[Path, ...],
) -> None:
    """Discuss an error: kb asks, you answer or add details, and kb ranks the incidents again.

    TEXT is an error message or a question; -f adds logs. At a terminal, what is pasted is one
    message; in a pipe, each line is one. `quit` or the end of file ends it. Type `help` to see what
    kb understands.

    Exit code: 0 an incident matches at the end, 1 none matches, 2 usage error. With --jsonl: 0 at
    the end of stdin.
    """
    if Path("-") in paths:
        raise click.UsageError("stdin holds the messages; pass the log as a file with -f PATH")
    if resume is not None and (text or paths):
        raise click.UsageError("--resume goes on with a case; leave out TEXT and -f")
    if jsonl and show_prompt:
        raise click.UsageError("--show-prompt is for people; leave out --jsonl")
    settings = load_settings(incidents)
    sessions = Sessions(settings, say)
    old = None if resume is None else session_to_resume(sessions, resume)
    log = _log_again(old) if old else read_case(text, paths)
    if not (log or old or jsonl or sys.stdin.isatty()):
        if resume is not None:
            raise KbError(
                "every case that is kept is damaged; start a new one: kb chat TEXT, or remove"
                " them: kb cases --forget all"
            )
        raise click.UsageError("no error given; add TEXT or -f PATH (stdin holds the messages)")
    speak = showing_prompts(settings) if show_prompt else None
    with open_service(settings) as service:
        speaker = None if show_prompt else speaker_of(settings, service)
        speak = speaking(speaker) if speaker else speak
        people = ForPeople(Running(service, settings), speak)
        talk = _Talk(
            ForPrograms(service, speaker) if jsonl else people,
            service,
            Outcomes(settings, say),
            sessions,
        )
        conversation = talk.run(log, old or Session.of(" ".join(text), paths))
    raise click.exceptions.Exit(ExitCode.FOUND if jsonl else of_verdict(conversation.verdict))


def _log_again(session: Session) -> Log | None:
    """What it began with, as it is now."""
    paths, notices = paths_again(session)
    for notice in (*notices, *_ticks(session)):
        say(notice)
    return read_case([session.text] if session.text else [], paths)


def _ticks(session: Session) -> Iterator[str]:
    """The steps that are done, by their numbers."""
    for incident, steps in groupby(session.done, lambda done: done[0]):
        numbers = ", ".join(str(place + 1) for _, place in steps)
        yield f"done of {incident}: {numbers}"


class _Talk:
    """The conversation with one face, to its end."""

    def __init__(
        self, face: Face, service: Service, outcomes: Outcomes, sessions: Sessions
    ) -> None:
        self._face = face
        self._service = service
        self._outcomes = outcomes
        self._sessions = sessions

    def run(self, log: Log | None, session: Session) -> Conversation:
        """From the opening, or where a session stopped, until nothing more is said."""
        conversation = self._opening(log)
        self._sessions.keep(session)
        if session.messages:
            conversation = self._gone_on(conversation, session)
        else:
            self._face.show(conversation, None)
        self._keep(session, conversation)
        for said in self._face.messages():
            before = conversation
            if said and said.strip():
                session = session.with_message(said)
                self._sessions.keep(session)
            conversation = self._replied(before, said)
            self._keep(session, conversation)
            self._face.show(conversation, before)
            self._outcomes.take(before, conversation)
        return conversation

    def _keep(self, session: Session, conversation: Conversation) -> None:
        """With how it stands."""
        first = next(iter(conversation.matches), None)
        told = {(name, number - 1) for name, number in conversation.done}
        incident, done = first.incident.id if first else None, told.union(session.done)
        self._sessions.keep(session.standing(conversation.verdict, incident, frozenset(done)))

    def _opening(self, log: Log | None) -> Conversation:
        nothing = Log.from_text("")
        diagnosis = self._face.opened(diagnosed(log or nothing, self._service, DEFAULT_MATCHES))
        start = begin if log else greet
        return start(diagnosis, self._outcomes.load())

    def _gone_on(self, conversation: Conversation, session: Session) -> Conversation:
        """After the messages of a session, of which the last reply is shown again."""
        say(_summary(session.time.astimezone().strftime("%Y-%m-%d %H:%M"), session.messages))
        before = conversation
        for message in session.messages:
            before = conversation
            conversation = result_of(self._service.reply(before, message))
        # The order and the question are shown whether or not the last message changed them.
        self._face.show(conversation, msgspec.structs.replace(before, matches=(), inquiry=None))
        return conversation

    def _replied(self, conversation: Conversation, said: str | None) -> Conversation:
        """With a reply to every message."""
        if said is None:
            return leave_too_long(conversation, MAX_MESSAGE_BYTES)
        after = result_of(self._service.reply(conversation, said))
        return leave_empty(conversation) if after is conversation else after


def _summary(when: str, messages: Sequence[str]) -> str:
    """What goes on."""
    last = " ".join(messages[-1].split())
    quoted = last[:_MAX_QUOTE_CHARACTERS] + ("..." if len(last) > _MAX_QUOTE_CHARACTERS else "")
    number = "1 message" if len(messages) == 1 else f"{len(messages)} messages"
    return f"Going on with the conversation of {when} after {number}, the last one: {quoted}"
