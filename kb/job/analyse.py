"""From the logs of a job to who failed first."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from index.signatures import Scanner
from kb.job.cast import Cast, Voice
from kb.job.exits import Exit, read_exits
from kb.job.judge import Judgement, Suspect, judge
from kb.job.kinds import Kind
from kb.job.report import Cascade, Group, Job, Saying
from kb.job.stragglers import find_straggler
from kb.job.voices import Remark, listen
from kb.log import Log
from kb.log.mask import mask

_WORLD = re.compile(r"(?:mpirun|mpiexec)\b.*? -(?:np|n) (\d+)|\bworld[_ ]?size['\"]?[ :=]+(\d+)|\bnum_workers_joined=\d+.*world_size=(\d+)", re.I)


def analyse(log: Log, markers: Scanner) -> Job | None:
    """Read the logs of one job; None where they are not from several ranks.

    Raises:
        LogError: a source cannot be read.
    """
    recording = listen(log, markers)
    remarks = recording.remarks
    exits = read_exits(recording)
    if not _several(remarks, exits):
        return None
    last = max((r.attempt for r in remarks if r.rank is not None), default=0)
    cast = Cast(_of_attempt(remarks, last), [one for one in exits if one.remark.attempt >= last])
    judgement = judge(cast)
    if judgement is None or _ended_well(cast):
        return _healthy(cast, remarks)
    culprits = tuple(_saying(suspect) for suspect in judgement.suspects)
    return Job(
        failed=True,
        kind=judgement.kind,
        world_size=_world_size(cast, remarks),
        culprits=culprits,
        cascade=_cascade(cast, judgement),
        others=_others(cast, judgement),
    )


def _healthy(cast: Cast, remarks: Sequence[Remark]) -> Job:
    world_size = _world_size(cast, remarks)
    slow = find_straggler(cast)
    if slow is None:
        return Job(failed=False, kind=None, world_size=world_size)
    suspect = Suspect(slow.rank, cast.ranks[slow.rank].host, slow.remark)
    return Job(
        failed=False,
        kind=Kind.STRAGGLER,
        world_size=world_size,
        culprits=(_saying(suspect),),
        finding=f"straggler: rank {slow.rank} takes {slow.ratio:.1f} times as long for"
        f" {slow.field} as the others, which wait for it",
    )


def _several(remarks: Iterable[Remark], exits: Iterable[Exit]) -> bool:
    speakers = {(remark.rank, remark.host) for remark in remarks}
    told = {one.rank for one in exits if one.rank}
    return len(speakers) > 1 or bool(told)


def _of_attempt(remarks: Iterable[Remark], attempt: int) -> list[Remark]:
    """Launchers speak once more after the last attempt."""
    return [
        remark
        for remark in remarks
        if remark.attempt == attempt or (remark.rank is None and remark.attempt > attempt)
    ]


def _ended_well(cast: Cast) -> bool:
    return bool(cast.ranks) and all(voice.ended_well for voice in cast.ranks.values())


def _world_size(cast: Cast, remarks: Iterable[Remark]) -> int | None:
    ranks = {*cast.ranks, *(one.rank for one in cast.exits if one.rank is not None)}
    stated = [int(next(filter(None, m.groups()))) for r in remarks if (m := _WORLD.search(r.text))]
    return max([*stated, max(ranks, default=-1) + 1]) or None


def _saying(suspect: Suspect) -> Saying:
    remark = suspect.remark
    if remark is None:
        return Saying(suspect.rank, suspect.host, None, None, None, None)
    return Saying(
        suspect.rank, suspect.host, remark.file, remark.number, remark.time, remark.text.strip()
    )


def _cascade(cast: Cast, judgement: Judgement) -> Cascade | None:
    return None


def _others(cast: Cast, judgement: Judgement) -> tuple[Group, ...]:
    guilty = {suspect.rank for suspect in judgement.suspects}
    groups: dict[str, list[Voice]] = defaultdict(list)
    for voice in cast.ranks.values():
        said = voice.failure or voice.last
        if voice.rank not in guilty and said is not None:
            groups[mask(said.spoken)].append(voice)
    return tuple(
        Group(
            tuple(voice.rank for voice in group if voice.rank is not None),
            (group[0].failure or group[0].last).spoken,  # type: ignore[union-attr]
        )
        for group in sorted(groups.values(), key=len, reverse=True)
    )
