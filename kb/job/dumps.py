"""Stacks taken of running ranks, by faulthandler or py-spy: the odd one shows where it hangs.

Ranks that wait in the same collective have the same stack; the one they wait for has another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from kb.job.cast import Voice
from kb.job.remark import Remark

_FRAME = re.compile(
    r"\s+File \"(?P<file>[^\"]+)\", line \d+ in (?P<function>\S+)"  # faulthandler
    r"|\s+(?P<function2>[\w.<>]+) \((?P<file2>[^():]+\.py):\d+\)"  # py-spy
)
_LEAST_RANKS = 3


def odd_stacks(voices: Iterable[Voice]) -> list[tuple[Voice, Remark]]:
    """Ranks whose stack differs from that of most, each with the first frame only they have."""
    stacks = {voice: frames for voice in voices if (frames := _frames(voice))}
    if len(stacks) < _LEAST_RANKS:
        return []
    common, count = Counter(frozenset(f) for f in stacks.values()).most_common(1)[0]
    if count * 2 <= len(stacks):
        return []
    return [
        (voice, next((r for key, r in frames.items() if key not in common), voice.remarks[-1]))
        for voice, frames in stacks.items()
        if frozenset(frames) != common
    ]


def _frames(voice: Voice) -> dict[tuple[str, str], Remark]:
    """The first line of each function that is on a stack."""
    frames: dict[tuple[str, str], Remark] = {}
    for remark in voice.remarks:
        match = _FRAME.match(remark.spoken)
        if match:
            file = (match["file"] or match["file2"]).rsplit("/", 1)[-1]
            frames.setdefault((file, match["function"] or match["function2"]), remark)
    return frames
