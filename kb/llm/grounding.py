"""Whether a sentence of the model is carried by what it rests on. Pure functions; a sentence that
fails any of them is dropped.

It is strict on purpose. Every word that says something must stand in one passage, next to each
other or nearly so and in the same order, with the same negations and limits. A sentence that is
dropped costs nothing: the words of the engine stand anyway.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from kb.conversation.language import Language, say
from kb.llm.given import Given, Kind, Passage
from kb.llm.phrase import (
    SLOT,
    Phrase,
    gives_order,
    has_word,
    in_pairs,
    longest_in_order,
    on_one_line,
    read_phrase,
    sentences_of,
    words_of,
)
from kb.log.clean import strip_controls
from kb.verdict import percent

MAX_SENTENCE_CHARACTERS = 400
"""Of a sentence of the model, before its slots are filled: five rows of a terminal."""
_MIN_WORDS = 3
"""Words that say something; fewer can be found in any passage."""
_MIN_IN_ORDER = 0.7
"""Share of the words that stand in the order of the passage: who did what to whom."""
_MAX_ELSEWHERE = 0.8
"""Share of the words that another record may carry as well; from there on, the sentence does not
tell the records apart."""
_NEAR = 2
"""Words before and behind a value, one of which must be the same in the passage."""
_ALLOWED = re.compile(r"[A-Za-z\u3400-\u9fff .,:;'’\"“”()/_—–。，、：；（）《》-]*")
"""Signs of prose. Digits, code, flags and links come from slots alone."""
_FLAG = re.compile(r"(?<![A-Za-z\u3400-\u9fff)}])[-–—]+[A-Za-z]|://|\bwww\.")


class Reason(StrEnum):
    """Why a sentence was dropped."""

    SOURCE = "it names nothing that was given"
    SLOT = "it holds a slot that was not given, or not with this value"
    TYPED = "it types what only kb may put in"
    ORDER = "it tells somebody to do something"
    ALL_CLEAR = "it says that all is well"
    CARRIED = "what it rests on does not say it"
    EVERYWHERE = "another record says the same"


class Sentence(msgspec.Struct, frozen=True):
    """What is shown: a sentence of the model, with its slots filled and its source."""

    text: str
    rests_on: tuple[str, ...]
    """Keys of passages, of which the first carries its words."""
    phrase: Phrase
    """Its words, to be compared with other records."""
    values: tuple[str, ...]
    """What stands for the values in it."""
    record: str | None
    """The record whose words it has; None for those of the reply or of an observation."""


class Dropped(msgspec.Struct, frozen=True):
    """A sentence that is not shown."""

    reason: Reason


def ground(text: str, rests_on: Sequence[str], given: Given) -> Sentence | Dropped:
    """Check one sentence, and put in what its slots stand for."""
    text = on_one_line(text)
    slots = list(dict.fromkeys(SLOT.findall(text)))
    keys = list(dict.fromkeys([*rests_on, *(slot for slot in slots if given.passage(slot))]))
    passages = [passage for passage in map(given.passage, keys) if passage]
    if not passages or len(passages) < len(keys):
        return Dropped(Reason.SOURCE)
    if any(slot not in given.slots for slot in slots):
        return Dropped(Reason.SLOT)
    flaw = _flaw(text)
    if flaw:
        return Dropped(flaw)
    phrase = _without_quotes(read_phrase(text), given)
    if has_word(_bare(text), "all_clear") and not given.all_clear:
        passages = [passage for passage in passages if passage.kind is Kind.OBSERVATION]
        if not passages:
            return Dropped(Reason.ALL_CLEAR)
    if len(slots) == 1 and _only_points(phrase, slots[0]):
        return _filled(text, passages, phrase, given)
    carrier = next((passage for passage in passages if _carries(passage, phrase)), None)
    if carrier is None:
        return Dropped(Reason.CARRIED)
    others = [passage for passage in passages if passage is not carrier]
    return _filled(text, [carrier, *others], phrase, given)


def is_everywhere(sentence: Sentence, records: Sequence[str]) -> bool:
    """Whether one of the texts of other records says nearly the same, with the same values."""
    if len(sentence.phrase.telling) < _MIN_WORDS:
        return False  # it points at a line or a step
    passages = (one for record in records for one in in_pairs(sentences_of(record)))
    return any(_share(sentence, passage) >= _MAX_ELSEWHERE for passage in passages)


def _share(sentence: Sentence, passage: str) -> float:
    """The share of its words and values that a passage has."""
    words = sentence.phrase.telling
    same = len(words & read_phrase(passage).telling)
    same += sum(value in passage for value in sentence.values)
    return same / (len(words) + len(sentence.values))


def _flaw(text: str) -> Reason | None:
    """What no sentence may hold, whatever it rests on."""
    bare = _bare(text)
    too_long = len(text) > MAX_SENTENCE_CHARACTERS
    if too_long or not _ALLOWED.fullmatch(bare) or _FLAG.search(bare):
        return Reason.TYPED
    return Reason.ORDER if gives_order(bare) else None


def _bare(text: str) -> str:
    return SLOT.sub("", text)


def _only_points(phrase: Phrase, slot: str) -> bool:
    """Whether a sentence says nothing but that there is this line or step."""
    may_say = words_of("pointer") | words_of("pointer_zh") if slot.startswith("step ") else set()
    return not phrase.negations and not phrase.qualifiers and set(phrase.words) <= may_say


def _without_quotes(phrase: Phrase, given: Given) -> Phrase:
    """Without slots of lines and steps, which stand for themselves."""
    quotes = {f"{{{passage.key}}}" for passage in given.passages if passage.kind is Kind.QUOTE}
    words = tuple(word for word in phrase.words if word not in quotes)
    return msgspec.structs.replace(phrase, words=words)


def _carries(passage: Passage, phrase: Phrase) -> bool:
    if passage.kind is Kind.QUOTE or len(phrase.telling) < _MIN_WORDS:
        return False
    return any(
        _says(read_phrase(one), phrase)
        for one in in_pairs(sentences_of(passage.text))
        if not has_word(one, "address")
    )


def _says(known: Phrase, phrase: Phrase) -> bool:
    """Whether one says all that the other does."""
    words = set(phrase.words)
    if not words <= set(known.words):
        return False
    is_turned = known.negated & words != phrase.negated & words
    is_turned = is_turned or phrase.negations > known.negations
    is_widened = {one for one in known.counted if one[0] in words} != phrase.counted
    same_limits = known.qualifiers == phrase.qualifiers and not (is_turned or is_widened)
    ordered = longest_in_order(phrase.words, known.words) >= _MIN_IN_ORDER * len(phrase.words)
    values = [word for word in phrase.words if word.startswith("{")]
    return (
        same_limits
        and ordered
        and all(
            not _around(value, phrase.words).isdisjoint(_around(value, known.words))
            for value in values
        )
    )


def _around(value: str, words: Sequence[str]) -> set[str]:
    """The words near a value."""
    near: set[str] = set()
    for place, word in enumerate(words):
        if word == value:
            near.update(words[max(0, place - _NEAR) : place], words[place + 1 : place + 1 + _NEAR])
    return near


def _filled(text: str, passages: Sequence[Passage], phrase: Phrase, given: Given) -> Sentence:
    carrier = passages[0]
    record = carrier.record if carrier.kind is Kind.RECORD else None
    filled = SLOT.sub(lambda slot: given.slots[slot[1]], text)
    keys = tuple(passage.key for passage in passages)
    shown = strip_controls(_attributed(filled, record, given))
    values = tuple(
        given.slots[slot].strip("`") for slot in SLOT.findall(text) if slot.startswith("value ")
    )
    return Sentence(shown, keys, phrase, values, record)


def _attributed(text: str, record: str | None, given: Given) -> str:
    """With the record that it is from and, where that is no match, how sure it is."""
    if record is None:
        return text
    standing = given.standings[record]
    if standing.is_match:
        return f"{text} [{record}]"
    if standing.share is None:
        return _with_source("voice-of", record, text, given.language)
    share = percent(standing.share)
    return _with_source("voice-if", record, text, given.language, share=share)


def _with_source(key: str, record: str, text: str, language: Language, **values: str) -> str:
    return say(key, language, id=record, said=text, **values)
