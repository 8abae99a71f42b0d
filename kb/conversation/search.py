"""Sentences and lines that no rule takes: searched together with the log, and ranked again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from index.tokens import tokenize
from kb.conversation.language import say
from kb.conversation.speech import quote
from kb.conversation.state import Conversation, Statement
from kb.corpus.base import KnowledgeBase
from kb.corpus.tier import TierName
from kb.diagnosis import Match, causes_of_lines, playbooks_for, to_query, weigh
from kb.evidence import Evidence, collect, join
from kb.evidence.glossary import translate
from kb.evidence.nature import is_human_written
from kb.incident import Incident
from kb.log import Block
from kb.verdict import FITS_AT, SYMPTOM_AT

STATEMENT_FILE = "(you)"
"""Stands where a line of a log has the name of its file."""

_MIN_CONFIDENCE = 0.001
"""Confidence of a record without support, from 0 to 1; above 0, because ratios divide by it."""
_MIN_CONFIDENCE_OF_TEXT = 0.02
"""Minimum confidence that the best record must reach for the text alone, from 0 to 1; below it, the
text is not understood."""
_MIN_CONFIDENCE_BY_WORDS = 0.10
"""Of a record that the words of a remark name, from 0 to 1; below it they were shared by chance."""
_MIN_CONFIDENCE_OF_REMARK = 0.04
"""The same where nobody may have meant the text as a statement, and it names a candidate."""
_MIN_RARITY = 0.7
"""Least sum of the rarities, each from 0 to 1, of the words that a text shares with a record which
gains by it."""
_MIN_CONFIDENCE_AGAINST = 0.50
"""Of the record that gains by a text, so that the text lowers the others."""
_MIN_FACTOR = 0.25
"""Minimum factor: a sentence without shared words does not rule a record out."""
_TEXT_ALONE_WEIGHT = 0.5
"""Weight of the result for the text alone: half, because the log may be about something else."""
_ODD = re.compile(
    r"(?<![\w.:/-])-\d+(?:\.\d+)? ?[KMGT]i?B\b|(?<![\w/.])0/[1-9]\d{0,3}\b|\d[KMGT]?\*(?=\s)"
    r"|(?<![\w.])100 ?%"
    r"|\b(?:disabled|inactive|failed|denied|refused|unreachable|not (?:found|ready|supported"
    r"|available|loaded|enabled)|exceeded|degraded|throttl\w*)\b",
    re.IGNORECASE,
)
"""A value that is seldom well: less than nothing, none of several, over a limit."""
_MAX_NAMES_SAID = 3
"""Names of a text that no record knows."""
_MAX_WORDS_NAMED = 5
"""Shared words named in the reason, the longest first."""
_WORD = re.compile(r"[A-Za-z0-9_][\w./:+-]*\w|[\u3400-\u9fff]+")
_IS_NAME = re.compile(r"[A-Za-z]{2}[\w.-]*[_/.:-]\w*[A-Za-z]{2}|[A-Z][A-Z0-9]{3}|[a-z][A-Z][a-z]")
"""A setting, a file, a host or a function, which is worth saying back; a word of the language is
not."""
_MAX_GUIDES = 4
"""Playbooks and checks in which a question is looked up that the leading pages do not answer."""
_MAX_RECORDS_ADDED = 10
"""Records that one statement can add to the candidates; further ones are too unlikely to be
shown."""


def symptoms_named(text: str, knowledge: KnowledgeBase) -> Statement | None:
    """The symptoms that a text names by itself, and the causes to which its lines point; None where
    it names none clearly."""
    evidence = _read(text, knowledge)
    found = playbooks_for(evidence, weigh(evidence, knowledge), knowledge)
    if not found or found[0].share < SYMPTOM_AT:
        return None
    return Statement("", symptoms=found, readings=causes_of_lines(evidence, found, knowledge))


def guides_near(text: str, knowledge: KnowledgeBase) -> list[str]:
    """The ids of the playbooks and checks nearest to a text, best first."""
    query = to_query(_read(text, knowledge))
    return [found.id for found in knowledge.search(query, TierName.GUIDES)[:_MAX_GUIDES]]


def search_statement(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Statement | None:
    """How much likelier each record is with this text than without; None where it says nothing."""
    by_text = weigh(_read(text, knowledge), knowledge)
    text_alone = _shares(by_text)
    if max(text_alone.values(), default=0.0) < _MIN_CONFIDENCE_OF_TEXT:
        return None
    log = conversation.diagnosis.evidence
    before = "\n".join(
        statement.searched_text for statement in conversation.statements if statement.searched_text
    )
    alone = _shares(weigh(log, knowledge))
    was = _shares(weigh(join(log, _read(before, knowledge)), knowledge)) if before else alone
    matches = weigh(join(log, _read(f"{text}\n{before}".strip(), knowledge)), knowledge)
    joint = _shares(matches)
    now = joint | {
        i: max(joint.get(i, 0.0), _TEXT_ALONE_WEIGHT * share) for i, share in text_alone.items()
    }
    pool = conversation.pool.keys()
    known = {
        match.incident.id: match
        for match in (*by_text, *matches)
        if match.incident.id in pool
        or now[match.incident.id] >= FITS_AT  # below it, people wonder where it comes from
    }
    rare = knowledge.rarities(frozenset(tokenize(f"{text} {translate(text)}")))
    if _speaks_for_none(rare, known, (was, now)):
        return Statement("", says=(_heard(text, rare, conversation),), searched_text=text)
    reason = _reason(text, rare, known, (was, now), conversation)
    found = sorted(known.keys() - pool, key=lambda i: (-now[i], i))
    is_against = _speaks_against(known, (was, now))
    least = _MIN_FACTOR if is_against else 1.0
    rest = max(_MIN_CONFIDENCE, 1 - sum(joint.values())) / max(
        _MIN_CONFIDENCE, 1 - sum(was.values())
    )
    return Statement(
        "",
        says=(reason,),
        factors={i: max(least, _factor(i, was, now)) for i in pool | known.keys()},
        otherwise=rest if is_against else min(rest, 1.0),
        found=tuple(
            msgspec.structs.replace(
                known[identifier], confidence=alone.get(identifier, _MIN_CONFIDENCE)
            )
            for identifier in found[:_MAX_RECORDS_ADDED]
        ),
        searched_text=text,
    )


def _heard(text: str, rare: Mapping[str, float], conversation: Conversation) -> str:
    """The line of an output that stands out, or the rarest names in a text, which brings up
    nothing; those that the leading record speaks of are its own."""
    language = conversation.language
    lines = text.strip().split("\n")
    odd = (line for line in lines if _ODD.search(line) and not is_human_written(line))
    if len(lines) > 1 and (line := next(odd, None)):
        return say("heard-line", language, line=quote(line.strip()))

    def rarity(word: str) -> float:
        return max((rare.get(token, 0.0) for token in tokenize(word)), default=0.0)

    names = [word for word in dict.fromkeys(_WORD.findall(text)) if _IS_NAME.search(word)]
    names.sort(key=rarity, reverse=True)
    if not names:
        return say("heard-words", language)
    for match in conversation.matches[:1]:
        held = _tokens_of(match.incident) | _tokens_of_steps(match.incident)
        shared = [name for name in names if held.issuperset(tokenize(name))]
        if shared:
            words = ", ".join(map(quote, shared[:_MAX_NAMES_SAID]))
            return say("mentions", language, id=match.incident.id, words=words)
    return say("heard", language, words=", ".join(map(quote, names[:_MAX_NAMES_SAID])))


def _speaks_for_none(
    rare: Mapping[str, float],
    known: Mapping[str, Match],
    shares: tuple[Mapping[str, float], Mapping[str, float]],
) -> bool:
    """Whether no record that gains is likely enough to be shown, and shares rare words: then words
    were shared by chance, and nobody loses by them."""
    was, now = shares
    gaining = [i for i in known if now[i] > was.get(i, 0.0) and now[i] >= _MIN_CONFIDENCE_BY_WORDS]
    return not any(
        sum(rare[token] for token in _shared_tokens(rare, known[i].incident)) >= _MIN_RARITY
        for i in gaining
    )


def _speaks_against(
    known: Mapping[str, Match], shares: tuple[Mapping[str, float], Mapping[str, float]]
) -> bool:
    """Whether a record gains so clearly that the text speaks against the others."""
    was, now = shares
    return any(now[i] > max(was.get(i, 0.0), _MIN_CONFIDENCE_AGAINST) for i in known)


def _shared_tokens(tokens: Iterable[str], incident: Incident) -> list[str]:
    held = _tokens_of(incident)
    return [token for token in tokens if token in held]


def likeliest_by_words(
    text: str, knowledge: KnowledgeBase, candidates: frozenset[str] = frozenset()
) -> Incident | None:
    """The record that the words alone name best; None where they name none. Less is enough for one
    of the candidates."""
    for match in weigh(_read(text, knowledge), knowledge):
        is_candidate = match.incident.id in candidates
        enough = _MIN_CONFIDENCE_OF_REMARK if is_candidate else _MIN_CONFIDENCE_BY_WORDS
        if match.confidence >= enough:
            return match.incident
    return None


def _read(text: str, knowledge: KnowledgeBase) -> Evidence:
    block = Block(STATEMENT_FILE, 1, text.count("\n") + 1, text.encode())
    return collect([block], knowledge.signatures, knowledge.markers)


def _shares(matches: Iterable[Match]) -> dict[str, float]:
    return {match.incident.id: match.confidence for match in matches}


def _factor(identifier: str, was: Mapping[str, float], now: Mapping[str, float]) -> float:
    earlier = max(_MIN_CONFIDENCE, was.get(identifier, 0.0))
    return now.get(identifier, 0.0) / earlier


def _reason(
    text: str,
    rare: Mapping[str, float],
    known: Mapping[str, Match],
    shares: tuple[Mapping[str, float], Mapping[str, float]],
    conversation: Conversation,
) -> str:
    """The words of the text that the record has that gained most; `shares` are those before it and
    with it."""
    was, now = shares
    language = conversation.language
    gainer = max(known, key=lambda i: now[i] - was.get(i, 0.0))
    if now[gainer] <= was.get(gainer, 0.0):
        return say("supports-none", language)
    if now[gainer] < FITS_AT:
        return _heard(text, rare, conversation)
    shared = sorted(_shared_words(text, known[gainer].incident), key=len, reverse=True)
    words = ", ".join(map(quote, shared[:_MAX_WORDS_NAMED]))
    if not words:
        return say("closest-in-meaning", language, id=gainer)
    return say("mentions", language, id=gainer, words=words)


def _shared_words(text: str, incident: Incident) -> list[str]:
    held = _tokens_of(incident)
    said = _WORD.findall(f"{text} {translate(text)}")
    return list(dict.fromkeys(word for word in said if held.intersection(tokenize(word))))


def _tokens_of(incident: Incident) -> set[str]:
    header, body = incident.header, incident.body
    record = " ".join(
        [header.title, *header.aliases, body.symptom, body.setting, body.cause, body.evidence_text]
    )
    return set(tokenize(record))


def _tokens_of_steps(incident: Incident) -> set[str]:
    steps = (f"{step.text} {step.command or ''} {step.why or ''}" for step in incident.body.fix)
    return set(tokenize(" ".join(steps)))
