"""A sentence as it is compared: the words that say something, in their order, and what turns or
limits them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, pairwise
from pathlib import Path

import msgspec

from index.tokens import fold, is_pair
from kb.log.clean import strip_controls
from kb.rules import read_words

SLOT = re.compile(r"\{([a-z]+ \d+)\}")
"""Stands for words of the engine: `{step 2}`, `{line 41}`, `{value 3}`."""
_TOKEN = re.compile(r"\{[a-z]+ \d+\}|[A-Za-z/][A-Za-z0-9/_.+-]*|[\u3400-\u9fff]+")
_IN_NAME = re.compile(r"[/_.+]|[a-z][A-Z]|[A-Z]{2}")
"""What makes a name of a word: it stands or falls as a whole."""
_NOT = re.compile(r"\b([A-Za-z]+?)n['’]t\b")
_LIKELIEST = re.compile(r"\bmost likely\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<=[.!?;；])\s+|(?<=[。！？；])|\n+")
_CLAUSE = re.compile(r"[,;:()，；：（）、。—]\s*|\.\s+|\s[-–]\s")
_SILENT = ("glue", "negations", "brief_negations", "qualifiers", "quantifiers")
_BRIEF = 2
"""Words that "no", "without" and "most" reach."""
_REACH = 5
"""Chinese characters that a negation reaches."""
_LEADING = frozenset(["and", "or", "then", "so", "just", "also", "now", "first", "next"])


class Phrase(msgspec.Struct, frozen=True):
    """What of a sentence must be carried by what it rests on."""

    words: tuple[str, ...]
    """Folded, with slots, in their order; without words that say nothing by themselves."""
    negations: int
    negated: frozenset[str]
    """The words that a negation reaches."""
    counted: frozenset[tuple[str, str]]
    """The words that "some", "most" and the like reach, each with that."""
    qualifiers: frozenset[str]

    @property
    def telling(self) -> frozenset[str]:
        """Its words without slots."""
        return frozenset(word for word in self.words if word[0] != "{")


def read_phrase(text: str) -> Phrase:
    """Take a text apart."""
    text = _LIKELIEST.sub("likeliest", _NOT.sub(_written_out, text))
    tokens = list(_tokens(text))
    negated = [reached for clause in _CLAUSE.split(text) for reached in _negated(clause)]
    return Phrase(
        tuple(filter(_is_telling, tokens)),
        len(negated),
        frozenset(word for reached in negated for word in reached),
        frozenset(_counted(tokens)),
        frozenset(token for token in tokens if token in words_of("qualifiers"))
        | frozenset(word for word in words_of("qualifiers_zh") if word in text),
    )


def _is_telling(token: str) -> bool:
    return not any(token in words_of(kind) for kind in _SILENT)


def _counted(tokens: Sequence[str]) -> Iterator[tuple[str, str]]:
    for place, token in enumerate(tokens):
        if token in words_of("quantifiers"):
            behind = filter(_is_telling, tokens[place + 1 :])
            yield from ((word, token) for word in islice(behind, _BRIEF))


def _negated(clause: str) -> Iterator[list[str]]:
    """For each negation of a clause, the words that it reaches."""
    tokens = list(_tokens(clause))
    for place, token in enumerate(tokens):
        behind = list(filter(_is_telling, tokens[place + 1 :]))
        if token in words_of("negations"):
            yield behind
        elif token in words_of("brief_negations"):
            yield behind[:_BRIEF]
    for place, sign in enumerate(clause):
        if sign in data()["negations_zh"]:
            yield list(_pairs(clause[place + 1 : place + 1 + _REACH]))


def on_one_line(text: str) -> str:
    """A text without control characters and line ends."""
    return " ".join(strip_controls(text).split())


def sentences_of(text: str) -> list[str]:
    """The sentences of a text."""
    return [piece.strip() for piece in _SENTENCE_END.split(text) if piece.strip()]


def has_word(text: str, kind: str) -> bool:
    """Whether a text has one of the words of a kind, in English or Chinese."""
    plain = {word.lower() for word in re.findall(r"[A-Za-z]+", text)}
    return not plain.isdisjoint(words_of(kind)) or any(
        word in text for word in words_of(f"{kind}_zh")
    )


def gives_order(text: str) -> bool:
    """Whether a text tells somebody to do something."""
    return has_word(text, "duty") or any(map(_is_order, _CLAUSE.split(text)))


def _is_order(clause: str) -> bool:
    words = [word.lower() for word in re.findall(r"[A-Za-z]+(?:-[a-z]+)?", clause)]
    while words and words[0] in _LEADING:
        words = words[1:]
    starts = clause.strip().startswith(tuple(words_of("orders_zh")))
    return starts or bool(words and words[0] in read_words("verbs", "verbs"))


def _written_out(short: re.Match[str]) -> str:
    return "can not" if short[1].lower() == "ca" else f"{short[1]} not"


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip("./+-_")
        if token.startswith("{"):
            yield match[0]
        elif token and is_pair(token):
            yield from _pairs(token)
        elif _IN_NAME.search(token):
            yield token.lower()
        else:
            yield from (_folded(part) for part in token.lower().split("-") if len(part) > 1)


def _folded(word: str) -> str:
    """Words of the lists as they are written, so that they are found there."""
    return fold(word) if _is_telling(word) else word


def _pairs(run: str) -> Iterator[str]:
    """Pairs of Chinese characters, without those that say nothing by themselves."""
    for piece in re.split(f"[{data()['glue_zh']}]+", run):
        if len(piece) == 1:
            yield piece
        yield from (piece[start : start + 2] for start in range(len(piece) - 1))


def longest_in_order(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words of one stand in the other in the same order."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for place, known in enumerate(other, 1):
            above = row[place]
            row[place] = before + 1 if word == known else max(above, row[place - 1])
            before = above
    return row[-1]


def words_of(kind: str) -> frozenset[str]:
    """The words of a kind."""
    return _sets()[kind]


@cache
def _sets() -> dict[str, frozenset[str]]:
    return {kind: frozenset(words.split()) for kind, words in data().items()}


@cache
def data() -> dict[str, str]:
    """The lists of `words.toml`."""
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def in_pairs(sentences: Sequence[str]) -> Iterable[str]:
    """Each sentence, and each with the one behind it."""
    yield from sentences
    yield from (f"{one} {two}" for one, two in pairwise(sentences))
