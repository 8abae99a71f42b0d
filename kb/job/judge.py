"""Who failed first: the causal rules of the field, in the order in which they are trusted.

Each rule looks at one attempt and names the culprits, or passes. A rank that failed by itself
explains all that lost or waited for it; a launcher's word counts where the ranks are silent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from kb.job.absent import furthest, named_missing, odd_ones, odd_worlds, strange_ones, without_words
from kb.job.cast import Cast, Voice
from kb.job.clocks import clock_offsets
from kb.job.desync import mismatched
from kb.job.divergence import BAD_VALUE, first_to_diverge
from kb.job.dumps import odd_stacks, odd_tracebacks
from kb.job.findings import Finding
from kb.job.hosts import missing_hosts
from kb.job.kinds import Kind, Standing
from kb.job.links import cut_off, lost_launcher
from kb.job.remark import Remark
from kb.job.suspects import Judgement, Suspect
from kb.log.mask import mask


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
            rank = next(
                (one.rank for one in cast.exits if one.signal == 9 and one.rank is not None), None
            )
        if rank is None and not any(one.signal == 9 and not one.by_kernel for one in cast.exits):
            continue
        kind = Kind.MEMORY if killed.signal == 9 else Kind.SIGNAL
        host = killed.host or cast.host_told(rank)
        finding = Finding.MEMORY if kind is Kind.MEMORY else Finding.CRASH
        return Judgement(kind, (Suspect(rank, host, killed.remark),), finding)
    return None


def _failed_by_itself(cast: Cast) -> Judgement | None:
    """Exceptions, crashes and named causes, the earliest first; equal words share the blame."""
    found = [_suspect(cast, voice) for voice in cast.voices if voice.standing >= Standing.OWN]
    told = [one for rank in cast.known_ranks for one in _silent_deaths(cast, rank)]
    speaking = {suspect.rank for suspect in found}
    told = [one for one in told if one.rank not in speaking]
    if not found and told:
        return _silent(cast, told)
    if not found:
        return None
    offsets = clock_offsets(cast)
    found.sort(key=lambda suspect: _when(suspect, offsets))
    first = found[0]
    assert first.remark is not None  # noqa: S101  a suspect of this rule has said something
    words = mask(first.remark.spoken)
    alike = [one for one in found if one.remark and mask(one.remark.spoken) == words]
    kind = first.remark.kind or Kind.EXCEPTION
    if len(alike) > 1 and BAD_VALUE.search(words):
        diverged = first_to_diverge(list(cast.ranks.values()))
        alike = [Suspect(v.rank, v.host, remark) for v, remark in diverged] or alike
        return Judgement(kind, tuple(alike), Finding.DIVERGED)
    finding = Finding.CRASH if kind is Kind.SIGNAL else Finding.EXCEPTION
    if kind is Kind.MEMORY:
        finding = Finding.GPU_MEMORY if _GPU_MEMORY.search(words) else Finding.MEMORY
    if len(alike) > 1 and len(alike) >= len(cast.ranks):
        finding = Finding.EVERYWHERE
    return Judgement(kind, tuple(alike), _FINDINGS.get(kind, finding))


_GPU_MEMORY = re.compile(r"\b(?:CUDA|HIP|GPU|NPU)\b")
_FINDINGS = {Kind.NETWORK: Finding.NETWORK}


_NAMES_SIGNAL = re.compile(r"\bSIG[A-Z]+\b|\bsignal \d", re.IGNORECASE)
_CRASHES = (4, 7, 8, 11)
"""Signals that a process brings upon itself, so that several may do it independently."""


def _silent(cast: Cast, suspects: Sequence[Suspect]) -> Judgement:
    """Ranks that ended without saying why: by a signal, or by an exit of their own."""
    signals = {one.rank: one.signal for one in cast.exits if one.signal}
    first = signals.get(suspects[0].rank)
    if first in _CRASHES:
        alike = tuple(one for one in suspects if signals.get(one.rank) == first)
        return Judgement(Kind.SIGNAL, alike, Finding.CRASH)
    finding = {None: Finding.QUIT, 9: Finding.KILLED}.get(first, Finding.CRASH)
    return Judgement(Kind.SIGNAL if first else Kind.EXCEPTION, (suspects[0],), finding)


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
    near = cast.ranks.get(failure.near) if failure.near is not None else None
    if near is not None and near.last_file == failure.file:
        return failure.near
    there = [
        voice for voice in cast.ranks.values() if failure.host is None or voice.host == failure.host
    ]
    strange = strange_ones(there)
    return strange[0].rank if len(strange) == 1 else None


def _is_follower(voice: Voice | None) -> bool:
    """Whether a rank says itself that it failed because of others."""
    return voice is not None and voice.standing >= Standing.BEREFT


def _when(suspect: Suspect, offsets: Mapping[str | None, float]) -> tuple[bool, float]:
    at = suspect.remark.at if suspect.remark else None
    return at is None, (at or 0.0) - offsets.get(suspect.host, 0.0)


def _silent_deaths(cast: Cast, rank: int) -> Iterable[Suspect]:
    """A rank that a launcher reports as dead of itself, and that did not say why."""
    voice = cast.ranks.get(rank)
    if _is_follower(voice):
        return
    told = [one for one in cast.exits_of(rank) if not one.was_stopped]
    if told:
        best = next((one for one in told if _NAMES_SIGNAL.search(one.remark.text)), told[0])
        remark = best.remark if best.signal else _farewell(voice) or best.remark
        host = next((one.host for one in told if one.host), voice.host if voice else None)
        yield Suspect(rank, host, remark)


def _farewell(voice: Voice | None) -> Remark | None:
    """What a rank complained of, or the last thing it said, if it had not said the like before."""
    if voice is None:
        return None
    if voice.failure:
        return voice.failure
    words = [mask(remark.spoken) for remark in voice.ordinary]
    return voice.last if words and words.count(words[-1]) == 1 else None


def _recorded(cast: Cast) -> Judgement | None:
    """Ranks whose recorded collectives are not those of the others."""
    if cast.recorded is None:
        return None
    suspects = []
    for rank, (file, text) in cast.recorded.sayings.items():
        voice = cast.ranks.get(rank)
        said = (voice.failure or voice.last) if voice else None
        host = voice.host if voice else cast.host_told(rank)
        suspects.append(Suspect(rank, host, said, (file, text)))
    if cast.recorded.mismatched:
        return Judgement(Kind.DESYNC, tuple(suspects), Finding.DESYNC)
    return Judgement(Kind.HANG, tuple(suspects), Finding.HANG)


def _cut_off(cast: Cast) -> Judgement | None:
    """A host that the others cannot reach."""
    found = cut_off(cast)
    if found is None:
        return None
    host, remark = found
    return Judgement(Kind.NETWORK, (Suspect(None, host, remark),), Finding.NETWORK)


_CANNOT_CONNECT = re.compile(r"\btry(?:ing)? to connect\b|\bfailed to connect\b", re.IGNORECASE)


def _never_joined(cast: Cast) -> Judgement | None:
    """A node that the others waited for at the start: it could not connect, or left no log."""
    waiting = [
        voice.failure
        for voice in cast.voices
        if voice.failure
        and voice.standing is Standing.WAITED
        and voice.failure.kind is Kind.RENDEZVOUS
    ]
    if not waiting or any(furthest(v) >= 0 for v in cast.ranks.values()):
        return None
    present = {voice.host for voice in cast.voices if voice.host}
    strangers = [r for r in waiting if _CANNOT_CONNECT.search(r.text)]
    if strangers and 2 * len(strangers) < len(waiting):
        return Judgement(
            Kind.RENDEZVOUS, tuple(Suspect(r.rank, r.host, r) for r in strangers), Finding.STRANGER
        )
    missing = missing_hosts(present, (r.text for voice in cast.voices for r in voice.remarks))
    if not missing:
        return None
    return Judgement(
        Kind.RENDEZVOUS,
        tuple(Suspect(None, host, waiting[0]) for host in missing),
        Finding.NEVER_JOINED,
    )


def _absent(cast: Cast) -> Judgement | None:
    """Ranks that others waited for or lost, and that said nothing of the kind themselves."""
    waiting = [v for v in cast.voices if v.standing in (Standing.WAITED, Standing.BEREFT)]
    stopped = [v for v in cast.voices if any(r.kind is Kind.HANG for r in v.failures)]
    if not waiting and not stopped:
        return None
    odd = odd_worlds(cast.ranks.values())
    if odd:
        apart = tuple(Suspect(v.rank, v.host, remark) for v, remark in odd)
        return Judgement(Kind.DESYNC, apart, Finding.DESYNC)
    odd = odd_stacks(cast.ranks.values())
    if odd:
        stuck = tuple(Suspect(v.rank, v.host, remark) for v, remark in odd)
        return Judgement(Kind.HANG, stuck, Finding.HANG)
    remarks = [remark for voice in waiting for remark in voice.failures]
    named = named_missing(remarks)
    silent = without_words(cast)
    candidates = (
        [cast.ranks[rank] for rank in named if rank in cast.ranks]
        or _not_stopped(cast, silent)
        or odd_ones(list(cast.ranks.values()))
    )
    strays = [] if candidates else odd_tracebacks(cast.ranks.values())
    if strays:
        apart = tuple(Suspect(v.rank, v.host, remark) for v, remark in strays)
        return Judgement(Kind.DESYNC, apart, Finding.DESYNC)
    hung = stopped or any(voice.standing is Standing.WAITED for voice in waiting)
    kind, finding = (Kind.HANG, Finding.HANG) if hung else (Kind.SIGNAL, Finding.CRASH)
    suspects = [Suspect(v.rank, v.host, _last_words(v)) for v in candidates]
    if not suspects and (lost := lost_launcher(cast)):
        return Judgement(Kind.NETWORK, (Suspect(None, *lost),), Finding.NETWORK)
    suspects = suspects or [_suspect(cast, (waiting or stopped)[0])]
    return Judgement(kind, tuple(suspects), finding)


def _last_words(voice: Voice) -> Remark | None:
    """A complaint of its own, or the last thing it was at."""
    return voice.failure if voice.standing is Standing.SAID else voice.last or voice.failure


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
    _recorded,
    mismatched,
    _cut_off,
    _never_joined,
    _absent,
)
