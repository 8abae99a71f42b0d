"""Proposes signatures for a draft: literal parts of its evidence that no other record prints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import filterfalse

from kb.corpus.base import KnowledgeBase
from kb.evidence.markers import Grade, grade_line
from kb.incident import Signature, Strength
from kb.job.failures import classify
from kb.job.model import FaultRole
from kb.log.prefixes import split_prefix

_MAX_SIGNATURES = 4
"""Number of signatures proposed; an author drops some, and more would be noise."""
_MIN_CHARACTERS, _MAX_CHARACTERS = 16, 120
"""Of a pattern: shorter text is in every log, longer text changes with the next version."""
_MIN_WORDS = 3
"""Number of words in a pattern; fewer name a thing, but say nothing about it."""
_DIFFERS = re.compile(
    r"<[^<>]*>"
    r"|(?<![^\s'\"()<>])[^\s'\"()<>/]*+/[^\s'\")]*"
    r"|(?<![^\s,;()\[\]{}'\"=<>])[^\s,;()\[\]{}'\"=<>\d]*+\d[^\s,;()\[\]{}'\"=]*"
)
"""Parts that differ from print to print: paths, and words with a number such as times and hosts.
Each is looked for from the beginning of a word on."""
_LOOSE = " \t,;:([{]}'\"=|-.&*#>"
_SOURCE = re.compile(r"\s*(?:File \"|raise |except |assert |return |frame #)")
"""Lines of a traceback that quote the program."""
_TRIED_AGAIN = re.compile(r"\bwill ?retry|\bretrying\b|\btr(?:y|ying) again\b", re.IGNORECASE)
"""A complaint that healthy runs get over."""
_WORD = re.compile(r"[A-Za-z]{2,}")
_IDENTIFIER = re.compile(r"[A-Za-z]+(?:[_.-][A-Za-z]+)+|[A-Z]?[a-z]+[A-Z][A-Za-z]+")
"""A name that a program made up: `scipy_lite_codec`, `FrobnicatorError`."""


def propose(evidence: str, knowledge: KnowledgeBase) -> tuple[Signature, ...]:
    """Parts of the lines that show a failure by themselves, so that healthy logs lack them, and
    that stand in the evidence of no record. The most telling first.

    A part is strong if its line is as severe as an exception and contains a name that no record
    has; a generic message such as `list index out of range` is weak.
    """
    others = _evidence_of_all(knowledge)
    graded = {
        part: _grade(part, knowledge)
        for part in literal_parts(filterfalse(_loses_peer, evidence.split("\n")))
        if part not in others
    }
    chosen: list[str] = []
    for part in sorted(graded, key=lambda part: (-graded[part], len(part))):
        if graded[part] >= Grade.ERROR and not any(other in part for other in chosen):
            chosen.append(part)
    return tuple(
        Signature(part, _strength(part, graded[part], others)) for part in chosen[:_MAX_SIGNATURES]
    )


def _loses_peer(line: str) -> bool:
    """Whether it says that another process is gone: at the end of a healthy job they say so too."""
    failure = classify(split_prefix(line).text, Grade.FATAL)
    return failure is not None and failure.role is FaultRole.LOST_PEER


def literal_parts(lines: Iterable[str]) -> Iterator[str]:
    """The invariant parts of such lines, in order; each has a few words."""
    for line in lines:
        said = split_prefix(line).text
        is_telling = not (_SOURCE.match(said) or _TRIED_AGAIN.search(said))
        for part in _DIFFERS.split(said) if is_telling else ():
            literal = _trimmed(part)
            if len(literal) >= _MIN_CHARACTERS and len(_WORD.findall(literal)) >= _MIN_WORDS:
                yield literal


def shortened(text: str, longest: int) -> str:
    """A text cut before a clause that does not fit, or before a word, if there is no other way."""
    if len(text) <= longest:
        return text
    words = text[:longest].rpartition(" ")[0] or text[:longest]
    clause = max(words.rfind(mark) for mark in (": ", "; ", ", ", ". "))
    return words[:clause] if clause > longest // 2 else words


def _trimmed(part: str) -> str:
    """Strip loose punctuation at both ends, and unpaired brackets."""
    part = shortened(part, _MAX_CHARACTERS).strip(_LOOSE)
    if ")" in part.partition("(")[0]:
        part = part.partition(")")[2]
    if "(" in part.rpartition(")")[2]:
        part = part.rpartition("(")[0]
    return part.strip(_LOOSE)


def _evidence_of_all(knowledge: KnowledgeBase) -> str:
    return "\n".join(record.body.evidence_text for record in knowledge.incidents())


def _grade(text: str, knowledge: KnowledgeBase) -> Grade:
    return grade_line(text, {number for number, _end in knowledge.markers.scan(text.encode())})


def _strength(part: str, grade: Grade, others: str) -> Strength:
    named = grade is Grade.FATAL and any(name not in others for name in _IDENTIFIER.findall(part))
    return Strength.STRONG if named else Strength.WEAK
