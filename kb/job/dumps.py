"""Stacks taken of running ranks, by faulthandler or py-spy: the odd one shows where it hangs.

Ranks that wait in the same collective have the same stack; the one they wait for has another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from kb.job.cast import Voice
from kb.job.remark import Remark

_FRAME = re.compile(
    r"\s+File \"(?P<file>[^\"]+)\", line \d+ in (?P<function>\S+)"  # faulthandler
    r"|\s+(?P<function2>[\w.<>]+) \((?P<file2>[^():]+\.py):\d+\)"  # py-spy
)
_TRACEBACK = re.compile(r"\s*File \"(?P<file>[^\"]+)\", line \d+, in (?P<function>\S+)")
_Stack = dict[tuple[str, str], Remark]
_LEAST_RANKS = 3


def odd_stacks(voices: Iterable[Voice]) -> list[tuple[Voice, Remark]]:
    """Ranks whose stack, taken while they ran, differs from that of most, each with the first frame
    only they have."""
    return _odd({voice: frames for voice in voices if (frames := _frames(voice, _FRAME))})


def odd_tracebacks(voices: Iterable[Voice]) -> list[tuple[Voice, Remark]]:
    """The same by the stacks of the exceptions that ended them: they waited in different places."""
    return _odd({voice: frames for voice in voices if (frames := _frames(voice, _TRACEBACK))})


def _odd(stacks: Mapping[Voice, _Stack]) -> list[tuple[Voice, Remark]]:
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


def _frames(voice: Voice, form: re.Pattern[str]) -> _Stack:
    """The first line of each function that is on a stack."""
    frames: _Stack = {}
    for remark in voice.remarks:
        match = form.match(remark.spoken)
        if match and (form is _FRAME or remark.uncaught):
            part = match.groupdict()
            file = part["file"] or part.get("file2") or ""
            function = part["function"] or part.get("function2") or ""
            frames.setdefault((file.rsplit("/", 1)[-1], function), remark)
    return frames
