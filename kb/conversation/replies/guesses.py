"""Whether it is the part, or the place, that somebody suspects, and whose business it is."""

from __future__ import annotations

import re

from kb.check import Check
from kb.conversation.acts import Acted
from kb.conversation.language import Language, say
from kb.conversation.next_step import cause_shown, playbooks_of, symptom_of
from kb.conversation.replies.answer import Answer, cite_check, paragraphs, sentences, what_leads
from kb.conversation.replies.meant import first_record, place_of, record_meant
from kb.conversation.speech import (
    cite,
    fenced_command,
    first_sentence,
    named_cause,
    prose,
    quote_with_location,
)
from kb.conversation.state import Conversation, ReplyAct, Speaker
from kb.conversation.suspects import Suspect, suspect_named, suspects_in
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import PlaybookMatch
from kb.playbook import Cause
from kb.verdict import Verdict, percent

_PLACE = re.compile(
    r"(?P<kind>rank|gpu|card|node|host|pod|worker)?[ -]?#?(?P<name>[a-z]*\d[\w-]*)", re.IGNORECASE
)
_THAT = re.compile(r"\b(?:that|this)\b|这个|它|那个", re.IGNORECASE)
_MAX_LINES_QUOTED = 2


def guess(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """What speaks for the part that is suspected: the record that leads, an output that was pasted,
    a cause of the symptom; else that nothing does, and what would tell. None where no part is
    named, or a record is."""
    suspect = suspect_named(acted.text) or _told_last(acted, conversation)
    if suspect is None or record_meant(acted.text, conversation, knowledge):
        return None
    said = (
        _leads(suspect, conversation, knowledge)
        or _shown(suspect, conversation, knowledge)
        or _possible(suspect, conversation, knowledge)
    )
    return said or _open(suspect, conversation, knowledge)


def _told_last(acted: Acted, conversation: Conversation) -> Suspect | None:
    """The part that the message before named, where this one only says "that"."""
    said = [turn.text for turn in conversation.turns if turn.speaker is Speaker.USER]
    return suspect_named(said[-2]) if len(said) > 1 and _THAT.search(acted.text) else None


def _leads(suspect: Suspect, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """Where the title of the record that leads names the part: it is that, where it names nothing
    more often, or only belongs to it."""
    incident = first_record(conversation)
    if incident is None or symptom_of(conversation, knowledge) or not suspect.is_in(incident.title):
        return None
    language, match = conversation.language, conversation.matches[0]
    is_it = suspects_in(incident.title)[0] is suspect
    key = "guess-part"
    if is_it:
        key = "guess-is" if conversation.verdict is Verdict.MATCH else "guess-leads"
    record, share = cite(incident, language), percent(match.confidence)
    lines = tuple(why.line for why in match.why[:1])
    parts = [
        say(key, language, record=record, share=share, what=suspect.name(language)),
        say("cause", language, text=first_sentence(incident.body.cause, language)),
        *(say("evidence", language, lines=quote_with_location(line)) for line in lines),
    ]
    return Answer(sentences(parts), lines, records=(incident.id,), act=ReplyAct.EXPLAIN)


def _shown(suspect: Suspect, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    found = cause_shown(conversation, knowledge)
    if found is None or not suspect.is_in(found[1].cause):
        return None
    text = named_cause(*found, "cause-shown", conversation.language)
    return Answer(text, act=ReplyAct.EXPLAIN)


def _possible(
    suspect: Suspect, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer | None:
    for match in playbooks_of(conversation, knowledge)[:1]:
        for cause in match.playbook.body.causes:
            if suspect.is_in(cause.cause):
                return _of_cause(suspect, match, cause, conversation, knowledge)
    return None


def _of_cause(
    suspect: Suspect,
    match: PlaybookMatch,
    cause: Cause,
    conversation: Conversation,
    knowledge: KnowledgeBase,
) -> Answer:
    language = conversation.language
    said = say(
        "guess-possible",
        language,
        what=suspect.name(language),
        cause=prose(cause.cause, language).rstrip(".。"),
        id=match.playbook.id,
        share=say(f"share-{cause.share}", language),
    )
    tell = say("cause-tell", language, tell=prose(cause.tell, language).rstrip(".。"))
    parts = [sentences([said, tell]), what_leads(conversation, knowledge)]
    return _with_check(suspect, parts, conversation, knowledge)


def _open(suspect: Suspect, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    language = conversation.language
    said = say("guess-open", language, what=suspect.name(language))
    parts = [said, what_leads(conversation, knowledge)]
    if conversation.verdict is Verdict.MATCH:  # what is known comes before what is suspected
        return Answer(paragraphs(parts), act=ReplyAct.EXPLAIN)
    return _with_check(suspect, parts, conversation, knowledge)


def _with_check(
    suspect: Suspect, parts: list[str], conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    """With what to look at, unless its output was read."""
    check = knowledge.guides.by_id.get(suspect.check)
    if not isinstance(check, Check) or check.id in conversation.checks | conversation.set_aside:
        return Answer(paragraphs(parts), act=ReplyAct.EXPLAIN)
    language = conversation.language
    command = check.command(place_of("", conversation))
    parts += [
        say("guess-tells", language, check=cite_check(check, language)),
        fenced_command(command),
    ]
    return Answer(paragraphs(parts), shows=(check.id,), act=ReplyAct.EXPLAIN)


def place(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """What the log and the user said of a rank, GPU or host that is suspected."""
    found = next((one for one in _PLACE.finditer(acted.text) if one["name"]), None)
    if found is None:
        return None
    language, name = conversation.language, found[0].strip()
    pattern = re.compile(_written(found["kind"] or "", found["name"]), re.IGNORECASE)
    lines = [line for line in conversation.diagnosis.evidence.lines if pattern.search(line.text)][
        :_MAX_LINES_QUOTED
    ]
    told = [
        turn.text
        for turn in conversation.turns[:-1]
        if turn.speaker is Speaker.USER and pattern.search(turn.text)
    ]
    if lines:
        quoted = "; ".join(map(quote_with_location, lines))
        said = say("place-named", language, what=name, lines=quoted)
    else:
        said = say("place-told" if told else "place-none", language, what=name)
    parts = [said, what_leads(conversation, knowledge), say("place-tell", language, what=name)]
    return Answer(paragraphs(parts), tuple(lines), act=ReplyAct.EXPLAIN)


def _written(kind: str, name: str) -> str:
    """A pattern for the ways to write a place: "rank 3", "rank3", "[rank3]", "node17"."""
    own = rf"(?<![\w.]){re.escape(name)}(?![\w.]*\d)"
    return rf"\b{kind}[ =:#_-]?{re.escape(name)}(?!\d)" if name.isdecimal() and kind else own


def whom(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """Whose business the likeliest cause is; the note to hand over is offered."""
    language = conversation.language
    owner = _owner(conversation, knowledge)
    leads = what_leads(conversation, knowledge)
    said = say(f"whom-{owner}", language) if owner else say("whom-unknown", language)
    return Answer(paragraphs([said, leads, say("whom-note", language)]))


def _owner(conversation: Conversation, knowledge: KnowledgeBase) -> str:
    """Of the part that the cause in the lead is about; empty where none leads."""
    shown_cause = cause_shown(conversation, knowledge)
    incident = first_record(conversation)
    if shown_cause:
        text = shown_cause[1].cause
    elif incident and not symptom_of(conversation, knowledge):
        text = f"{incident.title} {first_sentence(incident.body.cause, Language.ENGLISH)}"
    else:
        return ""
    return next((one.owner for one in suspects_in(text)), "")
