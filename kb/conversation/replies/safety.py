"""What a check or a step does to the job, what it costs, and what to save before."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kb.check import Check, Loss
from kb.conversation.acts import Acted
from kb.conversation.done_steps import FixStep, only_looks
from kb.conversation.known_commands import command_asked
from kb.conversation.known_options import options_in
from kb.conversation.language import Language, in_language, joined, say, translation
from kb.conversation.next_step import (
    Task,
    cause_shown,
    name_of,
    playbooks_of,
)
from kb.conversation.phrases import harm_of
from kb.conversation.replies.answer import (
    Answer,
    cite_check,
    in_short,
    not_understood,
    paragraphs,
    sentences,
    where_we_are,
)
from kb.conversation.replies.how import answer_of_pages
from kb.conversation.replies.meant import (
    first_record,
    task_meant,
    task_named,
)
from kb.conversation.speech import in_a_row, named_cause, prose, quote, risk_in_words
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck
from kb.soft_breaks import join_soft_breaks

_WARNS = re.compile(
    r"(?:[^.:;]|[.:](?=\S))*\b(?:destructive|lose|loses|lost|kill|kills|stops?|restart|reboot|drain|slower"
    r"|cannot be undone|deletes?|wipes?|interrupts?|affects?|only while|careful|danger)"
    r"\b[^.;]*(?:[.;]|$)"
    r"(?:[^.]*\.)?",
    re.IGNORECASE,
)
"""Sentences of a step that tell its harm, with the one behind them."""
_PRICE = re.compile(
    r"[^.]*\b(?:slower|slow|takes|minutes?|hours?|seconds?|bandwidth|memory|costs?|overhead)\b[^.]*\.",
    re.IGNORECASE,
)
"""Sentences of a step that tell its price."""
_OF_SAFETY = re.compile(
    r"\b(?:safe|safely|risk\w*|danger\w*|harm\w*|hurt\w*|affect\w*|disturb\w*|break\w*|impact\w*|kill\w*"
    r"|los[es]\w*|down\w*|interrupt\w*|slow\w*|crash\w*|restart\w*|reboot\w*|prod\w*|live|running"
    r"|side effects?|ok|okay|fine|allowed|careful|destructive|damage\w*|stop\w*|wait|worry)\b"
    r"|安全|风险|影响|危险|会不会|丢|坏|停|断|敢|放心|后果|副作用|线上|生产|重启|可以|能不能|要紧|等|卡住|没事",
    re.IGNORECASE,
)
"""Asks what something does to the job."""
_ASKS_LEAVE = re.compile(
    r"\b(?:can|could|may|should) (?:i|we) (?:just |simply |still )?"
    r"(?!run|do|try|execute|take|use|start|paste|wait|leave|have)[a-z]+"
    r"|(?:能|可以)(?:不能|直接|先|再)?(?![跑执运用等做先直再不])[\u4e00-\u9fff].{0,12}(?:吗|么|[?？])",
    re.IGNORECASE,
)
"""Asks leave for something of one's own, not about the check."""
_GRAVE = frozenset({"kill", "delete", "reboot"})
"""Harms that nothing undoes: a check that has words of the question gives no leave for them."""
_IS_NEEDED = re.compile(
    r"\b(?:need|needs|have|require|requires) (?:to|a|an)\b.{0,24}\b(?:reboot|restart|downtime)"
    r"|\b(?:reboot|restart|downtime)\w* (?:needed|required|necessary)"
    r"|(?:[改装换设升加配].{0,8}|不|^)(?:需要|要|得|用|必须).{0,4}(?:重启|停机)"
    r"|(?:需要|得|必须).{0,4}(?:重启|停机)",
    re.IGNORECASE,
)
"""Asks whether a restart belongs to the step, and not for leave to do one."""
_RESTARTS = re.compile(r"\b(?:re-?start|reboot|power.?cycle|drain)\w*", re.IGNORECASE)
_MINUTE, _HOUR = 60, 3600
"""In seconds."""


def safe(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What it does to the job, what is lost, and what to save before."""
    language = conversation.language
    harm = harm_of(acted.text)
    told = answer_of_pages(acted, conversation, knowledge)
    if told:
        is_leave = harm and not _IS_NEEDED.search(acted.text)
        general = say(f"harm-{harm}", language) if is_leave else ""
        return msgspec.structs.replace(told, text=paragraphs([general, told.text]))
    if _IS_NEEDED.search(acted.text):
        return _restart_needed(acted.text, conversation, knowledge)
    task = task_meant(acted.text, conversation, knowledge)
    named = task_named(acted.text, conversation, knowledge) if harm else None
    if harm and (named is None or (harm in _GRAVE and isinstance(named, NextCheck))):
        parts = [say(f"harm-{harm}", language), *_of_cause_shown(conversation, knowledge)]
    elif not _OF_SAFETY.search(acted.text) and not command_asked(acted.text):
        return not_understood("no-passage", conversation, knowledge)
    elif task is None:
        parts = [say("safe-nothing", language)]
    elif _ASKS_LEAVE.search(acted.text) and (remedy := [*_of_cause_shown(conversation, knowledge)]):
        parts, task = remedy, None
    elif isinstance(task, NextCheck):
        parts = list(_safe_check(task.check, language))
    else:
        parts = [_safe_step(task, language)]
    if not isinstance(task, FixStep) or not only_looks(task.step):
        parts += _to_secure(conversation, knowledge, is_check=isinstance(task, NextCheck))
    names = (name_of(task),) if task else ()
    return Answer(paragraphs(parts), shows=names, records=_record_of(task))


def _of_cause_shown(conversation: Conversation, knowledge: KnowledgeBase) -> Iterator[str]:
    """The remedy of what an output showed: it says what may go and what has to stay."""
    shown = cause_shown(conversation, knowledge)
    if shown:
        yield named_cause(*shown, "cause-shown", conversation.language)


def _restart_needed(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """When the settings of the step that is meant take effect; else the steps of the record that
    leads which name a restart, and what holds without."""
    language, incident = conversation.language, first_record(conversation)
    task = task_meant(text, conversation, knowledge)
    if isinstance(task, FixStep) and (takes := [*_taking_effect(task.step.command, language)]):
        return Answer(paragraphs(takes), shows=(name_of(task),), records=_record_of(task))
    steps = [
        FixStep(incident, number, step)
        for number, step in enumerate(incident.body.fix if incident else (), 1)
        if incident and _RESTARTS.search(f"{step.text} {step.command or ''}")
    ]
    named = [in_short(step, language) for step in steps]
    said = say("restart-named", language, steps=" ".join(named)) if named else ""
    records = (incident.id,) if incident else ()
    return Answer(paragraphs([said, say("restart-general", language)]), records=records)


def _taking_effect(command: str | None, language: Language) -> Iterator[str]:
    """When each setting that a command makes takes effect."""
    named = (option for line in (command or "").split("\n") for option in options_in(line))
    for option in dict.fromkeys(named):
        yield f"{quote(option.name)}: {say(f'option-takes-{option.takes}', language)}"


def _record_of(task: Task | None) -> tuple[str, ...]:
    return (task.incident.id,) if isinstance(task, FixStep) else ()


def _safe_check(check: Check, language: Language) -> Iterator[str]:
    header = check.header
    yield say(f"safe-{header.cost.risk}", language, what=cite_check(check, language))
    if header.caution:
        yield say("caution", language, text=in_language(header.caution, language))
    soon = [loss for loss in header.lost_by if loss is not Loss.ROTATION]
    if soon:
        losses = joined([say(f"loss-{loss}", language) for loss in soon], language)
        yield say("safe-lost", language, losses=losses)


def _safe_step(task: FixStep, language: Language) -> str:
    what = in_short(task, language)
    said = join_soft_breaks(f"{task.step.text} {task.step.why or ''}").replace("\n", " ")
    warning = " ".join(found[0].strip() for found in _WARNS.finditer(said))
    if warning:
        reason = translation(task.step.why or "", language)
        return say("safe-step-warned", language, what=what, warning=reason or warning)
    key = "safe-step-looks" if only_looks(task.step) else "safe-step-changes"
    return say(key, language, what=what)


def _to_secure(
    conversation: Conversation, knowledge: KnowledgeBase, *, is_check: bool
) -> Iterator[str]:
    """What a restart destroys, in the words of the leading playbook."""
    for match in playbooks_of(conversation, knowledge)[:1]:
        body, language = match.playbook.body, conversation.language
        if not is_check:
            yield say("safe-secure", language, what=in_a_row(body.secure, language))
        yield say("safe-wait", language, text=prose(body.safe_to_wait, language))


def wait(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """Whether it passes by itself: what the leading playbook says of waiting."""
    said = say("wait-unknown", conversation.language)
    told = _to_secure(conversation, knowledge, is_check=True)
    return Answer(paragraphs([said, *told, where_we_are(conversation, knowledge).text]))


def cost(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """How long it takes, and its price."""
    language = conversation.language
    answer = answer_of_pages(acted, conversation, knowledge)
    if answer:
        return answer
    task = task_meant(acted.text, conversation, knowledge)
    if task is None:
        return Answer(say("cost-nothing", language))
    if isinstance(task, NextCheck):
        header = task.check.header
        text = say(
            "cost-check",
            language,
            what=in_short(task, language),
            time=duration(header.cost.seconds, language),
            risk=risk_in_words(header, language),
        )
        return Answer(text, shows=(name_of(task),))
    key = "cost-step-looks" if only_looks(task.step) else "cost-step-changes"
    parts = [say(key, language, what=in_short(task, language))]
    price = _PRICE.search(join_soft_breaks(task.step.why or ""))
    if price:
        reason = translation(task.step.why or "", language)
        parts.append(say("cost-price", language, text=reason or price[0].strip()))
    return Answer(sentences(parts), shows=(name_of(task),), records=_record_of(task))


def duration(seconds: int, language: Language) -> str:
    """A duration as people say it."""
    if seconds < _MINUTE:
        return say("seconds", language, number=seconds)
    if seconds < _HOUR:
        return say("minutes", language, number=round(seconds / _MINUTE))
    return say("hours", language, number=round(seconds / _HOUR))
