"""Of ranks that wait: for whom. A hung rank is the one that prints no error."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable

from kb.job.cast import Cast, Voice
from kb.job.exits import read_ranks
from kb.job.kinds import Standing
from kb.job.remark import Remark
from kb.log.mask import mask

_LIST = r"(?P<ranks>\[?\d+(?:(?:, ?| and |-)\d+)*\]?)"
NAMED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\branks? {_LIST} failed to pass monitoredBarrier",
        rf"\bmissing ranks?:? {_LIST}",
        rf"\bwaiting (?:for|on) ranks? {_LIST}",
        rf"\branks? {_LIST} (?:did ?n.t|did not|has not|have not|hasn.t) (?:join|reach|call|enter)",
        rf"but didn't join collective[^.\n]*ranks? {_LIST}",
        rf"\btimed out .{{0,40}}\bfrom rank {_LIST}",
    )
)
"""Lines in which a waiting rank names those that it misses."""

_LAST = 3
_DIGITS = re.compile(r"\d+")
_STEP = re.compile(
    r"\b(?:step|iter(?:ation)?|batch|epoch|it|round|global_step|idx)s?\W{0,3}(\d+)", re.I
)


def named_missing(remarks: Iterable[Remark]) -> list[int]:
    """Ranks that others name as missing, most often named first."""
    votes: Counter[int] = Counter()
    for remark in remarks:
        for pattern in NAMED:
            match = pattern.search(remark.text)
            if match:
                votes.update(set(read_ranks(match["ranks"])))
                break
    return [rank for rank, _count in votes.most_common()]


_WORLD = re.compile(r"\bWORLD_SIZE=(\d+)")


def odd_worlds(voices: Iterable[Voice]) -> list[tuple[Voice, Remark]]:
    """Ranks that were started for another number of ranks than most, with the line that says so."""
    stated = {
        voice: (match[1], remark)
        for voice in voices
        for remark in voice.remarks
        if (match := _WORLD.search(remark.text))
    }
    common = Counter(size for size, _remark in stated.values()).most_common(2)
    if len(common) < 2 or common[0][1] == common[1][1]:
        return []
    return [(v, remark) for v, (size, remark) in stated.items() if size != common[0][0]]


def without_words(cast: Cast) -> list[Voice]:
    """Ranks that did not say that they waited for, or lost, another one."""
    return [voice for voice in cast.ranks.values() if voice.standing <= Standing.SAID]


def odd_ones(voices: Collection[Voice]) -> list[Voice]:
    """The minority, when ranks are compared by what they did last."""
    for likeness in (_template, _step):
        odd = _minority(voices, likeness)
        if odd:
            return odd
    return []


def strange_ones(voices: Collection[Voice]) -> list[Voice]:
    """Those among whose last words are some that nobody said before."""
    said: Counter[str] = Counter()
    for voice in voices:
        said.update({shape_of(remark.spoken) for remark in voice.ordinary[:-_LAST]})
    lasts = {voice.rank: [shape_of(r.spoken) for r in voice.ordinary[-_LAST:]] for voice in voices}
    for words in lasts.values():
        said.update(set(words))
    return [v for v in voices if any(said[words] == 1 for words in lasts[v.rank])]


def _minority(voices: Iterable[Voice], likeness: Callable[[Voice], Hashable]) -> list[Voice]:
    groups: dict[Hashable, list[Voice]] = defaultdict(list)
    for voice in voices:
        if voice.last:
            groups[likeness(voice)].append(voice)
    sizes = sorted((len(group) for group in groups.values()), reverse=True)
    if len(sizes) < 2 or sizes[-1] == sizes[0]:
        return []
    return [voice for group in groups.values() if len(group) < sizes[0] for voice in group]


def _template(voice: Voice) -> str:
    return shape_of(voice.last.spoken) if voice.last else ""


def shape_of(text: str) -> str:
    """What is the same in like lines of different ranks, whose names may be part of a word."""
    return _DIGITS.sub("#", mask(text))


def _step(voice: Voice) -> int:
    return step_of(voice.last.spoken) if voice.last else -1


def step_of(text: str) -> int:
    """The number of the step that a line tells of; -1 where it tells none."""
    match = _STEP.search(text)
    return int(match[1]) if match else -1


def furthest(voice: Voice) -> int:
    """The last step that a rank tells of."""
    return max((step_of(remark.spoken) for remark in voice.ordinary[-20:]), default=-1)
