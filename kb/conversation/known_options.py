"""The settings of the field that people ask about and propose: variables, flags, configuration keys
and limits, rows of `options/*.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from kb.conversation.language import Language
from kb.conversation.subject import asks, is_question
from kb.evidence.systems import systems_in
from kb.incident import Line, Url

_WORD = re.compile(r"[!-~]+")
"""Chinese letters may stand right beside a name."""
_AROUND = ".,;:?!()[]{}\"'`*"
_MAX_WORDS = 4
"""Of a name: "--ulimit memlock=-1"."""
_MAX_CHARACTERS = 300
"""Of a question; a longer text tells something."""

_PROPOSES = re.compile(
    r"\b(?:what if|how about|why not|let me|let.s|maybe|perhaps|tempted|thinking of|going to|gonna"
    r"|(?:i|we)(?:.d| could| would| can| might| want to| will|.ll))\b"
    r"|要不|不如|干脆|打算|准备|想把?|试试|先把?.{0,20}(?:调|设|改|关|开|加|降)|顶(?:一|着|下|住)",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\b(?:i|we|they)(?:.ve)? (?:already )?(?:set|tried|have|had|use|used|added|put|did)\b"
    r"|\b(?:is|was|were|already) set\b|\bset it\b.{0,20}\bno\b"
    r"|已经?(?:设|加|开|改)了|试过|设(?:置)?了",
    re.IGNORECASE,
)
"""Tells that it was set."""
_WHERE = re.compile(
    r"\b(?:both|all|every|each|other|only|just|one|single)\b(?: of)?(?: the| my| our)? ?\S{0,12} ?"
    r"(?:nodes?|hosts?|machines?|ranks?|sides?|servers?|boxes|process(?:es)?|pods?|ends)\b"
    r"|\bleave\b.{1,30}\bas (?:it|they) (?:is|are)\b|\bsame (?:on|for|everywhere)\b|\beverywhere\b"
    r"|两[边台头]|每[台个张]|所有(?:的)?(?:节点|机器|rank|进程|卡)|各(?:自|节点|台)|只(?:在|改|设|给).{0,14}"
    r"(?:上|台|节点|一边|机器|rank)|一致|一样吗|都要",
    re.IGNORECASE,
)
_SETS_IT = re.compile(
    r"\b(?:set|put|change|need|export|apply|have|add|leave|use|want)\w*"
    r" (?:it|that|this|them|those)\b"
    r"|\b(?:it|that|this)\b.{0,16}\b(?:set|changed|exported|needed|applied|take effect)\b"
    r"|(?:它|这个|那个|这项|变量|参数)|(?:也|都)(?:要|得)?(?:写|设|改|加|配)",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\brestart|\breboot|\brunning (?:job|process|training|server)\b|\btakes? effect\b|\blive\b"
    r"|\bon the fly\b|\bat runtime\b|重启|生效|在线(?:改|调)|热更|不停(?:机|服)?",
    re.IGNORECASE,
)

_PARTS = re.compile(r"[_-]")
_MIN_SPOKEN = 14
"""Characters of a name that people also say in words: "offload optimizer"."""

Words = Annotated[str, msgspec.Meta(min_length=10, max_length=400)]


class Scope(StrEnum):
    """Where an option has to be set."""

    JOB = "job"
    """The same for all processes of the job, on every node."""
    PROCESS = "process"
    """Each process or server may have its own value."""
    NODE = "node"
    """Of a host, for all that runs on it."""
    SERVICE = "service"
    """In the configuration of a daemon, server, pod or container."""


class Takes(StrEnum):
    """When a change takes effect."""

    PROCESS = "process"
    """When the processes start again."""
    LIVE = "live"
    SERVICE = "service"
    """After the restart of the daemon, container or pod."""
    DRIVER = "driver"
    """After the driver was loaded again, or a reboot."""
    BUILD = "build"
    """When it is built again."""


class OptionWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of an option in one language; whole sentences."""

    does: Words
    """What it is, with its default and sensible values."""
    helps: Words
    """In which trouble it helps, what it does not cure, and what it costs."""


class KnownOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that can be set."""

    names: Annotated[tuple[Line, ...], msgspec.Meta(min_length=1)]
    """As people type it, the usual name first."""
    scope: Scope
    takes: Takes
    source: Url
    """A page that tells it."""
    en: OptionWords
    zh: OptionWords
    program: str = ""
    """Whose flag it is, where others have one of the same name."""

    @property
    def name(self) -> str:
        """The usual one."""
        return self.names[0]

    def words(self, language: Language) -> OptionWords:
        """What is said of it."""
        return self.zh if language is Language.CHINESE else self.en


def options_in(text: str, case: str = "") -> list[KnownOption]:
    """The options that a text names, in its order, each once. Of several with one name, that of a
    program which the text or the `case` names, or else the first."""
    if len(text) > _MAX_CHARACTERS or "\n" in text:
        return []
    found = (named[0] if len(named) == 1 else _meant(named, text, case) for named in _named(text))
    return list({option.name: option for option in found}.values())


def _meant(named: Sequence[KnownOption], text: str, case: str) -> KnownOption:
    """Of several options with one name, that of a program which is named, or else the first."""
    around = f"{text} {case}".lower()
    running = systems_in(around)
    programs = (one for one in named if one.program)
    meant = (one for one in programs if one.program in running or one.program in around.split())
    return next(meant, named[0])


def option_asked(text: str) -> KnownOption | None:
    """The option that a text asks about or proposes; None where it names none, or only tells that
    it is set."""
    named = options_in(text)
    if named and (_PROPOSES.search(text) or (asks(text) and not _TELLS.search(text))):
        return named[0]
    return None


def asks_of_it(text: str) -> bool:
    """Whether a text asks where or when something is to be set that it does not name."""
    return bool(
        _SETS_IT.search(text) and is_question(text) and (asks_where(text) or asks_when(text))
    )


def asks_where(text: str) -> bool:
    """Whether a text asks on which processes or hosts something has to be set."""
    return _WHERE.search(text) is not None


def asks_when(text: str) -> bool:
    """Whether a text asks when a change takes effect."""
    return _WHEN.search(text) is not None


def _named(text: str) -> Iterator[tuple[KnownOption, ...]]:
    """All options of each name in a text; of names that begin at one word, the longest."""
    words = _words(text)
    place = 0
    while place < len(words):
        for length in range(min(_MAX_WORDS, len(words) - place), 0, -1):
            *before, last = words[place : place + length]
            names = (" ".join((*before, word)) for word in (last, last.partition("=")[0]))
            named = next(filter(None, map(_by_name().get, names)), None)
            if named:
                yield named
                place += length
                break
        else:
            place += 1


def _words(text: str) -> list[str]:
    """The words of a text or a name, without the marks around them."""
    return [word.strip(_AROUND).lower() for word in _WORD.findall(text)]


@cache
def known_options() -> tuple[KnownOption, ...]:
    """All of them."""
    files = sorted(Path(__file__).with_name("options").glob("*.toml"))
    return tuple(
        option
        for file in files
        for option in msgspec.convert(
            tomllib.loads(file.read_text("utf-8"))["option"], tuple[KnownOption, ...]
        )
    )


@cache
def _by_name() -> Mapping[str, tuple[KnownOption, ...]]:
    named: dict[str, list[KnownOption]] = {}
    spoken: dict[str, list[KnownOption]] = {}
    for option in known_options():
        for name in option.names:
            written = " ".join(_words(name))
            named.setdefault(written, []).append(option)
            if len(written) >= _MIN_SPOKEN and len(said := _PARTS.split(written)) > 1:
                spoken.setdefault(" ".join(said), []).append(option)
    return {name: tuple(options) for name, options in {**spoken, **named}.items()}
