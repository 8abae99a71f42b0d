"""Who says what: the lines of all files, each with its rank, host, attempt and time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kb.evidence.markers import Grade
from kb.job.identity import Heard, Identities, identify, named_hosts
from kb.job.kinds import classify
from kb.job.lines import ATTACHED, Line
from kb.job.remark import Remark
from kb.log.layout import Origin, number_siblings, origin_of
from kb.log.prefixes import split_prefix
from kb.log.speakers import Way, learn_way
from kb.log.timestamps import Calendar, read_stamp

_SAMPLE, _SMALL_SAMPLE = 200, 30

_RESTART = re.compile(r"\bfailed \(exitcode: (?!0\))-?\d+\)")
_UNCAUGHT = re.compile(r".{0,60}?\[rank\d+\]:\s*(?!\[[IWEF]\d{4} )\S")
_NATIVE = re.compile(r"\.cpp:\d+\]")
_FEW_MARKED = 3
"""Where more everyday lines are marked so, the launcher marks them all."""
_SPEAKING_PID = re.compile(
    r"\[(?P<host>[A-Za-z][\w.-]*):(?P<pid>\d+)\] |.{0,60}?\bpid[=:](?P<pid2>\d+)\b"
)
_SYSLOG = re.compile(
    r"(?:\w{3} +\d+ \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ][\d:.,+-]+Z?) (?P<host>[A-Za-z][\w-]*\w)"
    r" [\w./-]+(?:\[\d+\])?: "
)
_NO_HOST = re.compile(r"^[^A-Za-z]|\.\d+$|^(?:INFO|DEBUG|WARN\w*|ERROR|CRITICAL|NOTICE)$", re.I)
_REPORT = re.compile(
    r"exitcode|MPI_ABORT|mpirun|mpiexec|srun: |Process name: \[\[|BAD TERMINATION|ActorDied|ray::"
    r"|exits with return code|\bKilled process \d|\*\*\* (?:STEP|JOB)\b|\bpid[=:]"
)
_TIMES = re.compile(r"\d ?(?:ms|s|sec)\b|fwd|bwd|comm\b|wait|idle|allreduce|\btime\b|/step")
_FEW_LINES = 40
_MOST_OF_A_RANK, _MANY_LINES = 0.5, 10
_MARKED = re.compile(r"\[rank(\d+)\]:")
_LAUNCHER = re.compile(
    r"torch/distributed/(?:run|launcher)|local_rank: \d+ \(pid|mpirun|mpiexec|\bsrun:"
    r"|started worker"
)
_ONLY_RANK = re.compile(r"\b(?:rank|task|node_rank|process)[ :=]+(\d+)(?: of |/)\d+", re.IGNORECASE)


class Recording(msgspec.Struct, frozen=True):
    """All that was heard in a job's files."""

    remarks: list[Remark]
    pids: dict[int, int]
    """Ranks by process id, where lines name both."""


class Glance(msgspec.Struct, frozen=True):
    """What a quick look at one file shows."""

    ranks: set[int]
    """Those that speak in its beginning, its end and its complaints."""
    several: bool
    """Several ranks or hosts, or a launcher, may speak in it."""
    troubled: bool
    """It holds complaints, or times by which ranks can be compared."""


def glance(lines: Sequence[Line]) -> Glance:
    """Look at one file, so that a calm log of one process costs next to nothing."""
    complaints = [line for line in lines if line.grade >= Grade.FOLLOW_ON]
    ends = [*lines[:_FEW_LINES], *lines[-_FEW_LINES:]]
    way = learn_way([line.text for line in ends if not ATTACHED.match(line.text)])
    few = [line.text for line in (*ends, *complaints[-_FEW_LINES:])]
    text = "\n".join(few)
    split = [split_prefix(line) for line in few]
    ranks = {spoken.rank for spoken in split} | {way.rank(line) for line in few if way}
    hosts = {_name(spoken.host) or _syslog_host(spoken.text) for spoken in split} - {None}
    several = _REPORT.search(text) is not None or len(ranks - {None}) > 1 or len(hosts) > 1
    troubled = bool(complaints) or _TIMES.search(text) is not None
    return Glance({rank for rank in ranks if rank is not None}, several, troubled)


def listen(files: Mapping[str, Sequence[Line]]) -> Recording:
    """Tell who says what in the lines of a job's files, by their names."""
    names, lines = list(files), list(files.values())
    origins = list(
        named_hosts([(n, origin_of(n), said) for n, said in zip(names, lines, strict=True)])
    )
    if len(files) == 1:  # a number in the name of a lone file may be that of the job
        origins = [msgspec.structs.replace(origins[0], rank=None, local_rank=None)]
    siblings = number_siblings(names)
    ways = [learn_way(_sample(s, o)) for s, o in zip(lines, origins, strict=True)]
    common = Counter(way for way in ways if way is not None and way.several).most_common(1)
    usual = common[0][0] if common else None
    heard = [
        list(_hear(origin, said, way or usual, siblings.get(name)))
        for name, origin, said, way in zip(names, origins, lines, ways, strict=True)
    ]
    calendar = Calendar(one.stamp for file in heard for one in file if one.stamp)
    identities = identify([one for file in heard for one in file])
    remarks = [remark for file in heard for remark in _remarks(file, calendar, identities)]
    return Recording(remarks, identities.pids)


def _sample(lines: Sequence[Line], origin: Origin) -> list[str]:
    """Beginning and end; less of a file whose name tells its rank already."""
    spoken = [line.text for line in lines if not ATTACHED.match(line.text)]
    half = _SAMPLE // 2 if origin.rank is None else _SMALL_SAMPLE // 2
    return spoken if len(spoken) <= 2 * half else [*spoken[:half], *spoken[-half:]]


def _hear(
    origin: Origin, lines: Sequence[Line], way: Way | None, number: int | None
) -> Iterator[Heard]:
    if origin.rank is not None or origin.local_rank is not None:
        return _of_one_rank(lines, origin, way)
    only = _only_rank(lines, origin, way, number) if _is_alone(lines) else None
    if only is not None:
        return _of_one_rank(lines, msgspec.structs.replace(origin, rank=only), way)
    return _of_several(lines, origin, way)


def _is_alone(lines: Sequence[Line]) -> bool:
    """Whether no launcher speaks in a file."""
    return _LAUNCHER.search("\n".join(line.text for line in lines)) is None


def _only_rank(
    lines: Sequence[Line], origin: Origin, way: Way | None, number: int | None
) -> int | None:
    """The rank of a file in which no other speaks, though its name does not tell."""
    rank = _told_rank(lines, origin, way, number)
    if rank is None or len({split_prefix(line.text).rank for line in lines} - {None}) > 1:
        return None
    return rank


def _told_rank(
    lines: Sequence[Line], origin: Origin, way: Way | None, number: int | None
) -> int | None:
    own = [line for line in lines if not ATTACHED.match(line.text)]
    said = [rank for line in own if way and (rank := way.rank(line.text)) is not None]
    if said:
        many = len(said) > max(_MOST_OF_A_RANK * len(own), _MANY_LINES)
        return said[0] if many and len(set(said)) == 1 else None
    marked = {int(m[1]) for line in lines if (m := _MARKED.match(line.text))}
    if len(marked) == 1 and number is not None:
        return marked.pop()
    stated = {int(digits) for digits in _ONLY_RANK.findall("\n".join(ln.text for ln in lines))}
    if origin.host is not None:
        return stated.pop() if len(stated) == 1 else None
    return number


def _of_one_rank(lines: Iterable[Line], origin: Origin, way: Way | None) -> Iterator[Heard]:
    """The file of one rank. Where its name tells another rank than its lines, they are right."""
    split = [(line, split_prefix(line.text)) for line in lines]
    named = Counter(spoken.rank for _line, spoken in split if spoken.rank is not None)
    if not named and way is not None and origin.rank is None:
        named = Counter(rank for line, _ in split if (rank := way.rank(line.text)) is not None)
    rank = next(iter(named)) if len(named) == 1 else origin.rank
    maybe_local = rank is None
    rank = origin.local_rank if rank is None else rank
    host = origin.host or next((_name(one.host) for _line, one in split if _name(one.host)), None)
    for line, spoken in split:
        yield Heard(
            line,
            spoken.text,
            rank,
            host,
            origin.attempt or 0,
            read_stamp(line.text),
            maybe_local=maybe_local,
        )


def _of_several(lines: Iterable[Line], origin: Origin, way: Way | None) -> Iterator[Heard]:
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
        yield Heard(
            line,
            way.without_name(spoken.text) if way is not None else spoken.text,
            rank,
            _name(spoken.host) or origin.host or _syslog_host(line.text),
            attempt,
            read_stamp(line.text),
            near,
            maybe_local=spoken.rank is None,
        )
        attempt += bool(_RESTART.search(line.text))


def _syslog_host(line: str) -> str | None:
    match = _SYSLOG.match(line)
    return match["host"] if match else None


def _name(host: str | None) -> str | None:
    """A host's name; not an address, a time or a rank's name that stood in its place."""
    if host is None or _NO_HOST.search(host):
        return None
    return host.removeprefix("slurmstepd-")


def _remarks(heard: Sequence[Heard], calendar: Calendar, known: Identities) -> Iterator[Remark]:
    everyday = (one for one in heard if one.stamp and not _NATIVE.search(one.line.text))
    marks = sum(_UNCAUGHT.match(one.line.text) is not None for one in everyday) < _FEW_MARKED
    at: dict[int | None, float] = {}
    times: dict[int | None, str] = {}
    for one in heard:
        rank, host = _speaker(one, known)
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


def _speaker(one: Heard, known: Identities) -> tuple[int | None, str | None]:
    """Rank and host of a line, with what other lines tell."""
    rank, host = one.rank, one.host
    if rank is None and known.pids and (match := _SPEAKING_PID.match(one.line.text)):
        rank = known.pids.get(int(match["pid"] or match["pid2"]))
        host = host or match["host"]
    elif rank is not None and one.maybe_local:
        rank = known.ranks.get((host, rank), rank)
    if host is None and rank is not None:
        host = known.hosts.get(rank)
    return rank, host
