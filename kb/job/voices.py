"""Who says what: the lines of all files, each with its rank, host, attempt and time."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from index.signatures import Scanner
from kb.evidence.markers import Grade
from kb.job.kinds import Kind, Row, Standing, classify
from kb.job.lines import ATTACHED, Line, read_lines
from kb.log import Log
from kb.log.layout import Origin, origin_of
from kb.log.prefixes import split_prefix
from kb.log.speakers import Way, learn_way
from kb.log.timestamps import Calendar, Stamp, read_stamp

_LINES_READ = 40_000
_LEAST_OF_A_FILE, _MOST_OF_A_FILE = 80, 20_000
_SAMPLE, _SMALL_SAMPLE = 600, 30

_RESTART = re.compile(r"\bfailed \(exitcode: (?!0\))-?\d+\)")
_UNCAUGHT = re.compile(r".{0,60}?\[rank\d+\]: ?\S")
_MOST_MARKED = 0.7
"""Where more lines are marked so, the launcher marks them all."""
_SPEAKING_PID = re.compile(
    r"\[(?P<host>[A-Za-z][\w.-]*):(?P<pid>\d+)\] |.{0,60}?\bpid[=:](?P<pid2>\d+)\b"
)
_RANK_AND_PID = re.compile(
    r"\b(?:rank|worker|task|process)[ :=#]+(?P<rank>\d+)\b.{0,60}?\bpid[ :=]+(?P<pid>\d+)"
    r"|\[[\w.-]+:(?P<pid3>\d+)\] \*\*\* reported by process \[\d+,(?P<rank3>\d+)\]"
    r"|\bpid[ :=]+(?P<pid2>\d+)\b.{0,40}?(?:\brank[ :=]+|\) \[)(?P<rank2>\d+)",
    re.IGNORECASE,
)
_PID = re.compile(r"\bpid[ :=]+(\d+)", re.IGNORECASE)
_HOST = re.compile(
    r"\b(?:host(?:name)?|node(?:name)?)['\"]?[ :=]+['\"]?(?P<host>[A-Za-z][\w-]*\w)\b(?![.:]\w*\()"
    r"|\bpid \d+ (?:on|at) (?:node |host )?(?P<host2>[A-Za-z][\w-]*\w)\b"
)
_SYSLOG = re.compile(
    r"(?:\w{3} +\d+ \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ][\d:.,+-]+Z?) (?P<host>[A-Za-z][\w-]*\w)"
    r" [\w./-]+(?:\[\d+\])?: "
)
_NAME_PART = re.compile(r"[A-Za-z][\w-]*\d[\w-]*|[a-z]+-[a-z]+")
_BEGINNING = 60
_SHARE = 0.2
_HOST_LIKE = re.compile(
    r"(?<![\w-])(?:node|host|gpu|nid|cn|dgx|hgx|compute|worker-node|ip)-?[a-z]{0,2}\d+(?:-\d+)*(?![\w:=-])"
)
_LEAST_NAMED = 5
_NO_HOSTS = re.compile(
    r"(?:name|and|is|are|of|was|not|memory|the|key|unreachable|list|side)$|rank", re.IGNORECASE
)


class Remark(msgspec.Struct, frozen=True, gc=False):
    """A line with who said it and when."""

    file: str | None
    number: int
    text: str
    spoken: str
    """The text without the prefixes that tell who speaks."""
    grade: Grade
    rank: int | None
    host: str | None
    attempt: int
    at: float | None
    """Seconds since 1970 by the clock of its host; of a line without a time, those of the line
    before it."""
    time: str | None
    """As printed."""
    stamped: bool
    """The line has a time of its own."""
    near: int | None
    """Of a line that names nobody, the rank that spoke before it, if that never spoke again."""
    uncaught: bool
    """Torch marks it as a part of the stack of an exception that nobody caught."""
    row: Row | None

    @property
    def standing(self) -> Standing:
        """What the line says about its rank."""
        return self.row.standing if self.row else Standing.NONE

    @property
    def kind(self) -> Kind | None:
        """The kind of failure that it tells of."""
        return self.row.kind if self.row else None


class _Heard(msgspec.Struct, frozen=True, gc=False):
    """A line and what it tells by itself about its speaker; its time is still as printed."""

    line: Line
    spoken: str
    rank: int | None
    host: str | None
    attempt: int
    stamp: Stamp | None
    near: int | None = None


class Recording(msgspec.Struct, frozen=True):
    """All that was heard in a job's files."""

    remarks: list[Remark]
    pids: dict[int, int]
    """Ranks by process id, where lines name both."""


def listen(log: Log, markers: Scanner) -> Recording:
    """Read a job's files once, each in its order.

    Raises:
        LogError: a source cannot be read.
    """
    share = _LINES_READ // max(len(log.sources), 1)
    budget = min(max(share, _LEAST_OF_A_FILE), _MOST_OF_A_FILE)
    files = []
    for source in log.sources:
        lines = read_lines(source, markers, budget)
        name = source.name or ""
        files.append((_confirmed(origin_of(name), name, lines), lines))
    ways = [learn_way(_sample(lines, origin)) for origin, lines in files]
    common = Counter(way for way in ways if way is not None and way.several).most_common(1)
    heard = [
        _hear(origin, lines, way or (common[0][0] if common else None))
        for (origin, lines), way in zip(files, ways, strict=True)
    ]
    calendar = Calendar(one.stamp for file in heard for one in file if one.stamp)
    pids = _pids(one for file in heard for one in file)
    hosts = _hosts(one for file in heard for one in file)
    remarks = [remark for file in heard for remark in _remarks(file, calendar, pids, hosts)]
    return Recording(remarks, pids)


def _hear(origin: Origin, lines: Sequence[Line], way: Way | None) -> list[_Heard]:
    if origin.rank is not None or origin.local_rank is not None:
        return list(_of_one_rank(lines, origin, way))
    return list(_of_several(lines, origin, way))


def _sample(lines: Sequence[Line], origin: Origin) -> list[str]:
    """Beginning and end; less of a file whose name tells its rank already."""
    spoken = [line.text for line in lines if not ATTACHED.match(line.text)]
    half = _SAMPLE // 2 if origin.rank is None else _SMALL_SAMPLE // 2
    return spoken if len(spoken) <= 2 * half else [*spoken[:half], *spoken[-half:]]


def _of_one_rank(lines: Iterable[Line], origin: Origin, way: Way | None) -> Iterator[_Heard]:
    """The file of one rank. Where its name tells another rank than its lines, they are right."""
    split = [(line, split_prefix(line.text)) for line in lines]
    named = Counter(spoken.rank for _line, spoken in split if spoken.rank is not None)
    if not named and way is not None:
        named = Counter(rank for line, _ in split if (rank := way.rank(line.text)) is not None)
    rank = next(iter(named)) if len(named) == 1 else origin.rank
    rank = origin.local_rank if rank is None else rank
    host = origin.host or next((_name(one.host) for _line, one in split if _name(one.host)), None)
    for line, spoken in split:
        stamp = read_stamp(line.text)
        yield _Heard(line, spoken.text, rank, host, origin.attempt or 0, stamp)


def _of_several(lines: Iterable[Line], origin: Origin, way: Way | None) -> Iterator[_Heard]:
    """A file in which several speak. A stack without a name belongs to who complained before it."""
    split = [(line, split_prefix(line.text)) for line in lines]
    named = [
        spoken.rank if spoken.rank is not None or way is None else way.rank(line.text)
        for line, spoken in split
    ]
    last_place = {rank: place for place, rank in enumerate(named) if rank is not None}
    attempt, speaker, in_stack, near = 0, None, False, None
    for place, ((line, spoken), rank) in enumerate(zip(split, named, strict=True)):
        if rank is not None:
            near = rank if last_place[rank] == place else None
        if rank is None and in_stack:
            rank = speaker
        if line.text.startswith("Traceback"):
            in_stack = True
            rank = speaker
        elif not ATTACHED.match(line.text):
            in_stack = False
            speaker = rank if line.grade >= Grade.HINT else None
        host = _name(spoken.host) or origin.host or _syslog_host(line.text)
        text = way.without_name(spoken.text) if way is not None else spoken.text
        yield _Heard(line, text, rank, host, attempt, read_stamp(line.text), near)
        attempt += bool(_RESTART.search(line.text))


def _syslog_host(line: str) -> str | None:
    match = _SYSLOG.match(line)
    return match["host"] if match else None


def _confirmed(origin: Origin, name: str, lines: Sequence[Line]) -> Origin:
    """Take a part of a file's name for a host when its lines begin with it as well."""
    if origin.host is not None:
        return origin
    begun = [line.text[:_BEGINNING] for line in lines if not ATTACHED.match(line.text)]
    for part in _NAME_PART.findall(name):
        named = re.compile(rf"(?<![\w-]){re.escape(part)}(?![\w-])")
        if sum(bool(named.search(text)) for text in begun) > _SHARE * len(begun):
            return msgspec.structs.replace(origin, host=part)
    return origin


def _name(host: str | None) -> str | None:
    """A host's name; not an address, a time or a rank's name that stood in its place."""
    if host is None or not host[0].isalpha() or re.search(r"\.\d+$", host):
        return None
    return host.removeprefix("slurmstepd-")


def _pids(heard: Iterable[_Heard]) -> dict[int, int]:
    """Ranks by process id, from lines that name both."""
    found: dict[int, int] = {}
    for one in heard:
        match = _RANK_AND_PID.search(one.line.text)
        if match:
            part = [int(text) for text in match.groups() if text is not None]
            rank, pid = part if match["pid2"] is None and match["pid3"] is None else part[::-1]
            found.setdefault(pid, rank)
        elif one.rank is not None and (match := _PID.search(one.line.text)):
            found.setdefault(int(match[1]), one.rank)
    return found


def _hosts(heard: Iterable[_Heard]) -> dict[int, str]:
    """Hosts by rank, from what ranks say about themselves."""
    found: dict[int, str] = {}
    begun: dict[int, Counter[str]] = defaultdict(Counter)
    for one in heard:
        if one.rank is None:
            continue
        begun[one.rank].update(set(_HOST_LIKE.findall(one.line.text[:_BEGINNING])))
        if one.rank in found:
            continue
        match = _HOST.search(one.line.text)
        if match and one.line.grade in (Grade.CONTEXT, Grade.HINT):
            host = match["host"] or match["host2"]
            if not _NO_HOSTS.match(host):
                found[one.rank] = host
    for rank, names in begun.items():
        usual = names.most_common(1)
        if rank not in found and usual and usual[0][1] >= _LEAST_NAMED:
            found[rank] = usual[0][0]
    return found


def _remarks(
    heard: Sequence[_Heard], calendar: Calendar, pids: dict[int, int], hosts: dict[int, str]
) -> Iterator[Remark]:
    marked = sum(_UNCAUGHT.match(one.line.text) is not None for one in heard)
    marks = marked < _MOST_MARKED * len(heard)
    at: dict[int | None, float] = {}
    times: dict[int | None, str] = {}
    for one in heard:
        rank, host = one.rank, one.host
        if rank is None and (match := _SPEAKING_PID.match(one.line.text)):
            rank = pids.get(int(match["pid"] or match["pid2"]))
            host = host or match["host"]
        if host is None and rank is not None:
            host = hosts.get(rank)
        seconds = calendar.seconds(one.stamp) if one.stamp else None
        if one.stamp and seconds is not None:
            at[rank], times[rank] = seconds, one.stamp.text
        yield Remark(
            one.line.file,
            one.line.number,
            one.line.text,
            one.spoken,
            one.line.grade,
            rank,
            host,
            one.attempt,
            at.get(rank),
            times.get(rank),
            one.stamp is not None and seconds is not None,
            one.near if rank is None else None,
            marks and _UNCAUGHT.match(one.line.text) is not None,
            classify(one.spoken, one.line.grade),
        )
