"""Who failed first: the causal rules of the field, in the order in which they are trusted.

Each rule looks at one attempt and names the culprits, or passes. A rank that failed by itself
explains all that lost or waited for it; a launcher's word counts where the ranks are silent.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

import msgspec

from kb.job.absent import furthest, named_missing, odd_ones, strange_ones, without_words
from kb.job.cast import Cast, Voice
from kb.job.exits import Exit
from kb.job.hosts import missing_hosts
from kb.job.kinds import Kind, Standing
from kb.job.links import cut_off
from kb.job.voices import Remark
from kb.log.mask import mask


class Suspect(msgspec.Struct, frozen=True):
    """A rank or host at fault and the line that shows it."""

    rank: int | None
    host: str | None
    remark: Remark | None


class Judgement(msgspec.Struct, frozen=True):
    """What a rule comes to."""

    kind: Kind
    suspects: tuple[Suspect, ...]


def judge(cast: Cast) -> Judgement | None:
    """Name the culprits of one attempt; None where nothing failed."""
    for rule in RULES:
        judgement = rule(cast)
        if judgement is not None:
            return judgement
    return None


def _killed_by_kernel(cast: Cast) -> Judgement | None:
    """The kernel's log tells which process it killed first; launchers tell whose it was."""
    for killed in cast.exits:
        if not killed.by_kernel:
            continue
        rank = killed.rank
        if rank is None:
            rank = next((one.rank for one in cast.exits if one.signal == 9 and one.rank is not None), None)
        if rank is None and not any(one.signal == 9 and not one.by_kernel for one in cast.exits):
            continue
        kind = Kind.MEMORY if killed.signal == 9 else Kind.SIGNAL
        host = killed.host or cast.host_told(rank)
        return Judgement(kind, (Suspect(rank, host, killed.remark),))
    return None


def _failed_by_itself(cast: Cast) -> Judgement | None:
    """Exceptions, crashes and named causes, the earliest first; equal words share the blame."""
    found = [_suspect(cast, voice) for voice in cast.voices if voice.standing >= Standing.OWN]
    told = [one for rank in cast.ranks for one in _silent_deaths(cast, rank)]
    told = [one for one in told if one.rank not in {suspect.rank for suspect in found}]
    if not found and told:
        return Judgement(Kind.SIGNAL, tuple(told[:1]))
    if not found:
        return None
    found.sort(key=_when)
    first = found[0]
    assert first.remark is not None  # noqa: S101  a suspect of this rule has said something
    words = mask(first.remark.spoken)
    alike = [one for one in found if one.remark and mask(one.remark.spoken) == words]
    return Judgement(first.remark.kind or Kind.EXCEPTION, tuple(alike))


def _suspect(cast: Cast, voice: Voice) -> Suspect:
    """What a voice failed of. A failure without a rank is that of the one rank that the launcher
    saw failing there."""
    rank = voice.rank
    if rank is None and voice.failure:
        rank = _speechless(cast, voice.failure)
        failed = {
            one.rank
            for one in cast.exits
            if one.rank is not None
            and not one.was_stopped
            and voice.host in (None, one.host)
            and not _is_follower(cast.ranks.get(one.rank))
        }
        rank = failed.pop() if len(failed) == 1 else rank
    return Suspect(rank, voice.host or cast.host_told(rank), voice.failure)


def _speechless(cast: Cast, failure: Remark) -> int | None:
    """Whose a failure may be that names nobody: the rank that spoke before it and never again, or
    else the one rank of that host that ended with words of its own."""
    if failure.near is not None and cast.ranks[failure.near].last_file == failure.file:
        return failure.near
    there = [
        voice for voice in cast.ranks.values() if failure.host is None or voice.host == failure.host
    ]
    strange = strange_ones(there)
    return strange[0].rank if len(strange) == 1 else None


def _is_follower(voice: Voice | None) -> bool:
    """Whether a rank says itself that it failed because of others."""
    return voice is not None and voice.standing >= Standing.BEREFT


def _when(suspect: Suspect) -> tuple[bool, float]:
    at = suspect.remark.at if suspect.remark else None
    return at is None, at or 0.0


def _silent_deaths(cast: Cast, rank: int) -> Iterable[Suspect]:
    """A rank that a launcher reports as dead of itself, and that did not say why."""
    voice = cast.ranks[rank]
    if voice.standing >= Standing.BEREFT:
        return
    for one in cast.exits_of(rank):
        if not one.was_stopped:
            told = one.remark if one.signal else voice.failure or _farewell(voice) or one.remark
            yield Suspect(rank, one.host or voice.host, told)
            return


def _farewell(voice: Voice) -> Remark | None:
    """The last thing a rank said, where it had not said the like before."""
    words = [mask(remark.spoken) for remark in voice.ordinary]
    return voice.last if words and words.count(words[-1]) == 1 else None


def _mismatched(cast: Cast) -> Judgement | None:
    """Ranks that did different things: the minority is at fault."""
    apart = [voice for voice in cast.voices if voice.standing is Standing.APART]
    if not apart:
        return None
    odd = _odd_fingerprints(apart)
    if odd:
        suspects = [
            Suspect(rank, cast.host_told(rank), _line_of(cast, rank, apart)) for rank in odd
        ]
        return Judgement(Kind.DESYNC, tuple(suspects))
    chosen = odd_ones(list(cast.ranks.values())) or apart
    return Judgement(
        Kind.DESYNC, tuple(Suspect(v.rank, v.host, v.failure or v.last) for v in chosen)
    )


_FINGERPRINT = re.compile(
    r"Rank (?P<rank>\d+) is running collective: CollectiveFingerPrint\(SequenceNumber=(?P<seq>\d+),"
    r" OpType=(?P<op>\w+)(?:, TensorShape=(?P<shape>\[[^\]]*\]))?"
)


def _odd_fingerprints(voices: Iterable[Voice]) -> list[int]:
    """Ranks whose collective differs from that of most."""
    seen: dict[int, Hashable] = {}
    for voice in voices:
        for remark in voice.failures:
            for match in _FINGERPRINT.finditer(remark.text):
                seen[int(match["rank"])] = (match["op"], match["shape"])
    for part in (slice(0, 1), slice(0, 2)):
        groups: dict[Hashable, list[int]] = defaultdict(list)
        for rank, fingerprint in seen.items():
            groups[fingerprint[part]].append(rank)  # type: ignore[index]
        most = max(map(len, groups.values()), default=0)
        odd = [rank for group in groups.values() if len(group) < most for rank in group]
        if odd:
            return sorted(odd)
    return []


def _line_of(cast: Cast, rank: int, apart: Sequence[Voice]) -> Remark | None:
    voice = cast.ranks.get(rank)
    if voice is not None and voice.failure is not None:
        return voice.failure
    return next((one.failure for one in apart if one.failure), None)


def _cut_off(cast: Cast) -> Judgement | None:
    """A host that the others cannot reach."""
    found = cut_off(cast)
    if found is None:
        return None
    host, remark = found
    return Judgement(Kind.NETWORK, (Suspect(None, host, remark),))


def _never_joined(cast: Cast) -> Judgement | None:
    """A node that the others waited for at the start, and that left no log."""
    waiting = [
        voice.failure
        for voice in cast.voices
        if voice.failure
        and voice.standing is Standing.WAITED
        and voice.failure.kind is Kind.RENDEZVOUS
    ]
    if cast.ranks or not waiting:
        return None
    present = {voice.host for voice in cast.voices if voice.host}
    missing = missing_hosts(present, (r.text for voice in cast.voices for r in voice.remarks))
    if not missing:
        return None
    return Judgement(
        Kind.RENDEZVOUS, tuple(Suspect(None, host, waiting[0]) for host in missing)
    )


def _absent(cast: Cast) -> Judgement | None:
    """Ranks that others waited for or lost, and that said nothing of the kind themselves."""
    waiting = [v for v in cast.voices if v.standing in (Standing.WAITED, Standing.BEREFT)]
    if not waiting:
        return None
    remarks = [remark for voice in waiting for remark in voice.failures]
    named = named_missing(remarks)
    silent = without_words(cast)
    candidates = (
        [cast.ranks[rank] for rank in named if rank in cast.ranks]
        or _not_stopped(cast, silent)
        or odd_ones(list(cast.ranks.values()))
    )
    hung = any(voice.standing is Standing.WAITED for voice in waiting)
    kind = Kind.HANG if hung else Kind.NETWORK
    suspects = [Suspect(v.rank, v.host, v.failure or v.last) for v in candidates]
    suspects = suspects or [_suspect(cast, waiting[0])]
    return Judgement(kind, tuple(suspects))


def _not_stopped(cast: Cast, silent: list[Voice]) -> list[Voice]:
    """Of silent ranks, those that lag behind or say something else than the rest."""
    if len(silent) <= 1:
        return silent
    steps = [furthest(voice) for voice in silent]
    behind = [voice for voice, step in zip(silent, steps, strict=True) if step == min(steps)]
    if len(behind) < len(silent):
        return behind
    return odd_ones(list(cast.ranks.values())) or silent


RULES: tuple[Callable[[Cast], Judgement | None], ...] = (
    _killed_by_kernel,
    _failed_by_itself,
    _mismatched,
    _cut_off,
    _never_joined,
    _absent,
)
