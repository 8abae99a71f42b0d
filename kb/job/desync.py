"""Ranks that did different things: the minority is at fault."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from kb.job.absent import odd_ones
from kb.job.cast import Cast, Voice
from kb.job.kinds import Kind, Standing
from kb.job.suspects import Judgement, Suspect
from kb.job.voices import Remark


def mismatched(cast: Cast) -> Judgement | None:
    """Name those whose collective, or whose last words, differ from most."""
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
