"""How to do what was told: the command, where it runs, and what its placeholders stand for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from kb.check import Check, JobState
from kb.conversation.acts import Act, Acted
from kb.conversation.done_steps import only_looks
from kb.conversation.language import Language, in_language, say
from kb.conversation.next_step import (
    name_of,
    open_steps,
    symptom_of,
)
from kb.conversation.passages import passage_about
from kb.conversation.replies.answer import (
    Answer,
    from_pages,
    nothing_to_do,
    paragraphs,
    sentences,
    steps_ahead,
    with_leader,
    with_passage,
    with_task,
)
from kb.conversation.replies.meant import (
    check_about,
    first_record,
    is_of_it,
    place_named,
    place_of,
    task_meant,
    task_named,
)
from kb.conversation.replies.remedies import show_fix
from kb.conversation.speech import (
    describe_step,
    fenced_command,
    in_a_row,
    prose,
)
from kb.conversation.state import Conversation, Speaker
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck

_VERIFIES = re.compile(
    r"\b(?:works|worked|working|took|applied|effect\w*|helped|fixed|successful\w*)\b"
    r"|生效|修好|成功|正常的",
    re.IGNORECASE,
)
_REPAIRS = re.compile(
    r"(?:so |and |but |ok,? )*how (?:do|can|should|would) (?:i|we|you|one) "
    r"(?:fix|repair|solve|change|set|cure|resolve) (?:it|that|this)\W*"
    r"|(?:那|那么|所以)?(?:该|应该|要|我)?(?:怎么|如何)(?:去)?(?:改|设|配|修|解决|修复|处理|设置|配置)"
    r"(?:呢|啊|呀|它|这个|比较|更|最|快|好|稳|简单|省事|合适)*\W*",
    re.IGNORECASE,
)
"""Asks for the repair, without saying of what."""
_MAKES = re.compile(
    r"\bhow (?:do|can|could|should|would) (?:i|we|you|one)"
    r" (?:make|get|let|force|keep|stop|handle|deal with)\b(?! sure)"
    r"|\bhow to (?:make|let|force|keep|stop|handle|deal with)\b"
    r"|(?:怎么|如何|怎样)(?:才能|能|可以)?(?:让|使|处理|解决|根治|绕|兼顾|保证)",
    re.IGNORECASE,
)
"""Asks for what brings about a better state, not for how to run the check."""
_REPROACH = re.compile(
    r"\b(?:you|that) (?:did(?:n't| not)|does(?:n't| not)) (?:really )?answer\b"
    r"|\bi asked (?:about|for)\b|你没(?:有)?回答|没有?回答我",
    re.IGNORECASE,
)
"""Says that the last answer was none: its words ask for nothing."""
_CAPITALS = re.compile(r"\b[A-Z][A-Z_]+\b|<[a-z][a-z _-]*>")
_MAX_FINDINGS_NAMED = 2
"""Of a check, abnormal ones, in its order."""


def how(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """The command, where to run it, and what its placeholders stand for; or how to see that it
    works."""
    language = conversation.language
    incident = first_record(conversation)
    if incident and _VERIFIES.search(acted.text):
        said = say("success-verify", language, text=prose(incident.body.verify, language))
        return with_leader(said, conversation, knowledge)
    answer = _change(acted, conversation, knowledge) or answer_of_pages(
        acted, conversation, knowledge
    )
    if answer:
        return answer
    task = task_meant(acted.text, conversation, knowledge)
    if task is None:
        return Answer(nothing_to_do(conversation))
    if isinstance(task, NextCheck) and _VERIFIES.search(acted.text):
        text = say("normal-output", language, normal=task.check.body.normal, id=task.check.id)
        return Answer(text, shows=(name_of(task),))
    if isinstance(task, NextCheck):
        text = paragraphs(_how_check(task, acted.text, conversation))
        return Answer(text, shows=(name_of(task),))
    command = task.step.command
    where = say("run-step-where" if command else "no-command", language)
    step = describe_step(task.incident.id, task.number, task.step, language)
    parts = [step, where, placeholders(command or "", language), steps_ahead(task, conversation)]
    return Answer(paragraphs(parts), shows=(name_of(task),), records=(task.incident.id,))


def _change(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """How to change something that is not named: the next step that changes something, or the
    remedies of the symptom."""
    text = acted.text
    is_asked = _REPAIRS.fullmatch(text) or (
        _MAKES.search(text)
        and not is_of_it(text)
        and passage_about(text, conversation, knowledge) is None
    )
    if not is_asked or task_named(text, conversation, knowledge):
        return None
    incident = first_record(conversation)
    if symptom_of(conversation, knowledge) or incident is None:
        return show_fix(acted, conversation, knowledge)
    changes = (one for one in open_steps(incident, conversation) if not only_looks(one.step))
    step = next(changes, None)
    return with_task("", step, conversation.language) if step else None


def _whole_message(acted: Acted, conversation: Conversation) -> str:
    """The message of which a part is answered: in the part, what it is about may be "it"."""
    last = conversation.turns[-1]
    is_part = last.speaker is Speaker.USER and acted.text in last.text
    return _REPROACH.sub(" ", last.text if is_part else acted.text)


def answer_of_pages(
    acted: Acted, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer | None:
    """What the pages say about a question that names no check or step: the leading ones, for how to
    do something the check about it, or else the record that its words name. None for one of "it",
    and where they say nothing."""
    if is_of_it(acted.text) or task_named(acted.text, conversation, knowledge):
        return None
    passage = passage_about(acted.text, conversation, knowledge)
    if passage:
        return with_passage(passage, "", conversation, knowledge)
    whole = _whole_message(acted, conversation)
    check = check_about(whole, conversation, knowledge) if acted.act is Act.HOW else None
    if check:
        return Answer(paragraphs(_how_check(check, whole, conversation)), shows=(name_of(check),))
    return from_pages(acted.text, conversation, knowledge)


def _how_check(task: NextCheck, text: str, conversation: Conversation) -> Iterator[str]:
    language, check = conversation.language, task.check
    place = place_of(text, conversation)
    command = check.command(place)
    title, where = in_language(check.title, language), in_language(check.header.where, language)
    yield say("check-next", language, title=title, id=check.id)
    if command.place is place and place_named(text):
        yield say("form-for", language, place=say(f"place-{place}", language))
    yield fenced_command(command)
    yield in_language(command.note or "", language)
    yield say("run-where", language, where=where)
    yield placeholders(command.run, language)
    yield sentences(_needs(check, language))
    findings = [found.means for found in check.body.findings if found.abnormal]
    for means in findings[:_MAX_FINDINGS_NAMED]:
        yield say("look-for", language, finding=prose(means, language))
    yield say("paste-output", language)


def _needs(check: Check, language: Language) -> Iterator[str]:
    if check.header.needs:
        yield say("needs", language, needs=in_a_row(check.header.needs, language))
    if check.header.needs_job is JobState.RUNNING:
        yield say("needs-running", language)


def placeholders(command: str, language: Language) -> str:
    """What the words in capitals of a command stand for; empty without any."""
    known = _placeholder_table()
    words = dict.fromkeys(_CAPITALS.findall(command))
    values = [f"`{word}`: {known[word][language]}" for word in words if word in known]
    values += [f"`{word}`" for word in words if word.startswith("<")]
    return say("put-in", language, values="; ".join(values)) if values else ""


@cache
def _placeholder_table() -> Mapping[str, Mapping[str, str]]:
    source = Path(__file__).parents[1].joinpath("placeholders.toml").read_bytes()
    return tomllib.loads(source.decode())
