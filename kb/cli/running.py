"""Runs a read-only command for somebody at a terminal, who has seen it and said yes."""

from __future__ import annotations

import re
import threading

import click

from kb.cli.terminal import put, say
from kb.conversation import Conversation
from kb.errors import KbError, RunError
from kb.run import Plan, end_all, execute, why_off
from kb.service.running import plan_of, terms
from kb.service.service import Service, result_of
from kb.settings import Settings

_ASKED = re.compile(
    r"!|(?:please |ok,? )?run(?: (?:it|this|that|the (?:check|command)))?"
    r"(?: here| now| for me)*[.!]?"
    r"|(?:帮我|请)?(?:运行|跑|执行)(?:一下|它)?[。！]?",
    re.IGNORECASE,
)


def asks_to_run(message: str) -> bool:
    """Whether a message asks for what was told to do to be run here."""
    return bool(_ASKED.fullmatch(message.strip()))


class Running:
    """What can be run in a conversation."""

    def __init__(self, service: Service, settings: Settings) -> None:
        self._service = service
        self._settings = settings

    def hint(self, conversation: Conversation) -> str:
        """What to type for it, where what was told last can be run."""
        from kb.conversation.next_step import name_of

        task = result_of(self._service.task(conversation))
        if task is None or name_of(task) not in conversation.turns[-1].shows:
            return ""
        try:
            plan_of(task)
        except RunError:
            return ""
        off = why_off(self._settings)
        return "" if off else "Type `run` to run it here, after you have seen it word by word."

    def run(self, conversation: Conversation) -> str:
        """What the command printed, as if it had been pasted; empty where nothing was run."""
        try:
            plan = self._plan(conversation)
            return self._printed(plan) if plan else ""
        except KbError as error:
            say(f"{error}.".replace("..", "."))
            return ""

    def _plan(self, conversation: Conversation) -> Plan | None:
        """What the user agreed to.

        Raises:
            RunError: nothing is run here.
        """
        off = why_off(self._settings)
        task = result_of(self._service.task(conversation))
        if off or task is None:
            raise RunError(off or "nothing was told to do that can be run")
        plan = plan_of(task)
        words = {word: click.prompt(word, default=word) for word in plan.placeholders}
        plan = plan.filled(words)
        for line in plan.lines:
            for program in line:
                sign = "  " if program is line[0] else "| "
                put(sign + "\n    ".join(map(ascii_of, program.words)) + program.errors)
        put(terms())
        return plan if click.confirm("Run it?", default=False) else None

    def _printed(self, plan: Plan) -> str:
        try:
            output = execute(plan, threading.Event())
        finally:
            end_all()
        put(output.text)
        for note in output.notes:
            say(note)
        return output.text


def ascii_of(word: str) -> str:
    """A word as it is given to the program, with nothing in it that looks like something else."""
    return word if word.isprintable() else ascii(word)
