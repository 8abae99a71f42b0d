"""Documents: one report a file, or many: questions and answers, logbooks, dated sections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from kb.backlog.markup import without_tags, without_variables
from kb.backlog.model import Post, Role, Thread
from kb.backlog.sources.fields import (
    ITEM,
    Part,
    Piece,
    part_named,
    pieces,
    plain_title,
    question_in,
    tells_a_case,
)
from kb.backlog.sources.mirrors import is_mirror, threads_of_mirror
from kb.backlog.sources.model import Skipped, Why
from kb.backlog.sources.sections import Line, Section, front_matter, joined, sections
from kb.backlog.sources.times import date_in, read_time

_TROUBLE = re.compile(
    r"error|exception|fail|crash|hang|hung|timeout|timed out|bug|issue|problem|broke|wrong|unable"
    r"|cannot|can't|not work|n't work|outage|down\b|incident|slow|stuck|corrupt|leak|oom\b|spike"
    r"|diverge|instab|\bnan\b|kill|fault|lost|drop|miss(?:ing|ed)|abort|panic|unexpected|invalid"
    r"|报错|错误|失败|异常|故障|问题|超时|卡住|崩溃|不支持|无法|丢失|中断|缺失|溢出|不足|怎么|如何",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:how|what|why|can|could|does|do|did|is|are|which|where|when|who|will|should|i|my|am)\b"
    r"|.*[\u4e00-\u9fff]",
    re.IGNORECASE,
)
"""How a question begins; in a logbook a sign of doubt behind a heading is none."""
_FAQ = re.compile(r"faq|frequently|常见问题|疑难", re.IGNORECASE)
_IS_TEMPLATE = re.compile(r"\{\{ ?[a-z]+ [a-z][^{}\n]{1,80}\}\}|\byyyy-mm-dd\b", re.IGNORECASE)
_LINK = re.compile(r"!?\[[^\[\]\n]*\]\([^()\n]*\)|[ \t*\n-]{3,}")
_LABEL = re.compile(r"^\([\w-]+\)=$|^\[?!\[[^\]\n]*\]\([^)\n]*\)(?:\]\([^)\n]*\))?$", re.MULTILINE)
"""Lines that show nothing: a target of links, a picture."""
_MIN_CHARACTERS = 15
"""Of a section that stands for itself: less is an address or a heading's second line."""
_BARE_BYTES = 16
"""A shorter title, such as "TLDR", says nothing without what stands above it."""
_SMALL_CHARACTERS = 3_000
"""A document with headings but without dates, no longer than this, is one report."""
_UPDATE = re.compile(
    r"^[ \t]*(?:[-*+][ \t]+)?\*\*(?P<state>Resolved|Completed|Monitoring|Identified|Update|"
    r"Investigating|Notice|Notification|Scheduled|In progress|Verifying)"
    r"[ \t]*(?:\*\*[ \t]*[:：–-]|[:：]\*\*)",
    re.MULTILINE | re.IGNORECASE,
)
"""The beginning of a piece of news, as a status page has it."""
_FIRST_NEWS = ("investigating", "notice", "notification", "scheduled")
_LAST_NEWS = ("resolved", "completed")
_MAX_DEPTH = 8


class _Place(msgspec.Struct, frozen=True):
    """Where a section stands: what is known of all that lies below."""

    file: str
    titles: tuple[str, ...] = ()
    date: datetime | None = None
    url: str | None = None
    labels: tuple[str, ...] = ()
    is_faq: bool = False
    """Each heading is a question, whether it asks or not."""

    def below(self, section: Section) -> _Place:
        title = plain_title(section.title)
        return msgspec.structs.replace(
            self,
            titles=(*self.titles, title) if title else self.titles,
            date=date_in(title) or self.date,
            is_faq=self.is_faq or _FAQ.search(title) is not None,
        )


def threads_of_document(text: str, file: str) -> Iterator[Thread | Skipped]:
    """The reports in a document."""
    text = _LABEL.sub("", without_tags(without_variables(text)))
    if is_mirror(text):
        yield from threads_of_mirror(text, file)
        return
    fields, text = front_matter(text)
    root = sections(text)
    place = _Place(
        file,
        titles=tuple(filter(None, [fields.get("title", "")])),
        date=read_time(fields.get("date", "")) or date_in(file),
        is_faq=_FAQ.search(file) is not None,
        url=next(
            (url for name in ("url", "link") if (url := fields.get(name, ""))[:4] == "http"), None
        ),
        labels=tuple(
            filter(None, re.split(r"[\s,\[\]]+", fields.get("tags", fields.get("labels", ""))))
        ),
    )
    found = [thread for thread in _threads(root, place) if _is_told(thread)]
    if not found:
        template = _IS_TEMPLATE.search(text)
        yield Skipped(file, Why.EMPTY if template else Why.NO_REPORTS)
    yield from _numbered(found)


def _threads(section: Section, place: _Place, depth: int = 0) -> Iterator[Thread]:
    if depth > _MAX_DEPTH:
        return
    if question := _question(section) or _asked(section, place):
        yield from _answered(question, section, place)
        return
    own = list(pieces(section.body))
    named = [part_named(part.title) for part in section.parts]
    if tells_a_case([piece.part for piece in own if piece.part is not Part.STORY]):
        yield from _cases(own, place)
        if not any(named):
            yield from _below(section, place, depth)
            return
        own = []
    if _is_one(section, [part for part in named if part]):
        yield from _cases(list(pieces(section.lines())), place)
        return
    if own:
        yield _told(own, place)
    yield from _below(section, place, depth)


def _below(section: Section, place: _Place, depth: int) -> Iterator[Thread]:
    for part in section.parts:
        yield from _threads(part, place.below(part), depth + 1)


def _is_one(section: Section, named: Sequence[Part]) -> bool:
    """Whether a section and all below it tell one case."""
    if not section.parts or not section.title:
        return not section.parts
    if named and tells_a_case(named):
        return True
    others = [part for part in section.parts if part_named(part.title) is None]
    if any(_question(part) or date_in(part.title) for part in others):
        return False
    is_dated = date_in(section.title) is not None
    return is_dated and len(joined(section.body)) >= _MIN_CHARACTERS


def _question(section: Section) -> str | None:
    title = plain_title(section.title)
    if section.level and (question := question_in(title)):
        return question
    asks = title.endswith(("?", "？")) and _ASKS.match(title)
    return title if section.level > 1 and asks else None


def _asked(section: Section, place: _Place) -> str | None:
    """The heading of a section of questions, which needs not ask."""
    is_leaf = place.is_faq and section.level > 1 and not section.parts
    is_told = is_leaf and not tells_a_case([piece.part for piece in pieces(section.body)])
    return plain_title(section.title) if is_told and joined(section.body) else None


def _answered(question: str, section: Section, place: _Place) -> Iterator[Thread]:
    """A question and what is written below it: the answer, unless a part of it is named so.
    Further questions may follow in the same section."""
    lines = list(section.lines())
    found = list(pieces(lines))
    if not any(piece.part in (Part.ANSWER, Part.REMEDY) for piece in found):
        log = _leading_code(lines)
        answer = Piece(Part.ANSWER, joined(lines[log:]))
        yield _thread(question, [Piece(Part.STORY, joined(lines[:log])), answer], place)
        return
    yield from _cases([Piece(Part.QUESTION, question), *found], place)


def _leading_code(lines: Sequence[Line]) -> int:
    """Number of lines before the first words: a log there belongs to the question."""
    words = (n for n, line in enumerate(lines) if line.text.strip() and not line.is_code)
    return next(words, 0)


def _cases(found: Sequence[Piece], place: _Place) -> Iterator[Thread]:
    """The reports in parts that follow one another: a question begins one, and so does a symptom
    behind a remedy."""
    case: list[Piece] = []
    for piece in found:
        kinds = {known.part for known in case}
        begins = piece.part is Part.QUESTION or (
            piece.part in (Part.SYMPTOM, Part.STORY)
            and not kinds.isdisjoint((Part.REMEDY, Part.ANSWER))
        )
        if begins and case:
            yield _told(case, place)
            case = []
        case.append(piece)
    if case:
        yield _told(case, place)


def _told(found: Sequence[Piece], place: _Place) -> Thread:
    question = next((piece.text for piece in found if piece.part is Part.QUESTION), "")
    if question:
        found = [piece for piece in found if piece.part is not Part.QUESTION]
        return _thread(plain_title(question), found, place)
    item = found[0].text if ITEM.match(found[0].text) else ""
    if item and place.titles:
        first = re.split(r"(?<=[.。:：!?])\s|\n", ITEM.sub("", item, count=1))[0]
        return _thread(f"{place.titles[-1]}: {plain_title(first)}", found, place)
    return _thread("", found, place)


def _thread(title: str, found: Sequence[Piece], place: _Place) -> Thread:
    def texts(*parts: Part) -> list[str]:
        return [piece.text for piece in found if piece.part in parts and piece.text]

    story, *news = _news("\n\n".join(texts(Part.STORY, Part.SYMPTOM, Part.NOTE)))
    posts = [Post(story, Role.REPORTER, place.date)]
    posts += [Post(text, Role.MAINTAINER, place.date) for text in news]
    posts += [Post(text, Role.MAINTAINER, place.date) for text in texts(Part.COURSE, Part.CAUSE)]
    posts += [
        Post(text, Role.MAINTAINER, place.date, accepted=True)
        for text in texts(Part.REMEDY, Part.ANSWER)
    ]
    return Thread(
        source=place.file,
        title=title or _title(place),
        posts=tuple(posts),
        url=place.url,
        opened=place.date,
        labels=place.labels,
    )


def _news(story: str) -> list[str]:
    """A story as what a status page told one after the other, the first news first; pages put the
    last ones on top."""
    found = list(_UPDATE.finditer(story))
    if len(found) < 2 or story[: found[0].start()].strip():
        return [story]
    ends = [one.start() for one in found[1:]]
    news = [story[one.start() : end].strip() for one, end in zip(found, [*ends, None], strict=True)]
    first, last = found[0]["state"].lower(), found[-1]["state"].lower()
    return news[::-1] if last in _FIRST_NEWS or first in _LAST_NEWS else news


def _title(place: _Place) -> str:
    """The heading; of a date or a word alone, with what stands above it."""
    if not place.titles:
        return plain_title(re.split(r"[/\\]", place.file)[-1].rpartition(".")[0].replace("_", " "))
    own = re.sub(
        r"^(?:incident )?(?:date|title) *[:：] *", "", place.titles[-1], flags=re.IGNORECASE
    )
    dateless = re.sub(r"[\d\W_]+|\b(?:[A-Z][a-z]{2,8})\b(?= \d)", "", own)
    is_bare = len(dateless) < 4 or len(own.encode()) < _BARE_BYTES
    return f"{place.titles[-2]}: {own}" if is_bare and len(place.titles) > 1 else own


def _is_told(thread: Thread) -> bool:
    """Whether a section speaks of trouble, at some length, and is not to be filled in."""
    text = "\n".join(post.text for post in thread.posts)
    if _IS_TEMPLATE.search(f"{thread.title}\n{text}"[:2000]):
        return False
    if any(post.accepted for post in thread.posts):
        return True
    words = _LINK.sub("", text).strip("-*+# \n")
    return len(words) >= _MIN_CHARACTERS and _TROUBLE.search(f"{thread.title}\n{text}") is not None


def _numbered(threads: Sequence[Thread]) -> Iterator[Thread]:
    if len(threads) == 1:
        yield threads[0]
        return
    for number, thread in enumerate(threads, 1):
        yield msgspec.structs.replace(thread, source=f"{thread.source}#{number}")
