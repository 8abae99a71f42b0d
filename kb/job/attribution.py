"""Which rank prints which line: the lines of all files with rank, host, attempt and time."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import timedelta
from itertools import islice, pairwise, zip_longest

import msgspec

from kb.evidence.endings import says_end
from kb.evidence.markers import Grade
from kb.expression import Expression
from kb.job.containers import split_containers
from kb.job.exits import launcher_speaks, reports_exit
from kb.job.failures import classify
from kb.job.identity import Identities, RawLine, identify, named_hosts
from kb.job.lines import ATTACHED, Line
from kb.job.model import AttributedLog, LogLine
from kb.job.stated import stated_rank, stated_ranks
from kb.log.layout import Origin, is_kernel_log, number_siblings, origin_of, without_stream
from kb.log.prefixes import Spoken, split_prefix
from kb.log.speakers import Way, learn_labels, learn_way
from kb.log.timestamps import Calendar, Stamp, read_stamp
from kb.numbers import read_int, read_ints
from kb.rules import host_pattern

_SAMPLE_LINES, _SMALL_SAMPLE_LINES = 200, 30
"""Lines by which it is learned where a file names its ranks: enough to see ranks alternate. A file
whose name tells its rank needs fewer."""

_RESTART = Expression(r"\bfailed \(exitcode: (?!0\))-?\d+\)")
_GIVES_UP = "ChildFailedError"
_UNCAUGHT = Expression(r".{0,60}?\[rank\d+\]:\s*(?!\[[IWEF]\d{4} )\S")
_NATIVE = Expression(r"\.cpp:\d+\]")
_MIN_MARKED_LINES = 3
"""Where at least this many everyday lines are marked as uncaught ones are, the launcher marks them
all."""
_LEVEL = host_pattern("level")
_SPEAKING_PID = Expression(
    rf"\[(?P<host>{host_pattern('host_name')}):(?P<pid>\d+)\] "
    r"|(?!.{0,60}\b(?:ray::|PM2 log:)).{0,60}?\bpid[=:](?P<pid2>\d+)\b"
)
"""Behind `ray::` stands the process of which a driver speaks, and behind `PM2 log:` that of which
its supervisor does, here and in `_PROCESS`."""
_SYSLOG = Expression(
    r"(?:\w{3} +\d+ \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ][\d:.,+-]+Z?)"
    rf" (?!{_LEVEL} |PM2 )(?P<host>{host_pattern('short_host')}) [\w./-]+(?:\[\d+\])?: "
)
"""Looser than the prefix of syslog, which is taken off a line: here the time needs no zone."""
_NO_HOST = Expression(rf"[^A-Za-z].*|{_LEVEL}|{host_pattern('program_and_rank')}", re.IGNORECASE)
_TIMES = Expression(r"\d ?(?:ms|s|sec)\b|fwd|bwd|comm\b|wait|idle|allreduce|\btime\b|/step")
_MAX_END_LINES = 8
"""Of each rank: among so many last lines, it says that it is done."""
_PRESCAN_LINES = 40
"""Lines looked at in the beginning of a file, at its end, and of its last complaints."""
_MIN_SHARE_OF_ONE_RANK, _MIN_LINES_OF_ONE_RANK = 0.5, 10
"""A file whose name tells no rank is that of the one rank it names, if more than this share of its
lines, and more than this many, name it."""
_MARKED = Expression(r"\[rank(\d+)\]:")
_LAUNCHER = Expression(
    r"torch/distributed/(?:run|launcher)|local_rank: \d+ \(pid|mpirun|mpiexec|\bsrun:"
    r"|started worker"
)
"""Narrower than the launchers of `exits.toml`: a rank's own log may well hold `pid=`."""
_LETTER = Expression(r".{0,40}?(?:^|[\s|\[])[EFC][\s|\]]")
"""A level of one letter: error, fatal, critical. In front of a stack it tells whose that is."""
_NAMELESS = Origin()
_PROCESS = Expression(
    r"(?!.{0,120}\b(?:ray::|PM2 log:))"
    r".{0,120}?(?:[\w@-]\[(?P<tag>\d{2,7})\]: |\bpid[=:] ?(?P<pid>\d{1,7})\b)"
)
"""The id of a process, as syslog and Ray write it in front of a line."""
_MAX_LABEL_LINES = 2_000
"""Of the beginning of a file: there a program tells the names of its ranks."""
_MIN_STEPS_BACK, _STEPS_BACK_PER_STEP_FORTH = 10, 10
"""Between the times of the first lines of a file whose newest line comes first."""
_PID_IN_NAME = Expression(r"(?<!\d)\d{3,7}(?!\d)")
_ATTEMPT = Expression(
    r"\battempt[ _]?(?:no\.?|number|id)?[ :=#]{0,2}(\d{1,4})\b(?! ?(?:/|of)\b)", re.I
)
_ATTEMPT_CHARACTERS = 160
"""Where a rank that begins says which attempt it is: it says nothing before."""
_ONLY_RANK = Expression(
    r"\b(?:rank|task|node_rank|process)[ :=]+(\d+)(?: of |/|\b.{0,40}?\bworld[_ ]?size\W{1,3})\d+",
    re.IGNORECASE,
)
_EXECUTOR = Expression(r"\bStarting executor ID (\d+) on host\b")
"""What an executor of Spark says first; the number of its container is another one."""


class Prescan(msgspec.Struct, frozen=True):
    """What a quick look at one file shows."""

    ranks: set[int]
    """Those named in its beginning, its end and its complaints."""
    several: bool
    """Several ranks or hosts, or a launcher, may print into it."""
    troubled: bool
    """It holds complaints, or times by which ranks can be compared."""
    unfinished: bool
    """Most ranks or hosts say the end, and one does not."""


def prescan(lines: Sequence[Line]) -> Prescan:
    """Look at one file, so that a calm log of one process costs next to nothing."""
    complaints = [line for line in lines if line.grade >= Grade.FOLLOW_ON]
    ends = [*lines[:_PRESCAN_LINES], *lines[-_PRESCAN_LINES:]]
    way = learn_way([line.text for line in ends if not ATTACHED.match(line.text)])
    few = [line.text for line in (*ends, *complaints[-_PRESCAN_LINES:])]
    text = "\n".join(few)
    split = [split_prefix(line) for line in few]
    ranks = {prefixed.rank for prefixed in split} | {way.rank(line) for line in few if way}
    hosts = {_host_name(one.host) or _syslog_host(one.text) for one in split}
    hosts = (hosts | {way.host(line) for line in few if way}) - {None}
    launcher = launcher_speaks(text) or reports_exit(text)
    several = launcher or len(ranks - {None}) > 1 or len(hosts) > 1
    troubled = bool(complaints) or _TIMES.search(text) is not None
    unfinished = several and not troubled and _is_unfinished(lines, way)
    return Prescan({rank for rank in ranks if rank is not None}, several, troubled, unfinished)


def _is_unfinished(lines: Sequence[Line], way: Way | None) -> bool:
    known = _speakers((*lines[:_PRESCAN_LINES], *lines[-_PRESCAN_LINES:]), way)
    last = lines[-max(_PRESCAN_LINES, _MAX_END_LINES * len(known)) :]
    return one_does_not_end(known, _speakers((one for one in last if says_end(one.text)), way))


def _speakers(lines: Iterable[Line], way: Way | None) -> set[int | str]:
    """The ranks that print the lines, or the hosts where no rank is told."""
    speakers: set[int | str] = set()
    for line in lines:
        prefixed = split_prefix(line.text)
        rank = prefixed.rank if prefixed.rank is not None or way is None else way.rank(line.text)
        host = _host_name(prefixed.host) or (way.host(line.text) if way else None)
        speaker = host or _syslog_host(prefixed.text) if rank is None else rank
        if speaker is not None:
            speakers.add(speaker)
    return speakers


def one_does_not_end(known: Set[int | str] | Set[int], ended: Set[int | str] | Set[int]) -> bool:
    """Whether most of those that are known, two at least, say the end, and one does not. Of many
    jobs only the first rank says it, which tells nothing of the others."""
    return 2 <= len(ended) < len(known | ended) < 2 * len(ended)


def attribute_lines(files: Mapping[str, Sequence[Line]]) -> AttributedLog:
    """Tell which rank prints which line of a job's files, by their names."""
    files = {name: _oldest_first(lines) for name, lines in files.items()}
    siblings = number_siblings(list(files))
    parts_of_files = split_containers(files)
    parts = {name: lines for own in parts_of_files.values() for name, lines in own.items()}
    origins = _origins(parts, siblings)
    stated = stated_ranks({name: parts[name] for name, one in origins.items() if one.rank is None})
    samples = {name: _sample(lines, origins[name]) for name, lines in parts.items()}
    nameless = [name for name, origin in origins.items() if origin.rank is None]
    labels = learn_labels(
        line.text for name in nameless for line in islice(parts[name], _MAX_LABEL_LINES)
    )
    ways = {
        name: _way(sample, labels) if origins[name].rank is None else learn_way(sample)
        for name, sample in samples.items()
        if not is_kernel_log(name)
    }
    usual = _usual_way(ways.values()) or _way_of_all(samples, origins)
    raw = [
        [
            line
            for name, lines in own.items()
            for line in _raw_lines(
                origins[name],
                lines,
                (ways[name] or usual) if name in ways else None,
                siblings.get(name),
                stated.get(name),
            )
        ]
        for own in parts_of_files.values()
    ]
    raw = _with_twins(raw)
    calendar = Calendar(line.stamp for file in raw for line in file if line.stamp)
    identities = identify([line for file in raw for line in file])
    attributed = [line for file in raw for line in _log_lines(file, calendar, identities)]
    return AttributedLog(_with_copies(attributed), identities.ranks_by_pid)


def _with_twins(raw: Sequence[list[RawLine]]) -> list[list[RawLine]]:
    """Where a program writes two files that differ in their ending alone, such as `n1.out` and
    `n1.err`, and only one of them tells its rank, the other is of the same rank."""
    ranks: dict[str, set[int | None]] = defaultdict(set)
    for file in raw:
        if file:
            ranks[_program(file)].add(_rank_of_file(file))
    return [
        [msgspec.structs.replace(line, rank=next(iter(known))) for line in file]
        if file and len(known := ranks[_program(file)] - {None}) == 1 and _is_nameless(file)
        else file
        for file in raw
    ]


def _program(file: Sequence[RawLine]) -> str:
    return without_stream(file[0].line.file or "")


def _is_nameless(file: Iterable[RawLine]) -> bool:
    return all(line.rank is None for line in file)


def _rank_of_file(file: Sequence[RawLine]) -> int | None:
    """The rank that all lines of a file have; None where there is none."""
    ranks = {line.rank for line in file}
    return ranks.pop() if len(ranks) == 1 else None


def _with_copies(lines: Sequence[LogLine]) -> list[LogLine]:
    """What a launcher repeats of a rank is that of the rank, if no other rank says the same."""
    told: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        if line.rank is not None and line.grade >= Grade.FOLLOW_ON:
            told[line.message].add(line.rank)
    return [
        msgspec.structs.replace(line, rank=next(iter(ranks)))
        if line.rank is None and len(ranks := told.get(line.message, ())) == 1
        else line
        for line in lines
    ]


def _oldest_first(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines of a file in the order in which they were printed: exports may begin with the
    newest. A line without a time belongs to the one before it."""
    first, last = _first_stamp(lines), _first_stamp(reversed(lines))
    if first is None or last is None or first.moment <= last.moment:
        return lines
    sample = [stamp for line in lines[:_SAMPLE_LINES] if (stamp := read_stamp(line.text))]
    steps = [later.moment - earlier.moment for earlier, later in pairwise(sample)]
    back, forth = (
        sum(step < timedelta() for step in steps),
        sum(step > timedelta() for step in steps),
    )
    if back < _MIN_STEPS_BACK or forth * _STEPS_BACK_PER_STEP_FORTH > back:
        return lines
    said: list[list[Line]] = []
    before: Stamp | None = None
    for line in lines:
        stamp = read_stamp(line.text)
        if said and (stamp is None or (line.number == said[-1][-1].number and stamp == before)):
            said[-1].append(line)
        else:
            said.append([line])
            before = stamp
    return [line for part in reversed(said) for line in part]


def _first_stamp(lines: Iterable[Line]) -> Stamp | None:
    stamps = (read_stamp(line.text) for line in islice(lines, _PRESCAN_LINES))
    return next(filter(None, stamps), None)


def _way(sample: Sequence[str], labels: Way | None) -> Way | None:
    """How a file names its ranks: by their labels, or as its lines show, where the prefixes of
    launchers do not contradict it: a host may be called `worker-1`."""
    if labels is not None and (named := labels.fitted(sample)):
        return named
    way = learn_way(sample)
    if way is None:
        return None
    told = [
        (spoken.rank, way.rank(line))
        for line in sample
        if not (spoken := split_prefix(line)).is_local
    ]
    both = [pair for pair in told if None not in pair]
    agreed = sum(one == other for one, other in both)
    return way if not both or 2 * agreed > len(both) else None


def _usual_way(ways: Iterable[Way | None]) -> Way | None:
    """The way of most files into which several ranks print."""
    common = Counter(way for way in ways if way and way.several).most_common(1)
    return common[0][0] if common else None


def _way_of_all(samples: Mapping[str, Sequence[str]], origins: Mapping[str, Origin]) -> Way | None:
    """The way of files of one rank each, whose names tell nothing: side by side, their lines show
    what differs between them."""
    nameless = [lines for name, lines in samples.items() if origins[name] == _NAMELESS]
    if len(nameless) < 2:
        return None
    beside = zip_longest(*(lines[: _SAMPLE_LINES // len(nameless) + 2] for lines in nameless))
    return _way([line for row in beside for line in row if line is not None], None)


def _origins(files: Mapping[str, Sequence[Line]], siblings: Mapping[str, int]) -> dict[str, Origin]:
    """What the names of the files tell. A number in the name of a lone file may be that of the
    job, and one that all siblings share is none of a rank."""
    named = named_hosts([(name, origin_of(name), lines) for name, lines in files.items()])
    origins = dict(zip(files, named, strict=True))
    ranks = {origins[name].rank for name in siblings}
    shared = len(ranks) == 1 < len(set(siblings.values())) and None not in ranks
    return {
        name: msgspec.structs.replace(origin, rank=None, local_rank=None)
        if len(origins) == 1 or (shared and name in siblings and origin.host is None)
        else origin
        for name, origin in origins.items()
    }


def _sample(lines: Sequence[Line], origin: Origin) -> list[str]:
    """Beginning and end; less of a file whose name tells its rank already."""
    texts = [line.text for line in lines if not ATTACHED.match(line.text)]
    half = (_SAMPLE_LINES if origin.rank is None else _SMALL_SAMPLE_LINES) // 2
    return texts if len(texts) <= 2 * half else [*texts[:half], *texts[-half:]]


def _raw_lines(
    origin: Origin,
    lines: Sequence[Line],
    way: Way | None,
    number: int | None,
    stated: int | None,
) -> Iterator[RawLine]:
    if origin.rank is not None or origin.local_rank is not None:
        return _lines_of_one_rank(lines, origin, way)
    only = None
    if _has_no_launcher(lines):
        only = _only_rank(lines, origin, way, number)
        only = only if stated is None or _names_several(lines, way) else stated
    if only is not None:
        return _lines_of_one_rank(lines, msgspec.structs.replace(origin, rank=only), way)
    return _lines_of_several_ranks(lines, origin, way)


def _has_no_launcher(lines: Sequence[Line]) -> bool:
    return _LAUNCHER.search("\n".join(line.text for line in lines)) is None


def _names_several(lines: Sequence[Line], way: Way | None) -> bool:
    """Whether the lines of a file begin with the names of several ranks."""
    told = {split_prefix(line.text).rank for line in lines}
    named = {way.rank(line.text) for line in lines} if way is not None else set()
    return len(told - {None}) > 1 or len(named - {None}) > 1


def _only_rank(
    lines: Sequence[Line], origin: Origin, way: Way | None, number: int | None
) -> int | None:
    """The rank of a file in which no other prints, though its name does not tell."""
    rank = _stated_rank(lines, origin, way, number)
    if rank is None or len({split_prefix(line.text).rank for line in lines} - {None}) > 1:
        return None
    return rank


def _stated_rank(
    lines: Sequence[Line], origin: Origin, way: Way | None, number: int | None
) -> int | None:
    own = [line for line in lines if not ATTACHED.match(line.text)]
    executors = {match[1] for line in own if (match := _EXECUTOR.search(line.text))}
    if len(executors) == 1:
        return read_int(executors.pop())
    named = [rank for line in own if way and (rank := way.rank(line.text)) is not None]
    if named:
        many = len(named) > max(_MIN_SHARE_OF_ONE_RANK * len(own), _MIN_LINES_OF_ONE_RANK)
        return named[0] if many and len(set(named)) == 1 else None
    marked = set(read_ints(m[1] for line in lines if (m := _MARKED.match(line.text))))
    if len(marked) == 1 and number is not None:
        return marked.pop()
    stated = set(read_ints(_ONLY_RANK.findall("\n".join(line.text for line in lines))))
    if origin.host is not None or number is None:
        return stated.pop() if len(stated) == 1 else None
    return number


def _lines_of_one_rank(lines: Iterable[Line], origin: Origin, way: Way | None) -> Iterator[RawLine]:
    """The file of one rank. Where its name tells another rank than its lines, they are right."""
    split = [(line, split_prefix(line.text)) for line in lines]
    named = Counter(prefixed.rank for _line, prefixed in split if prefixed.rank is not None)
    if not named and way is not None and origin.rank is None:
        named = Counter(rank for line, _ in split if (rank := way.rank(line.text)) is not None)
    rank = next(iter(named)) if len(named) == 1 else origin.rank
    maybe_local = rank is None
    rank = origin.local_rank if rank is None else rank
    host = origin.host or next(filter(None, (_host_name(one.host) for _line, one in split)), None)
    for line, prefixed in split:
        yield RawLine(
            line=line,
            message=prefixed.text,
            rank=rank,
            host=host,
            attempt=origin.attempt or 0,
            stamp=read_stamp(line.text),
            maybe_local=maybe_local,
        )


def _lines_of_several_ranks(
    lines: Sequence[Line], origin: Origin, way: Way | None
) -> Iterator[RawLine]:
    """A file into which several print. A line without a name belongs to the rank whose process
    prints it, and a stack without one to the rank that complained before it. Where processes say
    which rank they are, a number in front of all lines is that of a host."""
    split = [(line, split_prefix(line.text)) for line in lines]
    processes = [_process(line.text, prefixed) for line, prefixed in split]
    stated = _owners(processes, [stated_rank(line.text) for line in lines])
    way = None if stated and way is not None and way.in_prefix else way
    named = [
        prefixed.rank if prefixed.rank is not None or way is None else way.rank(line.text)
        for line, prefixed in split
    ]
    owners = stated | _owners(processes, named)
    named = [
        owners.get(process) if rank is None else rank
        for process, rank in zip(processes, named, strict=True)
    ]
    last_index = {rank: index for index, rank in enumerate(named) if rank is not None}
    attempts_begun = _stated_attempts([line.text for line, _prefixed in split], named)
    attempts: dict[int | None, int] = {}
    hosts = [
        _host_name(prefixed.host)
        or (way.host(line.text) if way is not None else None)
        or origin.host
        or _syslog_host(line.text)
        for line, prefixed in split
    ]
    begins_again = _restarts([line.text for line, _prefixed in split], hosts)
    restarts: Counter[str | None] = Counter()
    """By host: each has a launcher, and a file may hold one host after the other."""
    speaker, in_stack, silenced_rank = None, False, None
    for index, ((line, prefixed), rank) in enumerate(zip(split, named, strict=True)):
        if rank is not None:
            silenced_rank = rank if last_index[rank] == index else None
        if rank is None and (in_stack or ATTACHED.match(line.text)):
            rank = speaker
        if line.text.startswith("Traceback"):
            in_stack = True
            rank = speaker
        elif not ATTACHED.match(line.text):
            in_stack = False
            complains = line.grade >= Grade.HINT or _LETTER.match(line.text)
            speaker = rank if complains else None
        if index in attempts_begun:
            attempts[rank] = attempts_begun[index]
        host = hosts[index]
        restarted = max(restarts.values(), default=0) if host is None else restarts[host]
        yield RawLine(
            line=line,
            message=_message(line.text, prefixed, way),
            rank=rank,
            host=host,
            attempt=max(
                origin.attempt or 0,
                restarted + attempts.get(rank, max(attempts.values(), default=0)),
            ),
            stamp=read_stamp(line.text),
            silenced_rank=silenced_rank,
            maybe_local=prefixed.is_local
            or (prefixed.rank is None and (way is None or not way.labels)),
        )
        restarts[host] += index in begins_again


def _restarts(lines: Sequence[str], hosts: Sequence[str | None]) -> set[int]:
    """By index: the lines by which a launcher says that it starts its ranks again. It says the same
    when it gives up, and then names the failures."""
    found: set[int] = set()
    gives_up: set[str | None] = set()
    for index in range(len(lines) - 1, -1, -1):
        if _GIVES_UP in lines[index]:
            gives_up.add(hosts[index])
        elif _RESTART.search(lines[index]):
            if hosts[index] not in gives_up:
                found.add(index)
            gives_up.discard(hosts[index])
    return found


_Process = tuple[str | None, str | None]
"""The first word of a line, where it names the host, and the id of the process."""


def _process(line: str, prefixed: Spoken) -> _Process | None:
    """The process that prints a line, as a transport names it."""
    match = _PROCESS.match(line) if "]: " in line or "pid" in line else None
    pid = (match["pid"] or match["tag"]) if match else None
    host = prefixed.host
    if host is not None and host in (word := line.split(" ", 1)[0]):
        return word, pid
    return None if pid is None else (host, pid)


def _owners(
    processes: Sequence[_Process | None], named: Sequence[int | None]
) -> dict[_Process | None, int]:
    """The ranks of processes that name only one; none where two of them name the same."""
    ranks: dict[_Process, set[int]] = defaultdict(set)
    for process, rank in zip(processes, named, strict=True):
        if process is not None and rank is not None:
            ranks[process].add(rank)
    single = {process: next(iter(seen)) for process, seen in ranks.items() if len(seen) == 1}
    counts = Counter(single.values())
    if len(counts) < 2:
        return {}
    return {process: rank for process, rank in single.items() if counts[rank] == 1}


def _stated_attempts(lines: Sequence[str], named: Sequence[int | None]) -> dict[int, int]:
    """By index of a line: the number of the attempt with which its rank begins there. It is one
    where most ranks state it, each of them once: a reader counts its own tries."""
    stated: dict[int, dict[int, int]] = defaultdict(dict)
    often = Counter[tuple[int, int]]()
    for index, (line, rank) in enumerate(zip(lines, named, strict=True)):
        if rank is None or "ttempt" not in line:
            continue
        match = _ATTEMPT.search(line[:_ATTEMPT_CHARACTERS])
        number = read_int(match[1]) if match else None
        if number is not None:
            stated[number][rank] = index
            often[number, rank] += 1
    ranks = len(set(named) - {None})
    return {
        index: number
        for number, places in stated.items()
        if ranks > 1 and 2 * len(places) > ranks
        for rank, index in places.items()
        if often[number, rank] == 1
    }


def _message(line: str, prefixed: Spoken, way: Way | None) -> str:
    if way is None or (way.in_prefix and prefixed.rank is not None):
        return prefixed.text
    if way.in_prefix:
        return split_prefix(way.without_name(line)).text
    return way.without_name(prefixed.text)


def _syslog_host(line: str) -> str | None:
    match = _SYSLOG.match(line)
    return match["host"] if match else None


def _host_name(host: str | None) -> str | None:
    """A host's name; not an address, a time or a rank's name that stood in its place."""
    if host is None or _NO_HOST.fullmatch(host):
        return None
    return host.removeprefix("slurmstepd-")


def _log_lines(
    raw: Sequence[RawLine], calendar: Calendar, identities: Identities
) -> Iterator[LogLine]:
    """The lines of one file, finished: a line without a time has that of its rank's line before."""
    marks_uncaught = _marks_only_uncaught(raw)
    owner = _owner_of_file(raw, identities)
    epoch_seconds: dict[int | None, float] = {}
    times: dict[int | None, str] = {}
    for place, one in enumerate(raw):
        rank, host = _rank_and_host(one, identities)
        if rank is None and owner is not None:
            rank, host = owner, host or identities.hosts.get(owner)
        seconds = calendar.seconds(one.stamp) if one.stamp else None
        if one.stamp and seconds is not None:
            epoch_seconds[rank], times[rank] = seconds, one.stamp.text
        yield LogLine(
            file=one.line.file,
            number=one.line.number,
            place=place,
            text=one.line.text,
            message=one.message,
            grade=one.line.grade,
            rank=rank,
            host=host,
            attempt=one.attempt,
            epoch_seconds=epoch_seconds.get(rank),
            time=times.get(rank),
            has_own_time=one.stamp is not None and seconds is not None,
            silenced_rank=one.silenced_rank if rank is None else None,
            uncaught=marks_uncaught and _UNCAUGHT.match(one.line.text) is not None,
            pattern=classify(one.message, one.line.grade),
            is_final=one.line.is_final,
        )


def _owner_of_file(raw: Sequence[RawLine], identities: Identities) -> int | None:
    """The rank whose process id stands in the name of a file in which nobody tells a rank."""
    if not raw or any(one.rank is not None for one in raw):
        return None
    name = (raw[0].line.file or "").rsplit("/", 1)[-1]
    pids = read_ints(_PID_IN_NAME.findall(name))
    return next(
        (identities.ranks_by_pid[pid] for pid in pids if pid in identities.ranks_by_pid), None
    )


def _marks_only_uncaught(raw: Iterable[RawLine]) -> bool:
    """Whether `[rank0]:` tells an uncaught exception, because everyday lines are not marked so."""
    everyday = (one for one in raw if one.stamp and not _NATIVE.search(one.line.text))
    return sum(_UNCAUGHT.match(one.line.text) is not None for one in everyday) < _MIN_MARKED_LINES


def _rank_and_host(one: RawLine, identities: Identities) -> tuple[int | None, str | None]:
    """Rank and host of a line, with what other lines tell."""
    rank, host = one.rank, one.host
    by_pid = identities.ranks_by_pid
    if rank is None and by_pid and (match := _SPEAKING_PID.match(one.line.text)):
        pid = read_int(match["pid"] or match["pid2"])
        rank = None if pid is None else by_pid.get(pid)
        host = host or match["host"]
    elif rank is not None and one.maybe_local and one.line.file in identities.by_process:
        rank = by_pid.get(rank)
    elif rank is not None and one.maybe_local:
        rank = identities.global_ranks.get((host, rank), rank)
    if host is None:
        named = identities.hosts_of_files.get(one.line.file)
        host = named if rank is None else identities.hosts.get(rank)
    return rank, host
