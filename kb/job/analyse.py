"""From the logs of a job to who failed first."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kb.evidence.select import SHORT_LINES
from kb.job.cast import Cast, Voice
from kb.job.excerpt import excerpt
from kb.job.exits import Exit, read_exits
from kb.job.findings import Finding
from kb.job.judge import judge
from kb.job.kinds import Kind, Standing
from kb.job.lines import Line
from kb.job.recorder import Dump, compare
from kb.job.remark import Remark
from kb.job.report import Cascade, Group, Job, Saying
from kb.job.stragglers import find_straggler
from kb.job.suspects import Judgement, Suspect, saying
from kb.job.voices import Recording, glance, listen
from kb.log import Block
from kb.log.mask import mask

_WORLD = re.compile(
    r"(?:mpirun|mpiexec)\b.*? -(?:np|n) (\d+)|\bworld[_ ]?size['\"]?[ :=]+(\d+)", re.IGNORECASE
)
_MOST_MOMENTS = 8


class Analysis(msgspec.Struct, frozen=True):
    """A job and the lines that its diagnosis is to be made from."""

    job: Job
    ended_well: bool
    """The logs say so; a job that merely shows no failure may still hang."""
    evidence: tuple[Block, ...]
    """Empty where all lines are to be read."""
    is_short: bool
    """So few lines that all were read, and that every word counts."""


def analyse(files: Mapping[str, Sequence[Line]], dumps: Sequence[Dump] = ()) -> Analysis | None:
    """Tell who failed first from lines of the logs of one job, by name of the file, and from its
    recorded collectives; None where they are not from several ranks."""
    if len(files) == 1 and not dumps:
        seen = glance(*files.values())
        if not seen.several:
            return None
        if not seen.troubled:
            world_size = max(seen.ranks, default=-1) + 1 or None
            return Analysis(Job(failed=False, kind=None, world_size=world_size), False, (), False)
    recording = listen(files)
    exits = read_exits(recording)
    if not (dumps or _several(recording.remarks, exits)):
        return None
    *earlier, last = _attempts(recording)
    recorded = compare(dumps)
    cast = Cast(
        _of_attempt(recording.remarks, last),
        [one for one in exits if one.remark.attempt >= last],
        recorded,
    )
    judgement = judge(cast)
    world_size = _world_size(cast, recording)
    before = tuple(one for number in earlier for one in _failures_of(number, recording, exits))
    if judgement is None or _ended_well(cast):
        return _not_failed(cast, world_size, before)
    job = Job(
        failed=True,
        kind=judgement.kind,
        world_size=world_size,
        culprits=tuple(suspect.saying for suspect in judgement.suspects),
        cascade=_cascade(cast, judgement),
        others=_others(cast, judgement),
        timeline=_timeline(cast, judgement),
        earlier=before,
        finding=judgement.finding,
    )
    return Analysis(job, False, excerpt(cast, judgement), len(recording.remarks) <= SHORT_LINES)


def _several(remarks: Iterable[Remark], exits: Iterable[Exit]) -> bool:
    ranks = {remark.rank for remark in remarks} | {one.rank for one in exits}
    hosts = {remark.host for remark in remarks}
    return (
        len(ranks - {None}) > 1
        or len(hosts - {None}) > 1
        or any(one.rank or one.aborted for one in exits)
    )


def _attempts(recording: Recording) -> list[int]:
    return sorted({r.attempt for r in recording.remarks if r.rank is not None}) or [0]


def _of_attempt(remarks: Iterable[Remark], attempt: int) -> list[Remark]:
    """Launchers speak once more after the last attempt."""
    return [
        remark
        for remark in remarks
        if remark.attempt == attempt or (remark.rank is None and remark.attempt > attempt)
    ]


def _failures_of(attempt: int, recording: Recording, exits: Iterable[Exit]) -> tuple[Saying, ...]:
    """What failed in an attempt that was followed by another."""
    cast = Cast(
        [remark for remark in recording.remarks if remark.attempt == attempt],
        [one for one in exits if one.remark.attempt == attempt],
    )
    judgement = judge(cast)
    return tuple(suspect.saying for suspect in judgement.suspects) if judgement else ()


def _ended_well(cast: Cast) -> bool:
    if any(not one.was_stopped for one in cast.exits):
        return False
    said_so = any(voice.exited_well for voice in cast.hosts.values())
    return said_so or (bool(cast.ranks) and all(v.ended_well for v in cast.ranks.values()))


def _world_size(cast: Cast, recording: Recording) -> int | None:
    text = "\n".join(remark.text for remark in recording.remarks)
    stated = [int(next(filter(None, match.groups()))) for match in _WORLD.finditer(text)]
    return max([*stated, max(cast.known_ranks, default=-1) + 1]) or None


def _not_failed(cast: Cast, world_size: int | None, earlier: tuple[Saying, ...]) -> Analysis:
    slow = find_straggler(cast)
    if slow is None:
        job = Job(failed=False, kind=None, world_size=world_size, earlier=earlier)
        return Analysis(job, _ended_well(cast), (), False)
    suspect = Suspect(slow.rank, cast.ranks[slow.rank].host, slow.remark)
    job = Job(
        failed=False,
        kind=Kind.STRAGGLER,
        world_size=world_size,
        culprits=(suspect.saying,),
        earlier=earlier,
        finding=f"{Finding.STRAGGLER}: rank {slow.rank} takes {slow.ratio:.0f} times as long for"
        f" {slow.field}",
    )
    judgement = Judgement(Kind.STRAGGLER, (suspect,), Finding.STRAGGLER)
    return Analysis(job, _ended_well(cast), excerpt(cast, judgement), False)


def _bystanders(cast: Cast, judgement: Judgement) -> Iterator[tuple[Voice, Remark]]:
    """The ranks that are not at fault, each with its complaint or its last words."""
    guilty = {suspect.rank for suspect in judgement.suspects}
    for voice in cast.ranks.values():
        said = voice.failure or voice.last
        if voice.rank not in guilty and said is not None:
            yield voice, said


def _cascade(cast: Cast, judgement: Judgement) -> Cascade | None:
    """The complaints that follow from the first failure, and the commonest of them."""
    bystanders = list(_bystanders(cast, judgement))
    fallen = [said for _voice, said in bystanders if said.row]
    if not fallen:
        return None
    common, _count = Counter(mask(said.spoken) for said in fallen).most_common(1)[0]
    example = next(said for said in fallen if mask(said.spoken) == common)
    ended = {one.rank for one in cast.exits if one.code}
    count = sum(bool(said.row) or voice.rank in ended for voice, said in bystanders)
    return Cascade(count, example.spoken.strip())


def _others(cast: Cast, judgement: Judgement) -> tuple[Group, ...]:
    groups: dict[str, list[tuple[Voice, Remark]]] = defaultdict(list)
    for voice, said in _bystanders(cast, judgement):
        groups[mask(said.spoken)].append((voice, said))
    return tuple(
        Group(
            tuple(voice.rank for voice, _said in group if voice.rank is not None),
            group[0][1].spoken.strip(),
        )
        for group in sorted(groups.values(), key=len, reverse=True)
    )


def _timeline(cast: Cast, judgement: Judgement) -> tuple[Saying, ...]:
    """The first line, the first failures, the first to follow and the launcher's end of it."""
    said = [r for voice in cast.voices for r in voice.remarks if r.stamped and r.at is not None]
    guilty = [suspect.remark for suspect in judgement.suspects if suspect.remark]
    fallen = [one for _voice, one in _bystanders(cast, judgement) if one.row and one.at is not None]
    stopped = [r for r in said if r.rank is None and r.standing is Standing.STOPPED]
    chosen = [
        *sorted(said, key=_at)[:1],
        *guilty[: _MOST_MOMENTS // 2],
        *sorted(fallen, key=_at)[:1],
        *sorted(stopped, key=_at)[:1],
        *sorted(said, key=_at)[-1:],
    ]
    unique = {(remark.file, remark.number): remark for remark in chosen if remark.at is not None}
    return tuple(saying(r, r.rank, r.host) for r in sorted(unique.values(), key=_at))


def _at(remark: Remark) -> float:
    return remark.at or 0.0
