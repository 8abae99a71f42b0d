"""Who is who in a job: ranks by process id, hosts by rank, global ranks by host and local rank."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kb.evidence.markers import Grade
from kb.expression import Expression
from kb.job.lines import ATTACHED, Line
from kb.log.layout import Origin, is_system_log
from kb.log.timestamps import Stamp
from kb.numbers import read_ints
from kb.rules import host_pattern

_RANK_AND_PID = Expression(
    r"(?<![a-z_])(?:(?:global|world|trainer|worker|process|proc|task|mpi)_)?(?:rank|worker|task|process|shard|replica|actor|tp|dp)"
    r"['\"]?[ :=#]+(?P<rank>\d+)\b"
    r".{0,60}?\bpid['\"]?[ :=]+(?P<pid>\d+)"
    r"|\[[\w.-]+:(?P<pid3>\d+)\] \*\*\* reported by process \[\d+,(?P<rank3>\d+)\]"
    r"|\bpid['\"]?[ :=]+(?P<pid2>\d+)\b.{0,40}?(?:\brank['\"]?[ :=]+|\) \[(?=\d+\]))(?P<rank2>\d+)",
    re.IGNORECASE,
)
_PID = Expression(r"\bpid['\"]?[ :=]+(\d+)", re.IGNORECASE)
_NAME = host_pattern("short_host")
_HOST = Expression(
    rf"\b(?:host(?:name)?|node(?:name)?|Running on machine)['\"]?[ :=]+['\"]?"
    rf"(?!v\d+\.\d)(?P<host>{_NAME})\b"  # the version of Node.js is none
    r"(?![.:]\w*\()"
    rf"|\bpid \d+ (?:on|at) (?:node |host )?(?P<host2>{_NAME})\b"
)
_NO_HOST = Expression(host_pattern("word_of_a_sentence"), re.IGNORECASE)
_USUAL_HOST = Expression(rf"(?<![\w-]){host_pattern('usual_host')}(?![\w:=-])")
_MIN_NAMED_LINES, _MAX_NAMED_LINES = 5, 40
"""A name in the beginning of at least 5 of the first 40 lines of a rank is that of its host: fewer
may speak of another host."""
_STEM = Expression(r"(?:^|/)([A-Za-z][\w-]+)(?:\.\w+)*$")
_NAME_PART = Expression(r"[A-Za-z][\w-]*\d[\w-]*|[a-z]+-[a-z]+")
_MIN_PROCESS = 1000
"""Where all numbers are at least this, they are those of processes: of a job with as many ranks, a
log names some of the first ones too."""
_BEGINNING_CHARACTERS = 60
"""Where a logger names its host, behind a time."""
_MIN_CONFIRMING_SHARE = 0.2
"""Share of a file's lines that must begin with a name, for it to be that of the host."""


class RawLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A line and what it tells by itself about its rank; its time is still as printed."""

    line: Line
    message: str
    rank: int | None
    host: str | None
    attempt: int
    stamp: Stamp | None
    silenced_rank: int | None = None
    """As in `LogLine`."""
    maybe_local: bool = False
    """The program's own logger names the rank, and may count per host."""


class Identities(msgspec.Struct, frozen=True):
    """What the lines of a job tell about its ranks."""

    ranks_by_pid: dict[int, int]
    by_process: frozenset[str | None]
    """The files whose logger names the process that speaks, where others name the rank."""
    hosts: dict[int, str]
    """Hosts by rank."""
    hosts_of_files: dict[str | None, str]
    """By file in which no rank speaks: the one host that its lines tell."""
    global_ranks: dict[tuple[str | None, int], int]
    """By host and local rank, where the programs count per host."""


def identify(raw_lines: Sequence[RawLine]) -> Identities:
    """Read who is who off the lines of all files."""
    global_ranks = _global_ranks(raw_lines)
    ranks_by_pid = _ranks_by_pid(raw_lines, global_ranks)
    by_process = frozenset(_files_by_process(raw_lines, ranks_by_pid))
    return Identities(
        ranks_by_pid, by_process, _hosts(raw_lines), _hosts_of_files(raw_lines), global_ranks
    )


def _files_by_process(
    raw_lines: Iterable[RawLine], ranks_by_pid: Mapping[int, int]
) -> Iterator[str | None]:
    named: dict[str | None, set[int]] = defaultdict(set)
    for one in raw_lines:
        if one.rank is not None and one.maybe_local:
            named[one.line.file].add(one.rank)
    highest = max(ranks_by_pid.values(), default=0)
    for file, numbers in named.items():
        if min(numbers) > highest and (
            min(numbers) >= _MIN_PROCESS or numbers & ranks_by_pid.keys()
        ):
            yield file


def _ranks_by_pid(
    raw_lines: Iterable[RawLine], global_ranks: Mapping[tuple[str | None, int], int]
) -> dict[int, int]:
    found: dict[int, int] = {}
    for one in raw_lines:
        if "pid" not in (text := one.line.text.lower()) and "reported by" not in text:
            continue
        match = _RANK_AND_PID.search(one.line.text)
        if match:
            part = list(read_ints(filter(None, match.groups())))
            if len(part) == 2:
                rank, pid = part if match["pid2"] is None and match["pid3"] is None else part[::-1]
                found.setdefault(pid, rank)
        elif one.rank is not None and (match := _PID.search(one.line.text)):
            rank = global_ranks.get((one.host, one.rank), one.rank) if one.maybe_local else one.rank
            found |= {pid: found.get(pid, rank) for pid in read_ints([match[1]])}
    return found


def _hosts(raw_lines: Iterable[RawLine]) -> dict[int, str]:
    """What ranks say about themselves, or else the name that most of their lines begin with."""
    found: dict[int, str] = {}
    begun: dict[int, Counter[str]] = defaultdict(Counter)
    seen: Counter[int] = Counter()
    for one in raw_lines:
        if one.rank is None:
            continue
        if seen[one.rank] < _MAX_NAMED_LINES:
            begun[one.rank].update(set(_USUAL_HOST.findall(one.line.text[:_BEGINNING_CHARACTERS])))
        seen[one.rank] += 1
        host = None if one.rank in found else _told_host(one.line)
        if host is not None:
            found[one.rank] = host
    for rank, names in begun.items():
        usual = names.most_common(1)
        if rank not in found and usual and usual[0][1] >= _MIN_NAMED_LINES:
            found[rank] = usual[0][0]
    return found


def _hosts_of_files(raw_lines: Iterable[RawLine]) -> dict[str | None, str]:
    """A launcher that starts no rank tells only its node."""
    told: dict[str | None, set[str]] = defaultdict(set)
    with_ranks: set[str | None] = set()
    for one in raw_lines:
        if one.rank is not None:
            with_ranks.add(one.line.file)
        elif one.line.file not in with_ranks and (host := _told_host(one.line)):
            told[one.line.file].add(host)
    return {
        file: next(iter(hosts))
        for file, hosts in told.items()
        if len(hosts) == 1 and file not in with_ranks
    }


def _told_host(line: Line) -> str | None:
    """The host that an everyday line tells; a frame of Node.js names modules, `node:internal`."""
    is_everyday = line.grade in (Grade.CONTEXT, Grade.HINT) and not ATTACHED.match(line.text)
    match = _HOST.search(line.text) if is_everyday else None
    host = (match["host"] or match["host2"]) if match else None
    return None if host is None or _NO_HOST.fullmatch(host) else host


def _global_ranks(raw_lines: Iterable[RawLine]) -> dict[tuple[str | None, int], int]:
    """Where the same rank speaks on two hosts, it is a local one. Torch's own marks, or else the
    order of the hosts, tell which it is."""
    local: dict[str | None, set[int]] = defaultdict(set)
    marked: dict[str | None, set[int]] = defaultdict(set)
    for one in raw_lines:
        if one.rank is not None and one.host is not None:
            (local if one.maybe_local else marked)[one.host].add(one.rank)
    counts = Counter(rank for ranks in local.values() for rank in ranks)
    if max(counts.values(), default=0) < 2:
        return {}
    size = max(len(ranks) for ranks in local.values())
    found = {}
    for place, host in enumerate(sorted(local, key=lambda h: (min(marked[h], default=0), str(h)))):
        seen = sorted(marked[host])
        first = seen[0] // size * size if seen else place * size
        exact = seen if len(seen) == len(local[host]) else range(first, first + size)
        found.update({(host, n): rank for n, rank in zip(sorted(local[host]), exact, strict=False)})
    return found


def named_hosts(files: Sequence[tuple[str, Origin, Sequence[Line]]]) -> Iterator[Origin]:
    """Take parts of the files' names for hosts where their lines begin with them as well. A plain
    word counts when several files are named in this way."""
    words = [
        None if is_system_log(name) else _confirmed(_STEM.findall(name), lines)
        for name, _origin, lines in files
    ]
    siblings = {word for word in words if word} if len(set(filter(None, words))) > 1 else set()
    for name, origin, lines in files:
        stems = set(_STEM.findall(name)) & siblings
        host = origin.host or _confirmed(_NAME_PART.findall(name), lines) or next(iter(stems), None)
        yield msgspec.structs.replace(origin, host=host)


def _confirmed(parts: Iterable[str], lines: Sequence[Line]) -> str | None:
    begun = [line.text[:_BEGINNING_CHARACTERS] for line in lines if not ATTACHED.match(line.text)]
    for part in parts:
        named = re.compile(rf"(?<![\w-]){re.escape(part)}(?![\w-])")
        if sum(bool(named.search(text)) for text in begun) > _MIN_CONFIRMING_SHARE * len(begun):
            return part
    return None
