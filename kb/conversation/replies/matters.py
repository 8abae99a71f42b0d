"""Whether a line is noise or matters, as far as records and checks know it."""

from __future__ import annotations

from collections.abc import Iterator

from kb.conversation.acts import Acted
from kb.conversation.language import Language, say
from kb.conversation.replies.answer import Answer, what_leads
from kb.conversation.speech import cite, first_sentence, observed
from kb.conversation.state import Conversation, Speaker
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import By, Diagnosis, diagnose
from kb.incident import Incident, Kind
from kb.log import Log

_NOTES = {Kind.HARMLESS: "matters-noise", Kind.CASCADE: "matters-follows"}


def matters(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What is known of the line that the message holds, else of what was pasted last, else of the
    case."""
    language = conversation.language
    messages = [turn.text for turn in conversation.turns if turn.speaker is Speaker.USER]
    told = [one.text for one in conversation.statements[-1:]]
    for text in filter(None, dict.fromkeys([*messages[-1:], *told])):
        known = list(_known(diagnose(Log.from_text(text), knowledge), language))
        if known:
            return Answer("\n".join(known))
    known = list(_known(conversation.diagnosis, language))
    leads = what_leads(conversation, knowledge)
    return Answer("\n".join(known or [say("matters-unknown", language), leads or ""]).strip())


def _known(diagnosis: Diagnosis, language: Language) -> Iterator[str]:
    """What a record says of it by a signature, and what a check reads in it."""
    for note in diagnosis.notes:
        yield _told(_NOTES[note.incident.kind], note.incident, language)
    for match in diagnosis.matches[:1]:
        if any(why.by is By.SIGNATURE for why in match.why):
            yield _told("matters-record", match.incident, language)
    for one in diagnosis.observations[:1]:
        yield " ".join(observed(one, language))


def _told(key: str, incident: Incident, language: Language) -> str:
    cause = first_sentence(incident.body.cause, language)
    return say(key, language, record=cite(incident, language), cause=cause)
