"""What ended a case, quoted: of all sentences of a thread the one that tells it best."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum

import msgspec

from kb.backlog.markup import without_tags
from kb.backlog.model import Post, Resolution, Role, Thread
from kb.backlog.sentences import Sentence, sentences
from kb.backlog.wording import Says, duplicate_in, is_concrete, reading

_MAX_QUOTE_CHARACTERS = 700
"""Of a quote: a few sentences."""
_MAX_ANSWER_CHARACTERS = 1_500
"""Of an answer that its source marks as one."""
_SHORT_CHARACTERS = 450
"""A post no longer than this is quoted whole."""
_MAX_POST_CHARACTERS = 20_000
"""Read of a post."""
_MIN_REPEATED_CHARACTERS = 25
"""Of a line that is a repetition if it was there before; "Thanks!" is none."""
_FIRST_SENTENCES, _SENTENCES_OF_THANKS = 3, 8
"""Where thanks stand in a post, and how long one is that is all thanks."""
_MIN_TOLD_CHARACTERS = 36
"""Of a sentence that tells a remedy; a shorter one thanks for it."""
_SENTENCES_BEHIND = 3
"""Quoted behind the one that tells it, as far as they fit."""
_SENTENCES_BEFORE = 5
"""Quoted before one that only says that all is well: they tell what was done."""
_LONG_THREAD = 8
"""Answers of a thread in which more than one thing is talked about."""
_EARLY = 18
"""Ranks that an early post of such a thread loses: a change named at its end comes first."""
_LAST_POSTS = 3
"""Where it is said that all is well, for a thread whose remedy nobody tells."""
_MAX_DOCUMENT_POSTS = 8
"""A document with more parts than this is a thread."""

_UNSOLVED_STATES = re.compile(
    r"not.?planned|duplicate|wont|won't|cannot|can't|incomplete|invalid|not.a.(?:bug|problem)"
    r"|works.?for|stale|not.reproducible|rejected|abandoned|unresolved|later|moved|expired|declined"
)
_SOLVED_STATES = re.compile(r"fixed|^resolved|^done|^solved|implemented|answered|postmortem")
_OPEN_STATES = re.compile(
    r"^(?:open|opened|new|reopened|in.?progress|unconfirmed|assigned|to.?do|triaged?|investigating"
    r"|identified|monitoring)$"
)
_ADDED = re.compile(
    r"[\s*_#>\[-]*(?:edit|update|upd|solution|solved|fixed|workaround|fix|resolution|解决)"
    r"\w*[\s*_]*\d*[\s*_]*[:：]",
    re.IGNORECASE,
)
"""A reporter adds to the first post how it ended."""
_AROUND = re.compile(
    r"\b(?:downgrad|upgrad|revert|roll|sett?|us|disabl|remov|add|chang|switch|replac|install|pass)"
    r"(?:\w*\b.{0,120}\b(?:fix(?:es|ed)?|solve[sd]?|resolve[sd]?|helps?)|ing\b.{0,120}\bwork(?:s|ed))\b"
    r"|\bworkaround\b",
    re.IGNORECASE | re.DOTALL,
)
"""A way around the trouble that the reporter knew."""
_FIXES = re.compile(r"fix|solv|resol|revert|address|correct|修复|解决", re.IGNORECASE)
"""What a change does in a story; others are only part of its setting."""
_QUOTED = re.compile(
    r"^[ \t]{0,3}>.*\n?|^.*\b(?:wrote|写道)[:：][ \t]*\n?|<!--.*?-->", re.MULTILINE
)
_ANSWERED_MAIL = re.compile(
    r"^[ \t]*(?:On (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r"[a-z]*,? [^\n]{0,40}\b\d{4}\b[^\n]{0,20}(?:\d\d?:\d\d|,)|-{3,} ?Original Message"
    r"|You are receiving this because|Reply to this email directly).*\Z",
    re.MULTILINE | re.DOTALL,
)
"""The mail that a mail answers, below it."""
_ANNOUNCED = re.compile(
    r"\b(?:propos|suggest|recommend|advis|add|appl|chang|replac|set|us)\w*\b[^:]{0,40}"
    r"\b(?:the following|these|this)\b[^:]{0,40}:$",
    re.IGNORECASE,
)
"""What was done stands in the code that follows."""
_DEED = re.compile(
    r"\b(?:re-?)?(?:start|boot|creat|install|deploy|launch|seat|siz|plac|mov|set|nam|build|built|mount|"
    r"delet|switch|roll|vert|upgrad|downgrad|updat|disabl|enabl|chang|increas|reduc|drain|cordon|kill|"
    r"clear|clean|add|patch|scal|bump|lower|rais|limit|bann|cull|swapp|cycl|fix|appl|pinn|skipp)"
    r"(?:\w*ed|\w*ing)?\b|重启|更换|替换|升级|降级|删除|修改|关闭|重装|设置|调整|清理|扩容|回滚",
    re.IGNORECASE,
)
"""What people do about a trouble."""
_HEADING = re.compile(r"#{1,6}\s")
_IMAGE = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)|<img\b[^>\n]*>", re.IGNORECASE)


class _Rank(IntEnum):
    """How surely a sentence is the one that ended the case, by how it was found. Between two ranks
    there is room for who says it and how concretely."""

    ADVICE = 30
    AROUND = 40
    STORY = 60
    CHANGE = 70
    SOLVED = 80
    CONFIRMED = 85
    ACCEPTED = 100


class Ending(msgspec.Struct, frozen=True):
    """How a case ended."""

    resolution: Resolution | None = None
    resolved: bool = False
    duplicate_of: str | None = None


class _Read(msgspec.Struct, frozen=True):
    """A post and what its sentences say."""

    place: int
    post: Post
    text: str
    sentences: tuple[Sentence, ...]
    says: tuple[Says, ...]

    def places(self, what: Says) -> list[int]:
        """The sentences that say so."""
        return [place for place, says in enumerate(self.says) if says & what]

    def has(self, what: Says) -> bool:
        return any(says & what for says in self.says)

    @property
    def by_reporter(self) -> bool:
        return self.post.role is Role.REPORTER


class _Candidate(msgspec.Struct, frozen=True, order=True):
    """A sentence that may tell what ended the case; the largest is taken."""

    rank: int
    order: int
    post: int
    sentence: int


def ending(thread: Thread) -> Ending:
    """How a thread ended: what its posts say, and what its state denies."""
    is_document = _is_document(thread)
    posts = [
        _read(place, post, _may_add if place == 0 and not is_document else _anything)
        for place, post in enumerate(_without_repeats(thread.posts))
        if place == 0 or post.role is not Role.BOT
    ]
    answers = posts[1:]
    candidates = [*_accepted(answers)]
    if is_document:
        candidates += _in_document(posts)
    else:
        candidates += [*_confirmed(answers), *_told(answers), *_added(posts[:1])]
    if not candidates and not _is_open(thread) and not _is_unsolved(thread):
        candidates += _advised(answers)
    best = max(candidates, default=None)
    return Ending(
        _quoted(posts, best) if best else None,
        _is_resolved(thread, posts, best),
        thread.duplicate_of or next(filter(None, map(_duplicate, answers)), None),
    )


def _read(place: int, post: Post, wanted: Callable[[str], bool]) -> _Read:
    """A post, and what those of its sentences say that are wanted."""
    text = _own_words(post.text[:_MAX_POST_CHARACTERS]) if post.accepted else post.text.strip()
    found = tuple(sentences(text))
    says = tuple(
        reading(one.text) if not one.is_code and wanted(one.text) else Says.NOTHING for one in found
    )
    return _Read(place, post, text, found, says)


def _anything(_sentence: str) -> bool:
    return True


def _may_add(sentence: str) -> bool:
    """Whether a sentence of a first post may tell how it ended; most tell how it began."""
    return _ADDED.match(sentence) is not None or _AROUND.search(sentence) is not None


def _without_repeats(posts: Sequence[Post]) -> Iterator[Post]:
    """The posts without lines of earlier ones: answers repeat what they answer, and exports lose
    the signs that tell so."""
    known: set[str] = set()
    for post in posts:
        lines = _own_words(post.text[:_MAX_POST_CHARACTERS]).split("\n")
        new = [line for line in lines if line.strip() not in known]
        known |= {line.strip() for line in lines if len(line.strip()) >= _MIN_REPEATED_CHARACTERS}
        yield msgspec.structs.replace(post, text=post.text if post.accepted else "\n".join(new))


def _own_words(text: str) -> str:
    """A post without what it quotes of others."""
    plain = _QUOTED.sub("", _ANSWERED_MAIL.sub("", text.replace("\r\n", "\n")))
    return without_tags(_IMAGE.sub("", plain)).strip()


def _is_open(thread: Thread) -> bool:
    return _OPEN_STATES.match(thread.state) is not None


def _is_unsolved(thread: Thread) -> bool:
    return _UNSOLVED_STATES.search(thread.state) is not None


def _is_document(thread: Thread) -> bool:
    """Whether it was written by those who know the end: no tracker has it."""
    by_one = all(post.role is Role.MAINTAINER for post in thread.posts[1:])
    return (
        not thread.state
        and thread.closed is None
        and (by_one or len(thread.posts) <= _MAX_DOCUMENT_POSTS)
        and all(post.role in (Role.REPORTER, Role.MAINTAINER) for post in thread.posts)
        and (thread.url is None or "/issues/" not in thread.url)
    )


def _is_resolved(thread: Thread, posts: Sequence[_Read], best: _Candidate | None) -> bool:
    """Somebody says or shows so. A state alone counts where a person chose it among others."""
    if _is_unsolved(thread):
        return False
    answers, told = posts[1:], posts[:1] if _is_document(thread) else ()
    if _SOLVED_STATES.search(thread.state) or any(
        read.has(Says.WORKED | Says.OVER) for read in (*answers[-_LAST_POSTS:], *told)
    ):
        return True
    if best is None or any(read.has(Says.UNSOLVED) for read in answers if read.place > best.post):
        return False
    return best.rank >= (_Rank.SOLVED if _is_open(thread) else _Rank.STORY)


def _accepted(answers: Sequence[_Read]) -> Iterator[_Candidate]:
    for read in answers:
        if read.post.accepted and read.text:
            yield _Candidate(_Rank.ACCEPTED, -read.place, read.place, 0)


def _confirmed(answers: Sequence[_Read]) -> Iterator[_Candidate]:
    """What was advised before somebody said that it worked."""
    for number, read in enumerate(answers):
        if _confirms(read) and not _tells_its_own(read):
            helped = _helped(answers[:number], read)
            if helped is not None:
                rank = _Rank.CONFIRMED if read.by_reporter else _Rank.CONFIRMED - 12
                rank -= _EARLY * _is_early(read, answers)
                yield _Candidate(rank, helped.place, helped.place, _most_telling(helped))
            elif any(sign.isdigit() for sign in read.text):  # a number, a version: no mere thanks
                yield _Candidate(_Rank.AROUND, read.place, read.place, _most_telling(read))


def _confirms(read: _Read) -> bool:
    """Whether a post says near its beginning that it worked, as thanks do; an essay may speak of
    anything that works."""
    return any(
        place < _FIRST_SENTENCES or len(read.sentences) <= _SENTENCES_OF_THANKS
        for place in read.places(Says.WORKED)
    )


def _tells_its_own(read: _Read) -> bool:
    """Whether a post tells its own remedy, and does not only thank for one."""
    told = (read.sentences[place].text for place in read.places(Says.SOLVED | Says.CHANGE))
    return any(is_concrete(text) or len(text) > _MIN_TOLD_CHARACTERS for text in told)


def _helped(earlier: Sequence[_Read], thanks: _Read) -> _Read | None:
    """The last post before the thanks that gave advice, of somebody else where roles tell."""
    of_others = [read for read in reversed(earlier) if read.post.role is not thanks.post.role]
    helped = [read for read in of_others or list(reversed(earlier)) if _advises(read)]
    if not helped and thanks.by_reporter:
        helped = [read for read in of_others if any(is_concrete(s.text) for s in read.sentences)]
    return helped[0] if helped else None


def _advises(read: _Read) -> bool:
    told = Says.ADVICE | Says.CHANGE | Says.SOLVED | Says.EXPLAINS
    return any(says & told and not says & Says.DENIED for says in read.says)


def _most_telling(read: _Read) -> int:
    """The sentence of a post that tells most what to do."""

    def weight(place: int) -> tuple[int, int]:
        says = read.says[place]
        told = 4 * bool(says & Says.SOLVED) + 3 * bool(says & (Says.CHANGE | Says.ADVICE))
        told += (
            2 * bool(says & Says.EXPLAINS)
            + is_concrete(read.sentences[place].text)
            - 3 * bool(says & Says.DENIED)
        )
        return told, -place

    return max(range(len(read.sentences)), key=weight, default=0)


def _told(answers: Sequence[_Read]) -> Iterator[_Candidate]:
    """Sentences that tell themselves what ended it: by what somebody did, or by a change."""
    denied = _last_denial(answers)
    for read in answers:
        is_denied = read.place < denied
        for place in read.places(Says.SOLVED | Says.CHANGE):
            concrete = is_concrete(read.sentences[place].text)
            says = read.says[place]
            if says & Says.SOLVED and not says & Says.HEDGED:
                rank = _Rank.SOLVED + 4 * read.by_reporter + concrete
                rank -= 0 if says & Says.WORKED else 3 if read.by_reporter else 15
                rank -= 25 * (is_denied and not read.by_reporter)
                rank -= _EARLY * _is_early(read, answers)
                yield _Candidate(rank, -read.place, read.place, place)
            else:
                rank = _Rank.CHANGE + 2 * (read.post.role is Role.MAINTAINER) + concrete
                rank -= 35 * is_denied + 5 * bool(says & Says.HEDGED)
                yield _Candidate(rank, read.place, read.place, place)


def _is_early(read: _Read, answers: Sequence[_Read]) -> bool:
    """Whether a long thread went on for as long again behind a post: that was not its end."""
    return len(answers) > _LONG_THREAD and read.place * 2 < answers[-1].place


def _last_denial(answers: Sequence[_Read]) -> int:
    """The last post of the reporter which says that it did not help."""
    return max(
        (
            read.place
            for read in answers
            if read.by_reporter
            and read.has(Says.DENIED)
            and not read.has(Says.WORKED | Says.SOLVED)
        ),
        default=0,
    )


def _advised(answers: Sequence[_Read]) -> Iterator[_Candidate]:
    """The last advice of a closed thread that the reporter did not deny."""
    denied = _last_denial(answers)
    is_monologue = all(read.by_reporter for read in answers)
    for read in answers:
        is_own = read.by_reporter and not is_monologue
        if is_own or read.place < denied or read.has(Says.DENIED):
            continue
        for place in read.places(Says.ADVICE):
            rank = _Rank.ADVICE + 2 * is_concrete(read.sentences[place].text)
            rank += 2 * (read.post.role is Role.MAINTAINER)
            yield _Candidate(rank, -place, read.place, place)


def _in_document(posts: Sequence[_Read]) -> Iterator[_Candidate]:
    """A story that was written when it was over tells its end itself."""
    for read in posts:
        for place, says in enumerate(read.says):
            if says & (Says.HEDGED | Says.DENIED):
                continue
            rank = 5 * bool(says & Says.WORKED) + 3 * bool(says & Says.SOLVED)
            rank += 2 * bool(says & Says.DID) if rank else 0
            rank += 2 * bool(says & Says.CHANGE and _FIXES.search(read.sentences[place].text))
            if _is_relief(says) and not _tells_a_deed(read, place):
                continue
            if rank and (not says & Says.OVER or says & Says.SOLVED):
                yield _Candidate(_Rank.STORY + rank - 3, place, read.place, place)
            elif says & Says.DID and place:
                yield _Candidate(_Rank.AROUND, place, read.place, place)
            elif _announces(read, place):
                yield _Candidate(_Rank.ADVICE, place, read.place, place)


def _is_relief(says: Says) -> bool:
    """Whether a sentence says that all is well, and not what was done."""
    return bool(says & Says.WORKED and not says & (Says.SOLVED | Says.CHANGE))


def _tells_a_deed(read: _Read, place: int) -> bool:
    """Whether a sentence or those right before it tell what was done."""
    told = Says.SOLVED | Says.CHANGE | Says.DID | Says.ADVICE
    return any(
        one.is_code or says & told or _DEED.search(one.text)
        for one, says in zip(
            read.sentences[max(0, place - _SENTENCES_BEFORE) : place + 1],
            read.says[max(0, place - _SENTENCES_BEFORE) : place + 1],
            strict=True,
        )
    )


def _announces(read: _Read, place: int) -> bool:
    """Whether a sentence says that what was done follows, and code does."""
    following = read.sentences[place + 1 : place + 2]
    is_code = any(one.is_code for one in following)
    return is_code and _ANNOUNCED.search(read.sentences[place].text) is not None


def _added(first: Sequence[_Read]) -> Iterator[_Candidate]:
    """What the reporter added to the first post, or found to help before writing it."""
    told = Says.SOLVED | Says.WORKED | Says.ADVICE | Says.CHANGE
    for read in first:
        for place in read.places(told):
            text = read.sentences[place].text
            if _ADDED.match(text):
                yield _Candidate(_Rank.STORY, place, read.place, place)
            elif read.says[place] & Says.WORKED and read.says[place] & Says.SOLVED:
                yield _Candidate(_Rank.AROUND, place, read.place, place)


def _duplicate(read: _Read) -> str | None:
    found = (duplicate_in(read.sentences[place].text) for place in read.places(Says.DUPLICATE))
    return next(found, None)


def _quoted(posts: Sequence[_Read], best: _Candidate) -> Resolution | None:
    read = next(one for one in posts if one.place == best.post)
    if read.post.accepted:
        quote = _bounded(read.text, _MAX_ANSWER_CHARACTERS)
    elif len(read.text) <= _SHORT_CHARACTERS and read.place > 0:
        quote = read.text
    else:
        quote = _around(read, best.sentence)
    return Resolution(quote, read.post.role, read.post.time) if quote else None


def _around(read: _Read, place: int) -> str:
    """The sentence, the one before it, and what follows up to the next heading, as far as it fits.
    Of one that only says that all is well: what was done before."""

    def fits(first: int, last: int) -> bool:
        return read.sentences[last].end - read.sentences[first].start <= _MAX_QUOTE_CHARACTERS

    first = last = place
    if _is_relief(read.says[place]):
        while place - first < _SENTENCES_BEFORE and first and fits(first - 1, place):
            first -= 1
        while first < place and _HEADING.match(read.sentences[first].text):
            first += 1
    else:
        if place and not read.sentences[place - 1].is_code and fits(place - 1, place):
            first = place - 1
        if place + 1 < len(read.sentences) and read.sentences[place + 1].is_code:
            first = first if fits(first, place + 1) else place
        for behind in range(place + 1, min(place + 1 + _SENTENCES_BEHIND, len(read.sentences))):
            if _HEADING.match(read.sentences[behind].text):
                break
            if fits(first, behind):
                last = behind
    text = read.text[read.sentences[first].start : read.sentences[last].end]
    return _bounded(text, _MAX_QUOTE_CHARACTERS)


def _bounded(text: str, most: int) -> str:
    """The beginning of a text, cut at the end of a sentence."""
    if len(text) <= most:
        return text
    ends = [one.end for one in sentences(text[:most]) if one.end < most]
    return text[: ends[-1] if ends and ends[-1] > most // 3 else most]
