"""Why, and why not: the evidence for a record, what is missing, and what contradicts it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kb.conversation.acts import Acted
from kb.conversation.commands import to_command
from kb.conversation.done_steps import only_looks
from kb.conversation.language import Language, in_language, say
from kb.conversation.naming import position_of, record_by_name
from kb.conversation.next_step import cause_shown, check_to_run, name_of, open_steps, symptom_of
from kb.conversation.passages import passage_about
from kb.conversation.phrases import act_by_phrase
from kb.conversation.replies.answer import (
    Answer,
    in_short,
    near_question,
    paragraphs,
    sentences,
    what_leads,
    with_leader,
    with_passage,
)
from kb.conversation.replies.meant import (
    cause_like,
    check_about,
    first_record,
    record_meant,
    task_shown,
)
from kb.conversation.search import likeliest_by_words
from kb.conversation.speech import (
    beginning,
    cite,
    describe_step,
    first_sentence,
    named_cause,
    often_behind,
    prose,
    quote,
    quote_with_location,
)
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase
from kb.corpus.document import declared_pattern
from kb.diagnosis import Match, NextCheck, PlaybookMatch
from kb.evidence import EvidenceLine
from kb.incident import Incident, Signature, Strength
from kb.playbook import Cause
from kb.verdict import percent

_MAX_PATTERNS_NAMED = 3
"""Missing signatures that are quoted, strong ones first; the others are counted."""
_MAX_LIKELIHOOD_RATIO = 0.5
"""Ratio of likelihoods: a statement contradicts a record that fits it less than half as well as
the others."""
_OF_TASK = re.compile(
    r"\b(?:check|step|run|command|need|do (?:that|this|it))\b|检查|这一步|这步|跑|命令",
    re.IGNORECASE,
)
_OF_BELIEF = re.compile(
    r"\b(?:you|think|say|sure|believe|suspect|likely|candidate|record|first|top"
    r"|that one|this one)\b"
    r"|你|觉得|认为|怀疑|判断|排第|候选|记录",
    re.IGNORECASE,
)
"""Asks why it is believed, not why it happens."""
_INSTEAD = re.compile(
    r"\bwhy\b.{2,40}?\b(?:and not|rather than|instead of|over)\s(?P<other>.{2,60})"
    r"|为(?:什么|啥|何)是?[^，。]{1,20}?[，,]?(?:而不是|而非|不是)(?P<other_zh>[^，。？?]{1,30})",
    re.IGNORECASE,
)
"""Why this and not that."""
_GUESS = re.compile(
    r"\b(?:why|not|isn'?t|could|can|would|might|may|it|be|is|the|a|an|instead|what|about|rather"
    r"|maybe|perhaps|or|and|problem|issue|fault|bug|simply|just|really|related|caused|by|due|to"
    r"|do|does|don'?t|you|think|are|sure|rule|ruled|out|we|i|how|come|have|has|something|with)\b"
    r"|为什么|为啥|怎么|难道|会不会|有没有可能|可能|不会|不是|是不是|是|吗|呢|吧|问题|的|啊|而",
    re.IGNORECASE,
)
"""What stands around the guess in "could it be X instead?"."""


def why(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What speaks for the record, or for the check that was asked for."""
    language = conversation.language
    task = task_shown(conversation, knowledge)
    if isinstance(task, NextCheck) and _OF_TASK.search(acted.text):
        header = task.check.header
        apart = (in_language(text, language) for text in header.tells_apart)
        reason = sentences([prose(task.why, language), *apart])
        return Answer(say("check-because", language, id=task.check.id, why=reason))
    named = record_meant(acted.text, conversation, knowledge)
    if named is None and _names_unknown(acted):
        return _no_record(acted, language)
    is_of_belief = named or _OF_BELIEF.search(acted.text)
    passage = None if is_of_belief else passage_about(acted.text, conversation, knowledge)
    if passage:
        return with_passage(passage, "", conversation, knowledge)
    near = None if is_of_belief else near_question(acted.text, conversation, knowledge)
    if near:
        return near
    symptom = symptom_of(conversation, knowledge)
    incident = named or (None if symptom else first_record(conversation))
    if incident:
        return _why_record(incident, conversation)
    if symptom:
        return _why_symptom(symptom, conversation, knowledge)
    return Answer(say("no-candidate", language))


def why_not(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What speaks for the record, what is missing, what contradicts it, what would bring it up;
    before it, of "why this and not that", why this."""
    incident = first_record(conversation)
    compared = _INSTEAD.search(acted.text)
    if not compared or not incident:
        return _why_not_it(acted, conversation, knowledge)
    cause = first_sentence(incident.body.cause, conversation.language)
    instead = Acted(acted.act, compared["other"] or compared["other_zh"])
    answer = _why_not_it(instead, conversation, knowledge)
    why_this = say("cause", conversation.language, text=cause)
    return msgspec.structs.replace(answer, text=paragraphs([why_this, answer.text]))


def _why_not_it(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    language = conversation.language
    incident = record_meant(acted.text, conversation, knowledge)
    if incident:
        return _why_not_record(incident, conversation, knowledge)
    command = to_command(acted.text)
    guess = (command and command.name) or _GUESS.sub(" ", acted.text).strip(" ?？!！.。,，")
    if not guess.strip():
        return Answer(say("why-not-what", language))
    if position_of(guess):
        return Answer(say("no-such-position", language, count=len(conversation.matches)))
    passage = passage_about(acted.text, conversation, knowledge)
    if passage:
        return with_passage(passage, "", conversation, knowledge)
    if act_by_phrase(acted.text) == acted.act:
        said = say("would-not-help", language)
        return with_leader(sentences([said, *_advised(conversation)]), conversation, knowledge)
    cause = cause_like(guess, conversation, knowledge)
    if cause:
        return _about_cause(*cause, conversation, knowledge)
    incident = record_by_name(guess, conversation, knowledge) or _guessed(
        guess, conversation, knowledge
    )
    if incident is None:
        named = command is not None and bool(command.name)
        said = say("no-record", language, name=quote(guess)) if named else ""
        return with_leader(said or say("nothing-speaks", language), conversation, knowledge)
    return _why_not_record(incident, conversation, knowledge)


def _guessed(guess: str, conversation: Conversation, knowledge: KnowledgeBase) -> Incident | None:
    """The record that the words of a guess name, if it is a candidate: one that is none was brought
    up by chance."""
    named = likeliest_by_words(guess, knowledge, frozenset(conversation.pool))
    return named if named and named.id in conversation.pool else None


def _advised(conversation: Conversation) -> Iterator[str]:
    """What the record that leads advises: its next step that changes something."""
    incident = first_record(conversation)
    steps = open_steps(incident, conversation) if incident else ()
    for step in [one for one in steps if not only_looks(one.step)][:1]:
        language = conversation.language
        yield say("advised", language, what=in_short(step, language))


def prove(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """How to be sure of the record that leads without a change: its next step that only looks, and
    the signs that the log does not show yet. None where a symptom leads, whose check tells, and
    where something else is to be made sure of."""
    incident = first_record(conversation)
    is_named = check_about(acted.text, conversation, knowledge)
    if incident is None or is_named or symptom_of(conversation, knowledge):
        return None
    language = conversation.language
    looks = (one for one in open_steps(incident, conversation) if only_looks(one.step))
    step = next(looks, None)
    signs = [quote(sign.pattern) for sign in _absent(incident, conversation)[:_MAX_PATTERNS_NAMED]]
    parts = [
        say("prove", language, record=cite(incident, language)),
        describe_step(incident.id, step.number, step.step, language) if step else "",
        say("prove-signs", language, patterns=", ".join(signs)) if signs else "",
        *_would_tell(incident, conversation),
        say("prove-spare", language),
    ]
    shows = (name_of(step),) if step else ()
    return Answer(paragraphs(parts), shows=shows, records=(incident.id,))


def _names_unknown(acted: Acted) -> bool:
    """Whether it is the fixed phrase with a name, which then stands for no record."""
    command = to_command(acted.text)
    return command is not None and bool(command.name)


def _no_record(acted: Acted, language: Language) -> Answer:
    command = to_command(acted.text)
    return Answer(say("no-record", language, name=quote(command.name if command else acted.text)))


def _why_record(incident: Incident, conversation: Conversation) -> Answer:
    language = conversation.language
    match = conversation.pool.get(incident.id)
    parts = [_standing(incident, conversation), _speaks_for(match, language)]
    parts.append(say("cause", language, text=first_sentence(incident.body.cause, language)))
    for words in _about(incident, conversation, speaks_for=True):
        parts.append(say("supports", language, words=words))
    if incident.header.caution:
        parts.append(say("caution", language, text=in_language(incident.header.caution, language)))
    return Answer(sentences(parts), lines=_lines(match), records=(incident.id,))


def _why_symptom(
    symptom: PlaybookMatch, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    language, playbook = conversation.language, symptom.playbook
    share = percent(symptom.share)
    title = in_language(playbook.title, language)
    parts = [say("why-symptom", language, title=title, id=playbook.id, share=share)]
    lines = conversation.diagnosis.evidence.lines[:1]
    if lines:
        parts.append(say("evidence", language, lines=quote_with_location(lines[0])))
    parts += [
        say("pasted", language, text=" ".join(statement.says))
        for statement in conversation.statements
        if statement.checks
    ]
    shown = cause_shown(conversation, knowledge)
    if shown:
        tell = in_language(shown[1].tell, language).rstrip(".。")
        parts.append(named_cause(*shown, "cause-shown", language))
        parts.append(say("cause-tell", language, tell=tell))
    else:
        parts += often_behind(playbook, language)
    check = check_to_run(conversation, knowledge)
    if check:
        reason = prose(check.why, language)
        parts.append(say("check-because", language, id=check.check.id, why=reason))
    return Answer(sentences(parts), lines=lines)


def _why_not_record(
    incident: Incident, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    language = conversation.language
    match = conversation.pool.get(incident.id)
    parts = [_standing(incident, conversation), _speaks_for(match, language)]
    parts += _missing(incident, conversation)
    parts += (
        say("contradicts", language, words=words)
        for words in _about(incident, conversation, speaks_for=False)
    )
    parts += _would_tell(incident, conversation)
    if incident is not first_record(conversation):
        parts.append(what_leads(conversation, knowledge))
    return Answer(sentences(parts), lines=_lines(match), records=(incident.id,))


def _about_cause(
    match: PlaybookMatch, cause: Cause, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    language, playbook = conversation.language, match.playbook
    parts = [
        say(
            "cause-of",
            language,
            cause=prose(cause.cause, language).rstrip(".。"),
            title=in_language(playbook.title, language),
            id=playbook.id,
            share=say(f"share-{cause.share}", language),
        ),
        say("cause-tell", language, tell=in_language(cause.tell, language).rstrip(".。")),
        say("nothing-speaks", language),
    ]
    check = check_to_run(conversation, knowledge)
    if check:
        reason = prose(check.why, language)
        parts.append(say("check-because", language, id=check.check.id, why=reason))
    return Answer(sentences(parts))


def _standing(incident: Incident, conversation: Conversation) -> str:
    language = conversation.language
    record = cite(incident, language)
    for number, match in enumerate(conversation.matches, 1):
        if match.incident.id == incident.id:
            share = percent(match.confidence)
            return say("standing", language, record=record, number=number, share=share)
    return say("not-standing", language, record=record)


def _speaks_for(match: Match | None, language: Language) -> str:
    lines = _lines(match)
    if not lines:
        return say("no-line", language)
    return say("evidence", language, lines="; ".join(map(quote_with_location, lines[:2])))


def _lines(match: Match | None) -> tuple[EvidenceLine, ...]:
    return tuple(reason.line for reason in match.why) if match else ()


def _missing(incident: Incident, conversation: Conversation) -> Iterator[str]:
    """Its signatures that the log does not have, the strong ones before the weak."""
    absent = _absent(incident, conversation)
    if absent:
        yield say(
            "missing",
            conversation.language,
            count=len(absent),
            total=len(incident.header.signatures),
            patterns=", ".join(quote(sign.pattern) for sign in absent[:_MAX_PATTERNS_NAMED]),
        )


def _absent(incident: Incident, conversation: Conversation) -> list[Signature]:
    seen = {hit.pattern for hit in conversation.diagnosis.evidence.hits}
    absent = [sign for sign in incident.header.signatures if declared_pattern(sign) not in seen]
    return sorted(absent, key=lambda sign: sign.strength is not Strength.STRONG)


def _about(incident: Incident, conversation: Conversation, *, speaks_for: bool) -> Iterator[str]:
    """Statements that fit the record clearly better, or clearly worse, than other records."""
    for statement in conversation.statements:
        fits = statement.factors.get(incident.id, statement.otherwise)
        if speaks_for and statement.otherwise < fits * _MAX_LIKELIHOOD_RATIO:
            yield _words(beginning(statement.text), statement.question)
        if not speaks_for and fits < statement.otherwise * _MAX_LIKELIHOOD_RATIO:
            yield _words(beginning(statement.text), statement.question)


def _words(text: str, question: str | None) -> str:
    return f"“{text}” to “{question}”" if question else f"“{text}”"


def _would_tell(incident: Incident, conversation: Conversation) -> Iterator[str]:
    """The observation in either record that tells it apart from the first one."""
    first = first_record(conversation) or incident
    for owner, other in ((incident, first), (first, incident)):
        for item in owner.body.distinguish:
            if item.other == other.id:
                question = prose(item.question, conversation.language)
                yield say(
                    "tells-apart",
                    conversation.language,
                    first=first.id,
                    question=question,
                    owner=owner.id,
                )
                return
