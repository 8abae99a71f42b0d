"""What the leading pages, and those of the checks that were read, say about a message: the step or
the sentences that have most of its telling words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

import msgspec

from index.tokens import tokenize
from kb.check import Check
from kb.conversation.act_model import in_english
from kb.conversation.next_step import playbooks_of
from kb.conversation.search import guides_near
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase
from kb.corpus.guide_shelf import GuideShelf
from kb.incident import Incident, Step
from kb.playbook import Playbook
from kb.soft_breaks import join_soft_breaks

_MAX_RECORDS_READ = 2
"""Likeliest records that are read; a passage of a farther one is about something else."""
_MIN_SHARE = 0.1
"""Of a record that is read, from 0 to 1; a less likely one is about something else."""
_LEAST_RARITY = 0.25
"""A word that is in more records says nothing, from 0 to 1."""
_MAX_CHARACTERS_READ = 4_000
"""Of a message, its beginning: two screens of a terminal."""
_MAX_WORDS = 60
"""Of a message; of a longer paste the rarest."""
ENOUGH = 0.8
"""Least sum of the rarities of the shared words."""
MUCH = 1.3
"""The same for a page that does not lead."""
_LONG = 500
"""Words of a passage that halve what each shared one counts."""
_MAX_CHARACTERS = 450
"""Of a paragraph that is shown whole; of a longer one two sentences are."""
_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


class Passage(msgspec.Struct, frozen=True):
    """A step, or some sentences, of a page."""

    text: str
    page: str
    """The id of the incident, playbook or check."""
    number: int = 0
    """Of the step, from 1; 0 where it is none."""
    step: Step | None = None
    texts: tuple[str, ...] = ()
    """Those of the page that it is of, whole."""


def passage_about(
    text: str, conversation: Conversation, knowledge: KnowledgeBase, enough: float = ENOUGH
) -> Passage | None:
    """The passage of the leading pages with most telling words of a text, a short one before a
    long one; of a question that says too little, with those of the message that it stands in. None
    where none has enough of them."""
    for part in dict.fromkeys((text, _message_with(text, conversation))):
        words = _telling(part, knowledge)
        if sum(words.values()) < enough:
            continue  # no passage can share more; most answers to a question end here
        found = _best(words, _passages(conversation, knowledge), enough)
        if found:
            return found
    return None


def _message_with(text: str, conversation: Conversation) -> str:
    """The last message of the user, where a text is a part of it in words; else the text."""
    message = conversation.message_with(text)
    return message if message and "\n" not in message else text


def passage_elsewhere(text: str, knowledge: KnowledgeBase) -> Passage | None:
    """The same of the playbooks and checks that are nearest to a text, whatever leads; it has to
    have more of its words."""
    words = _telling(text, knowledge)
    if sum(words.values()) < MUCH:
        return None
    guides = (knowledge.guides.by_id[name] for name in guides_near(text, knowledge))
    return _best(words, (one for guide in guides for one in _of_guide(guide, knowledge)), MUCH)


def _best(words: dict[str, float], found: Iterable[Passage], enough: float) -> Passage | None:
    passages = list(dict.fromkeys(found))
    scores = [_score(words, _words_of(passage.text)) for passage in passages]
    best = max(range(len(passages)), key=scores.__getitem__, default=None)
    return passages[best] if best is not None and scores[best] >= enough else None


@lru_cache(maxsize=2_000)
def _words_of(passage: str) -> frozenset[str]:
    """Of the passages of some ten cases: each turn asks for the same ones."""
    return frozenset(tokenize(passage))


def _score(words: dict[str, float], held: frozenset[str]) -> float:
    return sum(words[word] for word in words.keys() & held) / (1 + len(held) / _LONG)


def _telling(text: str, knowledge: KnowledgeBase) -> dict[str, float]:
    """The words of a text that few records have, and how rare they are."""
    said = knowledge.rarities(frozenset(tokenize(in_english(text[:_MAX_CHARACTERS_READ]))))
    telling = {word: share for word, share in said.items() if share >= _LEAST_RARITY}
    return dict(sorted(telling.items(), key=lambda pair: -pair[1])[:_MAX_WORDS])


def _passages(conversation: Conversation, knowledge: KnowledgeBase) -> Iterator[Passage]:
    for match in conversation.matches[:_MAX_RECORDS_READ]:
        if match.confidence >= _MIN_SHARE:
            yield from _of_incident(match.incident)
    for found in playbooks_of(conversation, knowledge)[:1]:
        yield from _of_playbook(found.playbook, knowledge.guides)
    for name in sorted(conversation.checks):
        guide = knowledge.guides.by_id.get(name)
        if isinstance(guide, Check):
            yield from _of_check(guide)


def _of_guide(guide: Playbook | Check, knowledge: KnowledgeBase) -> Iterator[Passage]:
    if isinstance(guide, Check):
        yield from _of_check(guide)
    else:
        yield from _of_playbook(guide, knowledge.guides)


def _of_incident(incident: Incident) -> Iterator[Passage]:
    for number, step in enumerate(incident.body.fix, 1):
        yield Passage(
            f"{step.text} {step.why or ''} {step.command or ''}", incident.id, number, step
        )
    body = incident.body
    texts = [incident.header.caution, body.cause, body.verify, body.prevention, body.setting]
    yield from _from(filter(None, texts), incident.id)


def _of_playbook(playbook: Playbook, guides: GuideShelf) -> Iterator[Passage]:
    body = playbook.body
    for one in body.causes:
        text = f"{one.cause} {one.tell}. {one.remedy}."
        yield from _from_texts(text, (one.cause, one.tell, one.remedy), playbook.id)
    for way in body.tonight:
        text = f"{way.do}: {way.cost}; {way.risk}."
        yield from _from_texts(text, (way.do, way.cost, way.risk), playbook.id)
    yield from _from([body.safe_to_wait], playbook.id)
    for step in body.checks:
        check = guides.by_id.get(step.check)
        if isinstance(check, Check):
            yield from _of_check(check)


def _of_check(check: Check) -> Iterator[Passage]:
    body = check.body
    for one in body.findings:
        texts = tuple(filter(None, (one.means, one.suggests, one.then)))
        text = " ".join(f"{part.rstrip('.')}." for part in texts)
        yield from _from_texts(text, texts, check.id)
    limits = (*body.cannot_see, *body.false_pass, *body.false_fail)
    yield from _from((limit.text for limit in limits), check.id)


def _from(texts: Iterable[str], page: str) -> Iterator[Passage]:
    for text in texts:
        yield from _from_texts(text, (text,), page)


def _from_texts(joined: str, texts: tuple[str, ...], page: str) -> Iterator[Passage]:
    for paragraph in _PARAGRAPH.split(join_soft_breaks(joined).strip()):
        for part in _parts(paragraph):
            yield Passage(part, page, texts=texts)


def _parts(paragraph: str) -> Iterator[str]:
    """A short paragraph whole; of a longer one each sentence with the one behind it."""
    sentences = _SENTENCE.split(paragraph)
    if len(paragraph) <= _MAX_CHARACTERS or len(sentences) < 2:
        yield paragraph
        return
    for first, second in pairwise(sentences):
        yield f"{first} {second}"
