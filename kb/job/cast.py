"""The ranks and hosts of one attempt: what each said last, and how each failed."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from kb.evidence.markers import Grade
from kb.job.exits import Exit
from kb.job.kinds import Standing
from kb.job.lines import ATTACHED
from kb.job.recorder import Recorded
from kb.job.remark import Remark
from kb.log.mask import mask

_NATIVE = re.compile(
    r".{0,60}?\[[IWEF]\d{4} [\d:.]+ \S+\.cpp:\d+\]|[IWEF]\d{4} \d\d:.* torch/"
    r"|.*\bNCCL (?:INFO|WARN)\b|/\S+:\d+: \w*Warning"
)
_CHAINED = re.compile(
    r"During handling of the above exception|The above exception was the direct cause"
    r"|Original Traceback"
)
_UNHANDLED = re.compile(r"(?:Unhandled )?[Ee]xception in (?:thread|worker)|Process \S+-\d+:")
_LAST = 3
EXITED_WELL = r"\b(?:exit(?:ed|ing)? (?:with )?(?:status|code)|returned|rc|ret|status)[: =]*0\b"
_ENDED_WELL = re.compile(
    r"\b(?:finish(?:ed|ing)?|done|complet(?:ed?|ion)|success(?:ful(?:ly)?)?|bye|all good)\b"
    r"|" + EXITED_WELL,
    re.IGNORECASE,
)


class Voice:
    """All that one rank, or one host outside of its ranks, said in one attempt."""

    def __init__(
        self,
        rank: int | None,
        host: str | None,
        remarks: Sequence[Remark],
        settled: Mapping[str | None, int],
    ) -> None:
        self.rank = rank
        self.host = host
        self.remarks = _in_time(remarks)
        self._settled = settled

    @cached_property
    def ordinary(self) -> list[Remark]:
        """Lines of its everyday work, with neither complaints nor parts of a stack."""
        return [remark for remark in self.remarks if _is_ordinary(remark)]

    @property
    def last(self) -> Remark | None:
        """The last thing it said of its everyday work."""
        return self.ordinary[-1] if self.ordinary else None

    @property
    def last_file(self) -> str | None:
        """The file of its last line."""
        return self.remarks[-1].file

    @cached_property
    def failures(self) -> list[Remark]:
        """Complaints after which it did not go on with its work."""
        return [
            remark
            for place, remark in enumerate(self.remarks)
            if remark.row and not self._is_past(place, remark)
        ]

    def _is_past(self, place: int, remark: Remark) -> bool:
        """Whether the work went on after a complaint. What nobody says in a file of several ranks
        is past when each of them speaks later."""
        if remark.uncaught or place in self._unhandled:
            return False
        if self.rank is None and remark.file in self._settled:
            return remark.number < self._settled[remark.file]
        return place < self._went_on

    @cached_property
    def failure(self) -> Remark | None:
        """The complaint that tells most about why it failed."""
        if not self.failures:
            return None
        most = max(remark.standing for remark in self.failures)
        first = next(remark for remark in self.failures if remark.standing is most)
        return self._end_of_chain(first, most)

    @property
    def standing(self) -> Standing:
        """What that complaint says about it."""
        return self.failure.standing if self.failure else Standing.NONE

    @property
    def ended_well(self) -> bool:
        """Whether it says so, and does not complain afterwards."""
        return not self.failures and any(_ENDED_WELL.search(r.text) for r in self.remarks[-5:])

    @property
    def exited_well(self) -> bool:
        """Whether its last lines report an exit without error."""
        return any(re.search(EXITED_WELL, remark.text) for remark in self.remarks[-_LAST:])

    @cached_property
    def _unhandled(self) -> set[int]:
        """Places in stacks that ended a thread or a process, whatever others went on with."""
        places: set[int] = set()
        unhandled = False
        for place, remark in enumerate(self.remarks):
            unhandled = bool(_UNHANDLED.search(remark.text)) or (
                unhandled and not _is_ordinary(remark)
            )
            if unhandled:
                places.add(place)
        return places

    @cached_property
    def _went_on(self) -> int:
        """The place of the last line that shows it at its everyday work after a complaint."""
        first = next((place for place, remark in enumerate(self.remarks) if remark.row), None)
        if first is None or not any(_is_ordinary(remark) for remark in self.remarks[first:]):
            return -1
        seen: set[str] = set()
        last = -1
        for place, remark in enumerate(self.remarks):
            if _is_ordinary(remark):
                words = mask(remark.spoken)
                if words in seen or _ENDED_WELL.search(remark.text):
                    last = place
                seen.add(words)
        return last

    def _end_of_chain(self, first: Remark, most: Standing) -> Remark:
        """Of exceptions that led to each other, the one it died of."""
        chosen, linked = first, False
        start = next(place for place, remark in enumerate(self.remarks) if remark is first)
        for remark in self.remarks[start + 1 :]:
            linked = linked or bool(_CHAINED.search(remark.text))
            if linked and remark.standing is most:
                chosen, linked = remark, False
        return chosen


def _in_time(remarks: Sequence[Remark]) -> list[Remark]:
    """Merge the files of one voice. Lines without a time belong to the line before them; complaints
    that end a file are the last of all."""
    if len({remark.file for remark in remarks}) == 1:
        return list(remarks)
    complaining = {remark.file for remark in remarks if remark.row}
    last_stamp = {remark.file: place for place, remark in enumerate(remarks) if remark.stamped}
    uncaught = {remark.file for remark in remarks if remark.uncaught}
    first_at = {r.file: r.at for r in reversed(remarks) if r.at is not None}

    def when(place: int) -> float:
        remark = remarks[place]
        at_the_end = remark.file not in uncaught or remark.uncaught
        if remark.file in complaining and place > last_stamp.get(remark.file, -1) and at_the_end:
            return math.inf
        at = first_at.get(remark.file) if remark.at is None else remark.at
        return -math.inf if at is None else at

    return [remarks[place] for place in sorted(range(len(remarks)), key=when)]


def _is_ordinary(remark: Remark) -> bool:
    return (
        remark.grade in (Grade.CONTEXT, Grade.HINT)
        and not ATTACHED.match(remark.spoken)
        and any(character.isalnum() for character in remark.spoken)
        and not _NATIVE.match(remark.text)
        and not remark.uncaught
    )


def _without_copies(said: Sequence[Remark]) -> list[Remark]:
    """Drop what a launcher repeats in its own log of lines that a rank's file has."""
    files = Counter(remark.file for remark in said)
    seen: dict[str, str | None] = {}
    for remark in sorted(said, key=lambda one: -files[one.file]):
        seen.setdefault(remark.spoken, remark.file)
    return [remark for remark in said if seen[remark.spoken] == remark.file]


def _settled(voices: Iterable[Sequence[Remark]]) -> dict[str | None, int]:
    """By file of several ranks: the line up to which each of them goes on with its work."""
    last: dict[str | None, list[int]] = defaultdict(list)
    for said in voices:
        places = {remark.file: remark.number for remark in said if _is_ordinary(remark)}
        for file, number in places.items():
            last[file].append(number)
    return {file: min(numbers) for file, numbers in last.items() if len(numbers) > 1}


def _without_survivors(exits: Sequence[Exit], remarks: Iterable[Remark]) -> list[Exit]:
    """Without those of ranks that work on later in the same file: they were started again."""
    ended = {(one.rank, one.remark.file) for one in exits if one.rank is not None}
    lives_to: dict[tuple[int | None, str | None], int] = {
        place: remark.number
        for remark in remarks
        if (place := (remark.rank, remark.file)) in ended and _is_ordinary(remark)
    }
    return [
        one for one in exits if lives_to.get((one.rank, one.remark.file), -1) <= one.remark.number
    ]


class Cast:
    """Everybody who speaks in one attempt."""

    def __init__(
        self,
        remarks: Iterable[Remark],
        exits: Sequence[Exit],
        recorded: Recorded | None = None,
    ) -> None:
        remarks = list(remarks)
        self.exits = _without_survivors(exits, remarks)
        self.recorded = recorded
        by_rank: dict[int, list[Remark]] = defaultdict(list)
        by_host: dict[str | None, list[Remark]] = defaultdict(list)
        for remark in remarks:
            if remark.rank is None:
                by_host[remark.host].append(remark)
            else:
                by_rank[remark.rank].append(remark)
        by_rank = {rank: _without_copies(said) for rank, said in by_rank.items()}
        settled = _settled(by_rank.values())
        self.hosts = {host: Voice(None, host, said, settled) for host, said in by_host.items()}
        self.ranks = {
            rank: Voice(rank, self._host_of(rank, said), said, settled)
            for rank, said in sorted(by_rank.items())
        }

    @property
    def known_ranks(self) -> list[int]:
        """Ranks that speak or that are spoken of."""
        return sorted({*self.ranks, *(one.rank for one in self.exits if one.rank is not None)})

    @property
    def voices(self) -> list[Voice]:
        """All ranks, then all hosts."""
        return [*self.ranks.values(), *self.hosts.values()]

    def _host_of(self, rank: int, said: Sequence[Remark]) -> str | None:
        named = next((remark.host for remark in said if remark.host), None)
        return named or self.host_told(rank)

    def host_told(self, rank: int | None) -> str | None:
        """The host of a rank as a launcher reports it, or the only one that is named at all."""
        if rank is not None:
            for one in self.exits_of(rank):
                if one.host:
                    return one.host
        return next(iter(self._hosts_told)) if len(self._hosts_told) == 1 else None

    def exits_of(self, rank: int) -> list[Exit]:
        """All that is told about how a rank ended."""
        return self._exits_by_rank.get(rank, [])

    @cached_property
    def _hosts_told(self) -> set[str]:
        return {one.host for one in self.exits if one.host}

    @cached_property
    def _exits_by_rank(self) -> dict[int | None, list[Exit]]:
        found: dict[int | None, list[Exit]] = defaultdict(list)
        for one in self.exits:
            found[one.rank].append(one)
        return found
