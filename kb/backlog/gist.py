"""What of a report is searched for: its words, its meaning, and what makes two reports one case."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from index.tokens import tokenize
from kb.backlog.model import Report, Thread
from kb.backlog.people import hidden
from kb.evidence.facts import fact_words, find_facts
from kb.evidence.glossary import has_chinese, translate
from kb.log.mask import mask
from kb.log.prefixes import split_prefix

_TITLE_WEIGHT, _SYMPTOM_WEIGHT, _LINE_WEIGHT = 3.0, 1.0, 1.5
_RESOLUTION_WEIGHT, _ENVIRONMENT_WEIGHT, _REST_WEIGHT = 0.5, 0.3, 1.0
"""How much a word counts by where it stands: who asks names the symptom, and seldom the remedy."""
_MAX_WORDS_PER_FIELD = 800
"""Of a story; what follows are dumps."""
_MAX_REST_CHARACTERS = 20_000
"""Of a first post, and of all answers to it, in which further words are looked for."""
_MAX_REST_WORDS = 400
"""Of each of these; some reports hold whole files."""

_MAX_STORY_CHARACTERS, _MAX_LINE_CHARACTERS = 180, 120
"""Of what is encoded: some 50 tokens. Twice as many would take three times as long."""

_MIN_CASE_CHARACTERS = 24
"""A shorter line or title, such as "Killed", does not make one case of two."""


def words_of(report: Report) -> dict[str, float]:
    """How often each word is said, more where it stands in the title."""
    counts: Counter[str] = Counter()
    for text, weight in _fields(report):
        words = list(islice(tokenize(text), _MAX_WORDS_PER_FIELD))
        for word, count in Counter(words).items():
            counts[word] += count * weight  # type: ignore[assignment]
    return dict(counts)


def rest_of(thread: Thread, report: Report) -> str:
    """The words of the whole thread that are nowhere else in its report: whoever asks may have
    printed a line that is in the middle of a long log, or in an answer."""
    known = words_of(report).keys()
    posts = [post.text for post in thread.posts]
    rest: dict[str, None] = {}
    for text in (posts[0] if posts else "", "\n".join(posts[1:])):
        said = _searchable(hidden(text[:_MAX_REST_CHARACTERS]).split("\n"))
        new = (word for word in tokenize(said) if word not in known and word not in rest)
        rest.update(dict.fromkeys(islice(dict.fromkeys(new), _MAX_REST_WORDS)))
    return " ".join(rest)


def gist_of(report: Report) -> str:
    """What is encoded: title, the beginning of the story, and the first line of its log."""
    story = masked(report.symptom)[:_MAX_STORY_CHARACTERS]
    line = report.lines[0][:_MAX_LINE_CHARACTERS] if report.lines else ""
    return "\n".join(filter(None, (masked(report.title), story, translate(line))))


def masked(text: str) -> str:
    """A text as a question is searched: without what differs from run to run, Chinese glossed."""
    return translate("\n".join(mask(split_prefix(line).text).strip() for line in text.split("\n")))


def case_key(report: Report) -> str:
    """Equal for reports of one case: they print the same lines, or bear the same title. Empty where
    neither is telling."""
    said = sorted(line for line in report.lines[:3] if len(line) >= _MIN_CASE_CHARACTERS)
    title = " ".join(re.findall(r"\w+", report.title.lower()))
    told = said or [title] * (len(title) >= _MIN_CASE_CHARACTERS)
    return hashlib.blake2b("\n".join(told).encode(), digest_size=12).hexdigest() if told else ""


def _fields(report: Report) -> Iterator[tuple[str, float]]:
    lines = [report.title, *report.lines]
    yield _searchable([report.title]), _TITLE_WEIGHT
    yield _searchable(report.symptom.split("\n")), _SYMPTOM_WEIGHT
    yield _searchable(report.lines), _LINE_WEIGHT
    yield fact_words(find_facts(lines)), _LINE_WEIGHT
    yield " ".join(report.environment), _ENVIRONMENT_WEIGHT
    yield report.rest, _REST_WEIGHT
    if report.resolution:
        yield _searchable(report.resolution.quote.split("\n")), _RESOLUTION_WEIGHT


def _searchable(lines: Iterable[str]) -> str:
    text = "\n".join(mask(line) for line in lines)
    return f"{text}\n{translate(text)}" if has_chinese(text) else text
