"""Which it is most likely, and who else has seen it."""

from __future__ import annotations

from kb.conversation.acts import Acted
from kb.conversation.language import Language, in_language, say
from kb.conversation.next_step import cause_shown, name_of, playbooks_of, symptom_of, task_of
from kb.conversation.replies.answer import Answer, described_task, paragraphs, sentences
from kb.conversation.replies.meant import first_record, record_meant
from kb.conversation.speech import (
    cause_and_sign,
    cite,
    first_sentence,
    named_cause,
    prose,
    quote_with_location,
)
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import PlaybookMatch, likeliest_causes
from kb.incident import Certainty, Incident
from kb.playbook import Cause, Share
from kb.verdict import FITS_AT, percent

_MAX_LINKS = 3
"""Reports that are named; more nobody opens at night."""
_MAX_ALTERNATIVES = 3
"""Other candidates that are named at once."""
_ORDER = tuple(Share)
"""From often to rare."""


def most_likely(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """One cause, its evidence, and what to do first."""
    language = conversation.language
    symptom = symptom_of(conversation, knowledge)
    incident = first_record(conversation)
    task = task_of(conversation, knowledge)
    if incident and not symptom:
        match = conversation.matches[0]
        record = cite(incident, language)
        parts = [say("bet", language, share=percent(match.confidence), record=record)]
        lines = tuple(reason.line for reason in match.why[:1])
        if lines:
            parts.append(say("evidence", language, lines=quote_with_location(lines[0])))
        parts.append(say("cause", language, text=first_sentence(incident.body.cause, language)))
    elif symptom:
        shown = cause_shown(conversation, knowledge)
        bet = named_cause(*shown, "cause-shown", language) if shown else ""
        parts, lines = [bet or _bet_on_cause(symptom, language)], ()
    else:
        return Answer(say("bet-nothing", language))
    text = paragraphs([sentences(parts), described_task(task, language) if task else ""])
    known = (incident.id,) if incident else ()
    return Answer(text, lines, (name_of(task),) if task else (), known)


def _bet_on_cause(symptom: PlaybookMatch, language: Language) -> str:
    playbook = symptom.playbook
    cause = min(playbook.body.causes, key=lambda one: _ORDER.index(one.share))
    return say(
        "bet-symptom",
        language,
        title=in_language(playbook.title, language),
        id=playbook.id,
        cause=prose(cause.cause, language),
        tell=in_language(cause.tell, language).rstrip(".。"),
    )


def others(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """The reports of a record, and the version with the fix."""
    language = conversation.language
    named = record_meant(acted.text, conversation, knowledge)
    symptom = None if named else symptom_of(conversation, knowledge)
    incident = named or (None if symptom else first_record(conversation))
    if incident:
        return Answer(_seen_by_others(incident, language), records=(incident.id,))
    for match in [symptom] if symptom else playbooks_of(conversation, knowledge)[:1]:
        playbook = match.playbook
        links = " ".join(playbook.header.references[:_MAX_LINKS])
        title = in_language(playbook.title, language)
        text = say("others-symptom", language, title=title, id=playbook.id, links=links)
        return Answer(text)
    return Answer(say("others-none", language))


def _seen_by_others(incident: Incident, language: Language) -> str:
    header = incident.header
    confirmed = header.confidence is Certainty.CONFIRMED
    fixed = (
        say("others-fixed", language, version="; ".join(map(str, header.fixed_in)))
        if header.fixed_in
        else say("others-not-fixed", language)
    )
    return paragraphs(
        [
            say("others-seen", language, record=cite(incident, language)),
            say("others-links", language, links=" ".join(header.references[:_MAX_LINKS])),
            sentences(
                [say("others-confirmed" if confirmed else "others-documented", language), fixed]
            ),
        ]
    )


def alternatives(conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What else it can be: the records behind the first that fit, and the causes of the symptom;
    where there is no symptom, all records behind the first."""
    language = conversation.language
    symptom = symptom_of(conversation, knowledge)
    books = [symptom] if symptom else playbooks_of(conversation, knowledge)[:1]
    causes = [
        cause_and_sign(one, language) for book in books for one in causes_by_now(book, conversation)
    ]
    records = [
        f"{cite(match.incident, language)} ({percent(match.confidence)})"
        for match in conversation.matches[0 if symptom else 1 :]
        if match.confidence >= FITS_AT or not causes
    ]
    named = [*records, *causes][:_MAX_ALTERNATIVES]
    if not named:
        return Answer(say("no-alternatives", language))
    return Answer(say("note-others", language, others="; ".join(named)))


def causes_by_now(symptom: PlaybookMatch, conversation: Conversation) -> list[Cause]:
    """The causes of a symptom after all that was said, likeliest first."""
    return likeliest_causes(symptom.playbook, conversation.matches, conversation.readings)
