"""Which rank went bad first, where all ranks end with the same complaint about a value.

A NaN of one rank is everybody's after the next all-reduce. The rank it came from printed it first,
or printed it where the others still had a number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from kb.job.absent import shape_of, step_of
from kb.job.cast import Voice
from kb.job.remark import Remark

BAD_VALUE = re.compile(r"\bnan\b|\binf\b|not finite|non-?finite|diverg|overflow", re.IGNORECASE)
_NAN = re.compile(r"(?<![\w.])[+-]?(?:nan|inf)\b", re.IGNORECASE)


def first_to_diverge(voices: Collection[Voice]) -> list[tuple[Voice, Remark]]:
    """The ranks that printed a bad value first; none where they cannot be told apart."""
    bad = {voice: remark for voice in voices if (remark := _first_bad(voice))}
    if not bad:
        return []
    first = min(step_of(remark.spoken) for remark in bad.values())
    early = {v: r for v, r in bad.items() if step_of(r.spoken) == first}
    if len(early) < len(voices):
        return list(early.items())
    shapes = Counter(shape_of(remark.spoken) for remark in early.values())
    usual, count = shapes.most_common(1)[0]
    if count == len(early) or count * 2 <= len(early):
        return []
    return [(v, r) for v, r in early.items() if shape_of(r.spoken) != usual]


def _first_bad(voice: Voice) -> Remark | None:
    """The first of its everyday lines with such a value in the place of a number."""
    usual = {shape_of(remark.spoken) for remark in voice.ordinary}
    for remark in voice.remarks:
        if _NAN.search(remark.spoken) and shape_of(_NAN.sub("1", remark.spoken)) in usual:
            return remark
    return None
