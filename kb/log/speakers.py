"""Who says a line, where only the job's own logger tells: learned from a sample of each file.

Every program writes the rank its own way, `r3`, `ddpm[3]`, `(worker 3)`. A row of
`kb/rules/speakers.toml` is the way of a file when it fits many of its lines and its numbers behave
as ranks do: they alternate, while steps and epochs only grow.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise

import msgspec

from kb.log.slots import find_slot
from kb.numbers import read_int, read_ints
from kb.rules import read_rows
from kb.rules.rows import Speaker

_BEGINNING_CHARACTERS = 110
"""The part of a line in which its rank is looked for: further on, words speak of other ranks."""
_SPELLED = re.compile(r"\brank['\"]?[=:] ?['\"]?(?P<rank>\d{1,5})\b", re.IGNORECASE)
_FIELDS_CHARACTERS = 400
"""The same where a logger names its fields: the rank may be the last of them."""
_MIN_SPELLING_SHARE = 0.6
"""Share of a file's lines that must name such a field, so that it is certain."""
_SEPARATOR = re.compile(r"^ ?[\])>|:.]* ?")
_SLACK_CHARACTERS = 6
"""A name may end this far behind those of nine lines in ten: steps and times get longer."""
_MIN_NAMING_SHARE, _MIN_NAMING_LINES = 0.2, 3
"""Share and number of a file's lines that a way must fit: fewer fit by chance."""


_LABEL_NAME = r"[A-Za-z][\w.-]{0,40}\d\b"
_LABEL = re.compile(
    rf"\brank[ =:#]{{1,2}}(?P<rank>\d{{1,6}}) ?(?:is|=|->) ?(?P<label>{_LABEL_NAME})(?![\w-])"
    rf"|(?<![\w-])(?P<label2>{_LABEL_NAME}) ?(?:is|=|->) ?"
    rf"(?:global )?rank[ =:#]{{1,2}}(?P<rank2>\d{{1,6}})\b",
    re.IGNORECASE,
)
"""Where a program says which number a name has: `dp0-tp1 is rank 1`, `rank 1 is dp0-tp1`."""
_NAMED = re.compile(rf"(?<![\w-])(?P<label>{_LABEL_NAME})(?![\w-])")
_FROM = re.compile(r"\[from (?P<host>[^\]\s]{1,200})\]")
"""How a line of an export begins that names its host."""
_POD = re.compile(r"\[(?:from |pod/)[^\]\s]{1,200}\] ")
"""The same of `kubectl logs --prefix`: a number in the name of a pod counts pods."""
_FIELD = re.compile(r"\"(?P<field>[A-Za-z][\w.-]{0,40})\": ?(?P<number>\d{1,5})(?=[,}\s])")
"""A number in an object of JSON."""
_SYSLOG = re.compile(
    r"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} +\d{1,2} [\d:.]{8,15}|\d{4}-\d\d-\d\dT[\d:.+Z-]{8,24})"
    r" [\w.-]{1,100} [\w./@-]{1,100}\[(?P<pid>\d{1,7})\]: "
)
"""How a line of syslog begins that names the process."""


class Way(msgspec.Struct, frozen=True):
    """How the lines of one file name their rank."""

    pattern: re.Pattern[str]
    until: int = _BEGINNING_CHARACTERS
    several: bool = False
    """The file names more than one rank."""
    in_prefix: bool = False
    """The name stands in front of all messages: nothing before it is a part of one."""
    labels: tuple[tuple[str, int], ...] = ()
    """The names of ranks that are no numbers, in order, each with its rank."""

    def match(self, line: str) -> re.Match[str] | None:
        """Where a line names its rank."""
        # A pattern looks at what follows the name, too.
        named = self.pattern.finditer(line[: self.until + _SLACK_CHARACTERS])
        return next((match for match in named if self._fits(match)), None)

    def _fits(self, match: re.Match[str]) -> bool:
        if match.end() > self.until:
            return False
        if not (self.labels or self.in_prefix) and _names_other(match):
            return False
        return not self.labels or self._number(match["label"]) is not None

    def without_name(self, line: str) -> str:
        """The line without the name, where it begins with it."""
        match = self.match(line)
        if match is None or (line[: match.start()].strip("[(<") and not self.in_prefix):
            return line
        if self.in_prefix:  # which takes the separator with it; what is indented stays so
            return line[match.end() :]
        return _SEPARATOR.sub("", line[match.end() :], count=1)

    def rank(self, line: str) -> int | None:
        """The rank that a line names where the lines of this file do."""
        match = self.match(line)
        if match and self.labels:
            return self._number(match["label"])
        return read_int(match["rank"]) if match and "rank" in self.pattern.groupindex else None

    def fitted(self, lines: Sequence[str]) -> Way | None:
        """The way, read as far as these lines name their rank; None where most do not."""
        matches = [match for line in lines if (match := self.match(line))]
        if 2 * len(matches) <= len(lines):
            return None
        return msgspec.structs.replace(self, until=_until(matches))

    def _number(self, label: str) -> int | None:
        place = bisect_left(self.labels, (label, 0))
        found = self.labels[place : place + 1]
        return found[0][1] if found and found[0][0] == label else None

    def host(self, line: str) -> str | None:
        """The host that a line names where the lines of this file do."""
        match = self.match(line)
        return match["host"] if match and "host" in self.pattern.groupindex else None


def learn_way(lines: Sequence[str]) -> Way | None:
    """The way that fits a sample of a file's lines in their order, if one does."""
    best, best_fit = None, (False, max(_MIN_NAMING_LINES, int(_MIN_NAMING_SHARE * len(lines))) - 1)
    spelled = Way(_SPELLED, _FIELDS_CHARACTERS)
    ranks = [rank for line in lines if (rank := spelled.rank(line)) is not None]
    if len(ranks) > max(_MIN_SPELLING_SHARE * len(lines), _MIN_NAMING_LINES) and _repeat(ranks):
        return msgspec.structs.replace(spelled, several=len(set(ranks)) > 1)
    if (field := _field_of_hosts(lines)) is not None:
        return field
    beginnings = "\n".join(line[:_BEGINNING_CHARACTERS] for line in lines)
    for pattern, alone in _ways():
        if not pattern.search(beginnings):
            continue
        way = Way(pattern)
        matches = [match for line in lines if (match := way.match(line))]
        ranks = list(read_ints(match["rank"] for match in matches))
        fit = (len(set(ranks)) > 1, len(ranks))
        if not fit[0] and not alone:
            continue
        if (
            ranks
            and fit[1] > _MIN_NAMING_SHARE * len(lines)
            and fit > best_fit
            and _alternate(ranks)
        ):
            best = msgspec.structs.replace(way, until=_until(matches), several=fit[0])
            best_fit = fit
        if best_fit == (True, len(lines)):
            break  # no other way fits more
    if best is None or not best.several:
        best = _by_structure(lines) or best
    return best


def _field_of_hosts(lines: Sequence[str]) -> Way | None:
    """The field of JSON that most lines of an export have, in which each host has a number of its
    own, from 0 on, whatever the program calls it."""
    named = [(match["host"], line) for line in lines if (match := _FROM.match(line))]
    numbers: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for host, line in named:
        for match in _FIELD.finditer(line[:_FIELDS_CHARACTERS]):
            numbers[match["field"]][host].append(int(match["number"]))
    for field, by_host in numbers.items():
        told = [number for own in by_host.values() for number in own]
        own = sorted(number for numbers in by_host.values() for number in set(numbers))
        if (
            len(told) > max(_MIN_SPELLING_SHARE * len(lines), _MIN_NAMING_LINES)
            and own == list(range(len(by_host)))
            and 1 < len(by_host) == len({host for host, _line in named})
            and _repeat(told)
        ):
            pattern = re.compile(rf"\"{re.escape(field)}\": ?(?P<rank>\d{{1,5}})\b")
            return Way(pattern, _FIELDS_CHARACTERS, several=True)
    return None


def _names_other(match: re.Match[str]) -> bool:
    """Whether a number counts pods, or is that of a process, in front of what the program says."""
    if pod := _POD.match(match.string):
        return match.start() < pod.end()
    syslog = _SYSLOG.match(match.string)
    return syslog is not None and match.end() == syslog.end("pid") + 1


def _until(matches: Iterable[re.Match[str]]) -> int:
    ends = sorted(match.end() for match in matches)
    return ends[len(ends) * 9 // 10] + _SLACK_CHARACTERS


def learn_labels(lines: Iterable[str]) -> Way | None:
    """The names of ranks, where a program tells once which number each of them has."""
    ranks: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        if not ("rank" in line and (" is " in line or "=" in line or "->" in line)):
            continue
        for match in _LABEL.finditer(line[:_FIELDS_CHARACTERS]):
            rank = read_int(match["rank"] or match["rank2"])
            if rank is not None:
                ranks[match["label"] or match["label2"]].add(rank)
    single = {label: next(iter(seen)) for label, seen in ranks.items() if len(seen) == 1}
    if not 1 < len(set(single.values())) == len(single):
        return None
    return Way(_NAMED, several=True, labels=tuple(sorted(single.items())))


def _by_structure(lines: Sequence[str]) -> Way | None:
    pattern = find_slot(lines)
    if pattern is None:
        return None
    way = Way(pattern, several=True, in_prefix=True)
    return (
        way if _alternate(rank for line in lines if (rank := way.rank(line)) is not None) else None
    )


@cache
def _ways() -> tuple[tuple[re.Pattern[str], bool], ...]:
    """The rows, and whether each counts where a file holds only one number."""
    rows = read_rows("speakers", "speaker", Speaker)
    return tuple((re.compile(row.pattern, re.IGNORECASE | re.MULTILINE), row.alone) for row in rows)


def _repeat(ranks: Sequence[int]) -> bool:
    """Whether each number comes twice or more on average, as speakers do: in a list of the best,
    each rank stands once. Ranks may speak one after the other."""
    return len(ranks) >= 2 * len(set(ranks))


def _alternate(ranks: Iterable[int]) -> bool:
    """Whether numbers come and go again, as those of speakers do; or are always the same."""
    seen = list(ranks)
    distinct = set(seen)
    falls = sum(later < earlier for earlier, later in pairwise(seen))
    return len(distinct) == 1 or (falls >= len(distinct) - 1 and len(seen) >= 2 * len(distinct))
