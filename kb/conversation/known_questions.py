"""Which question of the table (`kb.answers`) a text asks: one that no step of a record answers.

A question is known by its words, each weighted by how rare it is among the rows: those that it
shares with one wording of a row, and those that the row has anywhere. One in other words is found
by its meaning as well.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from functools import cache, lru_cache
from itertools import accumulate, chain, islice, pairwise

import msgspec

from index.documents import Query
from index.tokens import STOPWORDS, fold, is_pair, tokenize
from kb.answers import KnownQuestion, known_questions
from kb.conversation.act_model import in_english
from kb.conversation.language import Language
from kb.conversation.phrases import harm_of
from kb.conversation.subject import is_question, sentences_of
from kb.conversation.terms import asked_term, compared_terms
from kb.corpus.answer_document import from_answer_payload, wordings_in_english
from kb.corpus.base import KnowledgeBase
from kb.corpus.tier import TierName
from kb.evidence.glossary import translate

SURE = 1.2
"""Likeness, from 0 to 2, from which on a question with the topic of a row is that of the row."""
WHOLE = 1.7
"""The same without its topic: hardly a word is another one."""
NEAR = 1.0
"""The same where nothing else answers, and the question or the case has the row's topic."""
MEANT_SURE = 1.4
"""Likeness by meaning and words, from 0 to 2.5, from which on a question is that of a row."""
MEANT_NEAR = 1.3
"""The same where nothing else answers."""
MEANT_LIKE, REMARK_LIKE = 0.8, 0.95
"""The same of a row that may be told beside its own question, where there is nothing else: behind a
question, and behind what only tells something."""
_TELLING = 0.55
"""Weight of a word that a question is about; a row without it answers another one."""
_TOPIC = 0.4
"""The same of a word that a wording is about: it has to be told, in the question or before it."""
_WITHOUT_IT = 0.5
"""What is left of the likeness of a row that has not all words that the question is about."""
_UNKNOWN = 0.4
"""Weight of a word that no row has; that of a word of one row is 1."""
_PAIR, _UNKNOWN_PAIR = 0.5, 0.2
"""Share of its weight that counts of a pair of Chinese characters, and the weight of one that no
row has: one word yields several pairs, and many pairs are no words."""
_MIN_WORDS = 2
"""Of a question, and of those that it shares; one word asks what it means."""
_MIN_WEIGHT = 0.8
"""Of the words that it shares."""
_SHARED_ANSWER, _SHARED_CASE = 0.4, 0.3
"""Weights of the likeness of a question and of its case to an answer, beside that to its
wordings: with them the first row answers in some 60 of 100 turns of scripted dialogues, and in 55
without."""
_MAX_CHARACTERS_OF_CASE = 600
"""Its end: what was told last; a longer one takes the encoder too long."""
_MAX_ROWS_COMPARED = 12
"""Nearest rows that are compared with the case; the one that is meant is among them."""
_SHARED_WORDS = 0.3
"""Weight of the likeness by words beside that by meaning: of wordings that are asked without
themselves, most find their row with it."""
_MIN_CHARACTERS = 6
"""Of a question whose meaning is compared."""
_PROPOSES = re.compile(
    r"\bwhy (?:not|don.?t)\b|\b(?:can|couldn)(?:.?t|not) (?:i|we|you)\b"
    r"|为(?:什么|啥)不|不能(?:直接|就)",
    re.IGNORECASE,
)
_HOW_TO = re.compile(
    r"\bhow (?:do|does|would|can|could|should|to)\b|\bwhere (?:do|can|to|is|are)\b"
    r"|怎么(?!样|回事|这么)|如何|咋(?!样)|在?哪(?:里|儿)?[看查设改]",
    re.IGNORECASE,
)
_PART = re.compile(r"[a-z0-9]+")
_SAYING_NOTHING = frozenset(map(fold, STOPWORDS))
_MAX_CHARACTERS = 200
"""Of a question; a longer text tells something."""


def may_be_known(text: str) -> bool:
    """Whether a text is a question that the table has, if the case is about its systems."""
    if not is_question(text) or any(map(has_answer_of_its_own, sentences_of(text))):
        return False
    found, likeness = _nearest(text, None)
    return found is not None and (
        likeness >= WHOLE or (likeness >= SURE and is_about(found, _told(text)))
    )


def has_answer_of_its_own(text: str) -> bool:
    """Whether it asks what a term means, which the glossary tells, or for leave to do harm."""
    return bool(asked_term(text) or compared_terms(text) or harm_of(text))


def question_known(text: str, case: str) -> KnownQuestion | None:
    """The row whose question about a `case` a text surely is."""
    told = _told(f"{text}\n{case}")
    found, likeness = _nearest(text, told)
    is_sure = likeness >= WHOLE or (likeness >= SURE and found and is_about(found, told))
    return found if is_sure else None


def question_near(text: str, case: str) -> KnownQuestion | None:
    """The row that is nearest to a question about a `case`, whose words may hold its topic."""
    told = _told(f"{text}\n{case}")
    found, likeness = _nearest(text, told)
    return found if found and likeness >= NEAR and is_about(found, told) else None


def answer_in(question: KnownQuestion, language: Language) -> str:
    """The answer in a language."""
    return question.zh if language is Language.CHINESE else question.en


def is_about(question: KnownQuestion, words: Set[str]) -> bool:
    """Whether words have its topic."""
    return any(_topic_words(topic) <= words for topic in question.about)


def _may_answer(question: KnownQuestion, text: str) -> bool:
    """Whether it tells how to do something where a question asks for that."""
    return not _HOW_TO.search(text) or any(map(_HOW_TO.search, question.asks))


class _Wording(msgspec.Struct, frozen=True):
    row: int
    words: frozenset[str]
    weight: float
    """Of its words."""
    topics: frozenset[str]
    """Those of its words that name what it is about."""


def question_meant(
    texts: Iterable[str], case: str, knowledge: KnowledgeBase
) -> tuple[KnownQuestion | None, float]:
    """The row that one of some texts about a `case` means most likely, and how much, from 0 to 2.5:
    by its wordings, its answer and its words, and by how much its answer is about the case. Only of
    those whose topic was told."""
    best: tuple[KnownQuestion | None, float] = None, 0.0
    for text in dict.fromkeys(texts):
        words = _words(text)
        if not _MIN_CHARACTERS <= len(text) <= _MAX_CHARACTERS or not words:
            continue
        told = _told(f"{text}\n{case}")
        query = Query(lines=(in_english(text),), passages=(translate(text),))
        found = sorted(knowledge.search(query, TierName.ANSWERS), key=lambda one: -one.cosine)
        known = (from_answer_payload(candidate.payload) for candidate in found)
        fitting = (row for row in known if is_about(row, told) and _may_answer(row, text))
        rows = list(islice(fitting, _MAX_ROWS_COMPARED))
        if rows:
            likenesses = _likenesses(text, case, rows, knowledge)
            nearest = max(range(len(rows)), key=likenesses.__getitem__)
            if likenesses[nearest] > best[1]:
                best = rows[nearest], likenesses[nearest]
    return best


def _likenesses(
    text: str, case: str, rows: Sequence[KnownQuestion], knowledge: KnowledgeBase
) -> list[float]:
    """How likely a text about a case means each of the rows."""
    asks = [wordings_in_english(row) for row in rows]
    told = (translate(text), translate(case[-_MAX_CHARACTERS_OF_CASE:]))
    passages = [*told, *(row.en for row in rows), *chain.from_iterable(asks)]
    vectors = knowledge.vectors(passages, TierName.ANSWERS)
    asked, around = vectors[0], vectors[1]
    answers, wordings = vectors[2 : 2 + len(rows)], vectors[2 + len(rows) :] @ asked
    ends = list(accumulate(map(len, asks), initial=0))
    words = _words(text)
    return [
        float(wordings[start:end].max())
        + _SHARED_ANSWER * float(answer @ asked)
        + _SHARED_CASE * float(answer @ around)
        + _SHARED_WORDS * _table().likeness(row, words)
        for row, answer, (start, end) in zip(rows, answers, pairwise(ends), strict=True)
    ]


class _Table:
    """The rows by their words."""

    def __init__(self, questions: Iterable[KnownQuestion]) -> None:
        self._questions = tuple(questions)
        self._numbers = {one.id: number for number, one in enumerate(self._questions)}
        told = [[_told(ask) for ask in one.asks] for one in self._questions]
        self._held = [
            frozenset(tokenize("\n".join((*one.about, one.en)))).union(*own)
            for one, own in zip(self._questions, told, strict=True)
        ]
        """By row: all its words, and the parts of its names."""
        asked = [[_without_parts(words) for words in own] for own in told]
        self._topics = {word for one in self._questions for word in _words(" ".join(one.about))}
        rows = len(self._questions)
        counts = Counter(chain.from_iterable(self._held))
        self._rarities = {
            word: math.log(rows / count) / math.log(rows) for word, count in counts.items()
        }
        self._wordings: dict[str, list[_Wording]] = defaultdict(list)
        """By each of their words."""
        for row, own in enumerate(asked):
            for words in own:
                topics = frozenset(filter(self._is_topic, words))
                wording = _Wording(row, words, self._weight(words), topics)
                for word in words:
                    self._wordings[word].append(wording)

    def nearest(
        self, words: frozenset[str], told: Set[str] | None
    ) -> tuple[KnownQuestion | None, float]:
        """The row that is most like a question of these words, and how much, from 0 to 2; only of
        those about nothing else than what was `told`, if that is given."""
        weight = self._weight(words)
        found = {one for word in words for one in self._wordings.get(word, ())}
        best = max(
            (
                (self._likeness(one, words, weight), -one.row)
                for one in found
                if told is None or one.topics <= told
            ),
            default=(0.0, 0),
        )
        return (self._questions[-best[1]] if found else None), best[0]

    def likeness(self, row: KnownQuestion, words: frozenset[str]) -> float:
        """How much a row is like a question of these words, from 0 to 2."""
        weight, number = self._weight(words), self._numbers.get(row.id)
        found = {one for word in words for one in self._wordings.get(word, ())}
        own = (one for one in found if one.row == number)
        return max((self._likeness(one, words, weight) for one in own), default=0.0)

    def _likeness(self, wording: _Wording, words: frozenset[str], weight: float) -> float:
        shared, held = words & wording.words, self._held[wording.row]
        if len(shared) < _MIN_WORDS or self._weight(shared) < _MIN_WEIGHT:
            return 0.0
        if any(not _is_known(name, held) for name in words):
            return 0.0
        alike = 2 * self._weight(shared) / (weight + wording.weight)
        likeness = alike + self._weight(words & held) / weight
        return likeness * (_WITHOUT_IT if any(map(self._is_telling, words - held)) else 1.0)

    def _is_telling(self, word: str) -> bool:
        """Whether a question with it is about it."""
        return word in self._topics and self._rarity(word) >= _TELLING

    def _is_topic(self, word: str) -> bool:
        return word in self._topics and self._rarity(word) >= _TOPIC

    def _weight(self, words: Iterable[str]) -> float:
        """Of a word of one row 1, of one that all have 0."""
        return sum(self._rarity(word) * (_PAIR if is_pair(word) else 1.0) for word in words)

    def _rarity(self, word: str) -> float:
        known = self._rarities.get(word)
        if known is None:
            return _UNKNOWN_PAIR if is_pair(word) else _UNKNOWN
        return known


@cache
def _table() -> _Table:
    return _Table(known_questions())


@lru_cache(maxsize=200)  # of a message each part is looked up several times
def _nearest(text: str, told: frozenset[str] | None) -> tuple[KnownQuestion | None, float]:
    """The row that is most like a text, and how much; none if it cannot answer it."""
    if len(text) > _MAX_CHARACTERS or "\n" in text or _PROPOSES.search(text):
        return None, 0.0
    words = _words(text)
    if len(words) < _MIN_WORDS:
        return None, 0.0
    found, likeness = _table().nearest(words, told)
    return (found, likeness) if found and _may_answer(found, text) else (None, 0.0)


def _is_known(word: str, held: Set[str]) -> bool:
    """Whether most parts of a name stand in the words of a row; of a word that is none, always."""
    parts = _PART.findall(word)
    return (
        len(parts) < 2 or word in held or 3 * sum(map(held.__contains__, parts)) >= 2 * len(parts)
    )


def _told(text: str) -> frozenset[str]:
    """All words of a text and of its English gloss, and the parts of its names."""
    return frozenset(chain.from_iterable(map(tokenize, dict.fromkeys((text, in_english(text))))))


def _words(text: str) -> frozenset[str]:
    """The words of a text, those of its English gloss too: names whole, not their parts."""
    return _without_parts(_told(text))


def _without_parts(told: Set[str]) -> frozenset[str]:
    """Words without the parts of those that are names, and without numbers, which are those of a
    case."""
    words = {word for word in told if not word.isdecimal()}
    names = (word for word in words if not word.isalnum())
    parts = {part for name in names for part in _PART.findall(name)}
    return frozenset(words - parts - _SAYING_NOTHING)


@cache  # the topics of each candidate are compared with each question
def _topic_words(topic: str) -> frozenset[str]:
    """Its numbers are among them: a port, a status, a code."""
    numbers = {word for word in tokenize(topic) if word.isdecimal()}
    return _words(topic) | numbers or frozenset(tokenize(topic))
