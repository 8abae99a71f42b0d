"""The glossary: what the terms of the field mean."""

from __future__ import annotations

import os
import re
import signal
import tomllib
from collections.abc import Mapping, Set
from functools import cache
from pathlib import Path

import msgspec

from index.tokens import tokenize

_ASKED = re.compile(
    r"(?:what(?:'s| is| are| does| do)|whats|define|explain|meaning of|mean by|definition of)"
    r"\s+(?:an? |the |this |term )*(?P<en>\S.{0,60}?)"
    r"(?:\s+(?:mean|means|do|stand for|again|exactly|actually|really|anyway|even|then|here|please"
    r"|pls))*(?:\s*,? (?:in )?(?:one|a|1|two|short|brief\w*|quick\w*|simple|plain)\b.{0,24})?"
    r"\s*[?.!]*$"
    r"|^\s*(?:什么是|什么叫|解释一下|解释下|解释|说说)\s*(?P<zh>\S.{0,40}?)\s*(?:吧|呗)?[？?。]*$"
    r"|^\s*(?P<zh2>\S.{0,40}?)\s*(?:是什么意思|是什么|是啥意思|是啥|什么意思|啥意思|是干什么的|是干嘛的)",
    re.IGNORECASE,
)
"""The term that a question is about."""
_COMPARES = re.compile(
    r"\bdifferen\w+|\bversus\b|\bvs\b|\bmix\w* (?:\w+ )?up\b|区别|差别|有什么不同|有何不同|分不清",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?:\bsignal|信号)\s*(?P<signal>\d{1,2})(?!\d)|\berrno\D{0,3}(?P<errno>\d{1,3})(?!\d)"
    r"|(?<!kill )(?<![\w.-])-(?P<minus>\d{1,2})(?![\w.])"
    r"|(?:\b(?:exit(?:ed)?|code|status|rc)|退出码|返回码|返回值)\D{0,12}(?P<shell>1[2-5]\d)(?!\d)",
    re.IGNORECASE,
)
"""A number by which a process, Python or a shell names a signal, or the kernel an error."""
_ASSIGNED = re.compile(r"\s*[=:]\s*(?=\d)")
"""Between a name and its number: "status=12"."""
_SHELL_SIGNALS = 128
"""Added to the number of the signal in the exit code of a shell."""
_GAP = re.compile(r"(?<=[\x21-\x7e]) +(?=[\u4e00-\u9fff])|(?<=[\u4e00-\u9fff]) +(?=[\x21-\x7e])")
"""A space between Latin and Chinese, which people set or leave out."""
_MAX_TEXT_CHARACTERS = 500
"""Of a message, its beginning: a question is not longer."""


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A term of the field, in own words."""

    name: str
    also: tuple[str, ...]
    """Other names, in both languages."""
    en: str
    zh: str
    source: str
    """The address of a page about it."""

    @property
    def names(self) -> tuple[str, ...]:
        """All its names."""
        return (self.name, *self.also)


def find_term(text: str, about: str = "") -> Term | None:
    """The term that a question is about: what it asks for, also by the number of a signal or an
    error, or else the longest name of a term that stands in it as a whole. Of several senses, the
    one nearest to what the case is `about`."""
    exact = asked_term(text) or _by_code(text)
    if exact:
        return _sense(exact, about)
    lower = _GAP.sub("", text[:_MAX_TEXT_CHARACTERS]).lower()
    found = (name for name in _longest_first() if name in lower and _is_whole(name, lower))
    name = next(found, None)
    return _sense(_by_name()[name], about) if name else _by_word(text, about)


def compared_terms(text: str) -> tuple[Term, ...]:
    """The terms whose difference a question asks for, in its order; empty where it asks none."""
    if not _COMPARES.search(text):
        return ()
    lower = _GAP.sub("", text[:_MAX_TEXT_CHARACTERS]).lower()
    found: dict[int, Term] = {}
    for name in _longest_first():
        place = lower.find(name)
        if place >= 0 and _is_whole(name, lower):
            found.setdefault(place, _by_name()[name])
            lower = lower.replace(name, " " * len(name))
    terms = tuple(dict.fromkeys(found[place] for place in sorted(found)))
    return terms if len(terms) > 1 else ()


def asked_term(text: str) -> Term | None:
    """The term that a text asks the meaning of: "what is a watchdog?"."""
    name = asked_name(text)
    return _by_name().get(_plain(name)) if name else None


def asked_name(text: str) -> str | None:
    """What a text asks the meaning of, in its words; None where it asks for none."""
    asked = _ASKED.search(text[:_MAX_TEXT_CHARACTERS])
    return (asked["en"] or asked["zh"] or asked["zh2"]) if asked else None


def _by_word(text: str, about: str) -> Term | None:
    """The term with the word that is asked for in a name, and with words of what it is `about`:
    "pending" beside rows of memory is that of the remapping."""
    word = _plain(asked_name(text) or "")
    if not word:
        return None
    terms = {term.name: term for name, term in _by_name().items() if _is_whole(word, name)}
    words = set(tokenize(about))
    best = max(terms.values(), key=lambda term: _shared(term, words), default=None)
    return best if best and _shared(best, words) else None


def _by_code(text: str) -> Term | None:
    """The term for the signal or the error that a number stands for: "-7", "errno 116"."""
    found = _CODE.search(text[:_MAX_TEXT_CHARACTERS])
    if found is None:
        return None
    if found["errno"]:
        return _by_name().get(os.strerror(int(found["errno"])).lower())
    number = int(found["signal"] or found["minus"] or int(found["shell"]) - _SHELL_SIGNALS)
    name = signal.Signals(number).name if number in set(signal.Signals) else ""
    return _by_name().get(name.lower())


def _sense(term: Term, about: str) -> Term:
    """The term, or one with its name in its own that has more words of what it is about."""
    words = set(tokenize(about))
    own = term.name.lower()
    senses = {
        other.name: other
        for name, other in _by_name().items()
        if own in name and _is_whole(own, name)
    }
    best = max(senses.values(), key=lambda sense: _shared(sense, words), default=term)
    return best if _shared(best, words) > _shared(term, words) else term


def _shared(term: Term, words: Set[str]) -> int:
    return len(words & set(tokenize(f"{' '.join(term.names)} {term.en}")))


def _plain(name: str) -> str:
    """A name as the table has it."""
    plain = _GAP.sub("", name).strip(" '\"`“”‘’「」?？.。").lower()
    # Other ways to write it: several of them, and a number behind its name.
    ways = (plain, plain.removesuffix("s"), _ASSIGNED.sub(" ", plain))
    return next((way for way in ways if way in _by_name()), plain)


def _is_whole(name: str, text: str) -> bool:
    """Whether the name stands in the text with no letter or digit beside it; Chinese has none."""
    before = r"(?<![a-z0-9_])" if name[0].isascii() else ""
    after = r"(?:s|es)?(?![a-z0-9_])" if name[-1].isascii() else ""
    return re.search(f"{before}{re.escape(name)}{after}", text) is not None


@cache
def _by_name() -> Mapping[str, Term]:
    """In lower case."""
    source = Path(__file__).with_name("terms.toml").read_bytes()
    rows = tomllib.loads(source.decode())["term"]
    terms = msgspec.convert(rows, tuple[Term, ...])
    return {_GAP.sub("", name).lower(): term for term in terms for name in term.names}


@cache
def _longest_first() -> list[str]:
    return sorted(_by_name(), key=len, reverse=True)
