"""How well whole dialogues go: scripts of what a user says, and what each reply must contain."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean, quantiles
from typing import Annotated, NamedTuple

import msgspec

from kb.containment import contained
from kb.conversation import Conversation, Speaker, Statement, begin, reply
from kb.conversation.next_step import cause_shown, check_to_run, symptom_of
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.errors import DamagedError, EvaluationError
from kb.evaluate.expressions import Expressions
from kb.files import decode_json, read_given
from kb.log import Log

SCHEMA = 1
"""Grows when a key is removed or changes its meaning."""

_MAX_CHECKS = 60
"""Checks that are proposed before it counts as never; more than any playbook has."""


class Expected(msgspec.Struct, frozen=True):
    """A message, and what its reply must contain."""

    user: str
    must: tuple[str, ...] = ()
    """Regular expressions, all of which the reply has."""
    must_not: tuple[str, ...] = ()
    """Regular expressions, none of which it has."""


class Dialogue(msgspec.Struct, frozen=True):
    """One script. Further keys of the line are not read."""

    turns: Annotated[tuple[Expected, ...], msgspec.Meta(min_length=1)]
    """The first one opens the case."""
    id: str = ""
    lang: str = "en"
    source: str = ""
    cause: str = ""
    """In words, for the reader."""
    cause_pattern: str = ""
    """A regular expression for the title or cause of what is to lead at the end; empty where
    nothing known is the cause."""
    opening_has_log: bool = False


class Script(msgspec.Struct, frozen=True):
    """A dialogue that is ready to be held."""

    dialogue: Dialogue
    expected: tuple[Expressions, ...]
    """All expressions of each turn."""
    cause: Expressions | None


class FailedTurn(msgspec.Struct, frozen=True):
    """A reply that is not good."""

    id: str
    """Of the dialogue."""
    turn: int
    """From 1."""
    user: str
    said: str
    missing: tuple[str, ...]
    """Expressions that it must contain and does not."""
    forbidden: tuple[str, ...]
    """Expressions that it contains and must not."""
    failure: str | None
    """Why there was no reply."""


class _Reply(NamedTuple):
    """What came of a message."""

    conversation: Conversation | None
    said: str
    failure: str | None
    ms: float


class HeldDialogue(msgspec.Struct, frozen=True):
    """How one dialogue went."""

    id: str
    lang: str
    opening_has_log: bool
    turns: int
    failed: tuple[FailedTurn, ...]
    leads: tuple[bool, ...] | None
    """After each turn, whether the cause leads; None where none is named."""
    checks: tuple[int, int] | None
    """How many checks are proposed at the opening until one whose output the user has: as they are
    chosen, and in the order of the leading playbook; None where either never comes to one."""
    reply_ms: tuple[float, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every turn is good."""
        return not self.failed

    @property
    def is_opened_well(self) -> bool:
        """Whether the first turn is good."""
        return all(failed.turn > 1 for failed in self.failed)

    @property
    def turns_until_lead(self) -> int | None:
        """After how many turns the cause leads and goes on to lead; None where it does not at the
        end."""
        if not self.leads or not self.leads[-1]:
            return None
        behind = len(self.leads)
        while behind and self.leads[behind - 1]:
            behind -= 1
        return behind + 1


class DialogueRates(msgspec.Struct, frozen=True):
    """Shares over some dialogues, from 0 to 1."""

    dialogues: int
    turns: int
    good: float
    """Of the turns."""
    openings: float
    """Openings that are good."""
    whole: float
    """Dialogues all of whose turns are good."""


class LeadRates(msgspec.Struct, frozen=True):
    """Whether the cause leads, over the dialogues that name one."""

    dialogues: int
    at_opening: float
    """Share in which it leads after the first message: without any conversation."""
    at_end: float
    turns: float
    """Mean number of turns until it leads and goes on to, over those in which it does."""


class CheckRates(msgspec.Struct, frozen=True):
    """Checks proposed until one whose output the user has, over the dialogues where that is known
    for both orders."""

    dialogues: int
    chosen: float
    """Mean number, as the conversation chooses them."""
    fixed: float
    """Mean number, in the order of the playbook."""


class DialogueReport(msgspec.Struct, frozen=True):
    """What the evaluation found."""

    schema: int
    overall: DialogueRates
    by_language: dict[str, DialogueRates]
    by_opening: dict[str, DialogueRates]
    lead: LeadRates
    checks: CheckRates
    p50_ms: float
    """Of a reply."""
    p95_ms: float
    failed: tuple[FailedTurn, ...]
    held: tuple[HeldDialogue, ...]


def read_scripts(path: Path) -> list[Script]:
    """Read a file of dialogues.

    Raises:
        EvaluationError: the file cannot be read, has none, or a line is no dialogue.
    """
    try:
        lines = read_given(path).splitlines()
    except OSError as error:
        raise EvaluationError(f"cannot read {path}: {error.strerror or error}") from error
    scripts = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                dialogue = decode_json(line, Dialogue)
                named = dialogue.id or f"{path.name}:{number}"
                scripts.append(_script(msgspec.structs.replace(dialogue, id=named)))
            except (DamagedError, EvaluationError) as error:
                raise EvaluationError(f"{path}:{number} is not a dialogue: {error}") from error
    if not scripts:
        raise EvaluationError(f"{path} holds no dialogues; it has one JSON object a line")
    return scripts


def _script(dialogue: Dialogue) -> Script:
    return Script(
        dialogue,
        tuple(Expressions([*turn.must, *turn.must_not]) for turn in dialogue.turns),
        Expressions([dialogue.cause_pattern]) if dialogue.cause_pattern else None,
    )


def hold(script: Script, knowledge: KnowledgeBase) -> HeldDialogue:
    """Say all of it, as a user of `kb chat TEXT` would."""
    dialogue = script.dialogue
    replies: list[_Reply] = []
    failed = []
    for number, (turn, expected) in enumerate(zip(dialogue.turns, script.expected, strict=True), 1):
        before = replies[-1].conversation if replies else None
        replies.append(_replied(before, turn.user, knowledge))
        bad = _judged(dialogue.id, number, turn, expected, replies[-1])
        failed += [bad] if bad else []
    conversations = [one.conversation for one in replies]
    cause = script.cause
    return HeldDialogue(
        dialogue.id,
        dialogue.lang,
        dialogue.opening_has_log,
        len(dialogue.turns),
        tuple(failed),
        tuple(_leads(cause, one, knowledge) for one in conversations) if cause else None,
        _checks(conversations[0], conversations[-1], knowledge),
        tuple(one.ms for one in replies),
    )


def _replied(before: Conversation | None, text: str, knowledge: KnowledgeBase) -> _Reply:
    """To the opening where there is nothing before it. Without a reply, what was before goes on."""
    losses: list[str] = []
    after, began = before, time.perf_counter()
    with contained("no reply", losses.append):
        if before:
            after = reply(before, text, knowledge)
        else:
            after = begin(diagnose(Log.from_text(text), knowledge))
    took = (time.perf_counter() - began) * 1000
    turns = after.turns[len(before.turns) if before else 0 :] if after else ()
    said = "\n".join(turn.text for turn in turns if turn.speaker is Speaker.TOOL)
    return _Reply(after, said, losses[0] if losses else None, took)


def _judged(
    identifier: str, number: int, turn: Expected, expected: Expressions, reply: _Reply
) -> FailedTurn | None:
    """None where the reply is good."""
    found = expected.found_in(reply.said)
    missing = tuple(one for one in turn.must if one not in found)
    forbidden = tuple(one for one in turn.must_not if one in found)
    if not (missing or forbidden or reply.failure):
        return None
    return FailedTurn(identifier, number, turn.user, reply.said, missing, forbidden, reply.failure)


def _leads(cause: Expressions, conversation: Conversation | None, knowledge: KnowledgeBase) -> bool:
    """Whether the title or cause of the record or playbook that leads is the one that is meant."""
    if conversation is None:
        return False
    symptom = symptom_of(conversation, knowledge)
    if symptom:
        shown = cause_shown(conversation, knowledge)
        named = shown[1].cause if shown else ""
        return bool(cause.found_in(f"{symptom.playbook.title}\n{named}"))
    incidents = [match.incident for match in conversation.matches[:1]]
    return any(cause.found_in(f"{one.title}\n{one.body.cause}") for one in incidents)


def _checks(
    opening: Conversation | None, end: Conversation | None, knowledge: KnowledgeBase
) -> tuple[int, int] | None:
    if opening is None or end is None:
        return None
    has = end.checks - opening.checks
    playbooks = opening.diagnosis.playbooks[:1]
    fixed = [step.check for match in playbooks for step in match.playbook.body.checks]
    chosen_at = _position(_proposed(opening, knowledge), has)
    fixed_at = _position(iter(fixed), has)
    return (chosen_at, fixed_at) if chosen_at and fixed_at else None


def _position(proposed: Iterator[str], has: frozenset[str]) -> int | None:
    return next((place for place, check in enumerate(proposed, 1) if check in has), None)


def _proposed(conversation: Conversation, knowledge: KnowledgeBase) -> Iterator[str]:
    """The checks that the conversation would propose one after the other, if none could be done."""
    for _ in range(_MAX_CHECKS):
        step = check_to_run(conversation, knowledge)
        if step is None:
            return
        yield step.check.id
        conversation = conversation.with_statement(Statement("", set_aside=(step.check.id,)))


def measure_dialogues(held: Sequence[HeldDialogue]) -> DialogueReport:
    """Count over all dialogues."""
    times = [ms for one in held for ms in one.reply_ms]
    cut = quantiles(times, n=20, method="inclusive") if len(times) > 1 else times * 19
    openings = {True: "opening with a log", False: "opening in words"}
    return DialogueReport(
        schema=SCHEMA,
        overall=_rates(held),
        by_language=_grouped(held, [one.lang for one in held]),
        by_opening=_grouped(held, [openings[one.opening_has_log] for one in held]),
        lead=_lead(held),
        checks=_check_rates(held),
        p50_ms=round(cut[9], 1),
        p95_ms=round(cut[18], 1),
        failed=tuple(chain.from_iterable(one.failed for one in held)),
        held=tuple(held),
    )


def _grouped(held: Sequence[HeldDialogue], names: Sequence[str]) -> dict[str, DialogueRates]:
    return {
        name: _rates([one for one, its in zip(held, names, strict=True) if its == name])
        for name in sorted(set(names))
    }


def _rates(held: Sequence[HeldDialogue]) -> DialogueRates:
    turns = sum(one.turns for one in held)
    return DialogueRates(
        dialogues=len(held),
        turns=turns,
        good=round(1 - sum(len(one.failed) for one in held) / turns, 3),
        openings=_mean([one.is_opened_well for one in held]),
        whole=_mean([one.is_whole for one in held]),
    )


def _lead(held: Sequence[HeldDialogue]) -> LeadRates:
    leads = [one.leads for one in held if one.leads]
    turns = [one.turns_until_lead for one in held]
    return LeadRates(
        dialogues=len(leads),
        at_opening=_mean([one[0] for one in leads]),
        at_end=_mean([one[-1] for one in leads]),
        turns=_mean([number for number in turns if number]),
    )


def _check_rates(held: Sequence[HeldDialogue]) -> CheckRates:
    pairs = [one.checks for one in held if one.checks]
    return CheckRates(
        dialogues=len(pairs),
        chosen=_mean([chosen for chosen, _fixed in pairs]),
        fixed=_mean([fixed for _chosen, fixed in pairs]),
    )


def _mean(values: Sequence[float]) -> float:
    return round(fmean(values), 3) if values else 0.0
