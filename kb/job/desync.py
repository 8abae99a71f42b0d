"""Ranks that did different things: the minority is at fault."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from kb.job.absent import odd_ones
from kb.job.cast import Cast, Voice
from kb.job.findings import Finding
from kb.job.kinds import Kind, Standing
from kb.job.remark import Remark
from kb.job.suspects import Judgement, Suspect


def mismatched(cast: Cast) -> Judgement | None:
    """Name those whose collective, or whose last words, differ from most."""
    apart = [voice for voice in cast.voices if voice.standing is Standing.APART]
    if not apart:
        return None
    odd = _odd_statements(apart)
    if odd:
        suspects = [
            Suspect(rank, cast.host_told(rank), _line_of(cast, rank, apart)) for rank in odd
        ]
        return Judgement(Kind.DESYNC, tuple(suspects), Finding.DESYNC)
    chosen = odd_ones(list(cast.ranks.values())) or apart
    suspects = [Suspect(v.rank, v.host, v.failure or v.last) for v in chosen]
    return Judgement(Kind.DESYNC, tuple(suspects), Finding.DESYNC)


_STATED = tuple(
    re.compile(pattern)
    for pattern in (
        # torch with TORCH_DISTRIBUTED_DEBUG=DETAIL: the operation, its shape, its type
        r"Rank (?P<rank>\d+) is running collective: CollectiveFingerPrint\(SequenceNumber=\d+,"
        r" OpType=(?P<what>\w+)",
        r"Rank (?P<rank>\d+) is running collective: CollectiveFingerPrint\(.*?"
        r"TensorShape=(?P<what>\[[^\]]*\])",
        r"Rank (?P<rank>\d+) is running collective: CollectiveFingerPrint\(.*?"
        r"TensorDtypes=(?P<what>\w+)",
        # DistributedDataParallel
        r"[Rr]ank (?P<rank>\d+) has (?:inconsistent )?(?P<what>\d+) params",
    )
)
"""What each rank did, as the error of any of them states it."""


def _odd_statements(voices: Iterable[Voice]) -> list[int]:
    """Ranks of which something else is stated than of most."""
    texts = [remark.text for voice in voices for remark in voice.failures]
    for pattern in _STATED:
        stated = {int(m["rank"]): m["what"] for text in texts for m in pattern.finditer(text)}
        common = Counter(stated.values()).most_common()
        if len(common) > 1 and common[0][1] > common[1][1]:
            return sorted(rank for rank, what in stated.items() if what != common[0][0])
    return []


def _line_of(cast: Cast, rank: int, apart: Sequence[Voice]) -> Remark | None:
    voice = cast.ranks.get(rank)
    if voice is not None and voice.failure is not None:
        return voice.failure
    return next((one.failure for one in apart if one.failure), None)
