"""What makes a line of a log worth reading. Adding a sign of failure is adding a row.

The patterns run on Hyperscan over the whole log: no look-around, no back-references, and no
trailing repetition (each would report many ends).
"""

from __future__ import annotations

import re
from enum import IntEnum

import msgspec

from index.documents import Pattern


class Grade(IntEnum):
    """How much a line tells."""

    CONTEXT = 0
    """Says where we are: commands, versions, settings, the last ordinary lines."""
    FOLLOW_ON = 1
    """Fails because something else failed."""
    HINT = 2
    """May be a failure: warnings, words of trouble."""
    ERROR = 3
    FATAL = 4
    """Names the failure: exceptions, signals, hardware errors."""


class Marker(msgspec.Struct, frozen=True):
    """A pattern and how much a line with it tells."""

    pattern: str
    grade: Grade


_C, _O, _H, _E, _F = Grade

MARKERS = (
    # Exceptions and crashes
    Marker(r"Traceback \(most recent call last\)", _E),
    Marker(r"\b[A-Za-z]\w*(Error|Exception|Exit|Interrupt)(: |$|\()", _F),
    Marker(r"\bterminate called after throwing", _F),
    Marker(r"\bwhat\(\):|(?i)\bunhandled exception\b", _F),
    Marker(
        r"(?i)\bsegmentation fault|\bSegfault|\bcore dumped|\bBus error|\bIllegal instruction", _F
    ),
    Marker(
        r"(?i)\bdouble free\b|\bfree\(\): invalid|\bmalloc\(\): |stack smashing detected"
        r"|\bcaught signal \d|\bfloating point exception|\bBAD TERMINATION\b",
        _F,
    ),
    Marker(r"(?i)\bassert(ion)?\b[^\n]{0,200}\bfailed", _F),
    Marker(r"\b(SIGSEGV|SIGBUS|SIGKILL|SIGFPE|SIGILL|SIGABRT)\b", _E),
    Marker(r"(?i)\bfatal\b|\bpanic\b|\bunrecoverable\b|\bcritical\b", _E),
    Marker(r"(?i)\bout of memory\b|\boom[-_ ]?kill|\bOOM\b|\bcannot allocate memory\b", _F),
    Marker(
        r"(?i)\b(CUDA|HIP|CUDNN|CUBLAS|NCCL|RCCL|HCCL|MPI) ?(runtime |driver )?error\b",
        _F,
    ),
    Marker(r"\bMPI_ERR(ORS)?_[A-Z]+", _E),
    Marker(r"\b(CUDA|CUBLAS|CUDNN|NVML|cuda|hip|nccl)[A-Z_]*(_ERROR|_STATUS)_[A-Z_]+\b", _E),
    Marker(
        r"\b(cuda|hip|nccl)Error[A-Z]\w+\b|\bnccl(Unhandled|System|Internal|Invalid|Remote)\w+", _F
    ),
    # Hardware and kernel
    Marker(r"\bXid \(", _F),
    Marker(
        r"(?i)\bfallen off the bus\b|\buncorrectable ecc\b|\bmachine check\b|\bhardware error\b", _F
    ),
    Marker(r"(?i)\bKilled process\b|^\s*Killed\b|\boom_reaper\b|\bunder memory pressure\b", _F),
    Marker(r"\bIO_PAGE_FAULT\b|\b100% packet loss\b", _E),
    Marker(
        r"(?i)\blink (is )?down\b|\bport error\b|\bno[- ]carrier\b|\bstate (lowerlayer)?down\b", _E
    ),
    # Collectives and hangs
    Marker(r"\bNCCL WARN\b", _E),
    Marker(r"(?i)\bwatchdog (caught|timeout|got stuck)|\bcollective operation timeout\b", _F),
    Marker(r"(?i)\bdesync|\bmismatched? (collective|sequence)|\bstuck\b|\bdeadlock", _F),
    Marker(r"(?i)\b(hang|hangs|hanging|hung|froze|frozen|freezes|freezing|stalled|stalls)\b", _F),
    Marker(r"(?i)\btime ?limit\b|\blost communication\b", _E),
    Marker(r"(?i)\btimed[ -]?out\b|\btimeout(:|!|,|;| |$|\.)", _E),
    Marker(r"(?i)\bGot completion with error|\bremote process exited\b|\basync event\b", _E),
    Marker(r"(?i)\bmay now hang or fail\b|\bUnable to\b", _E),
    # A stack that somebody took of a running process
    Marker(r"\(most recent call first\):|^Thread \d+ \((active|idle)|\bpy-spy dump\b", _E),
    Marker(r"^\^C", _E),
    # Words of trouble
    Marker(r"(?i)(^|[^-\w])errors?([^-\w]|$)", _E),
    Marker(r"\bERR!|\[E\]|^E\d{4} |\[E ProcessGroup", _E),
    Marker(r"(?i)\bfail(s|ed|ure|ures|ing)?\b", _E),
    Marker(r"(?i)\b(limit|quota) exceeded|\bunexpected\b", _E),
    Marker(r"(?i)\b(cannot|could not|couldn't|can't|unable to)\b", _H),
    Marker(
        r"(?i)\b(refused|denied|unreachable|not permitted|rejected|conflicts?|aborted|abort)\b", _E
    ),
    Marker(
        r"(?i)\bno (space left|such file|such device|module named|route to host|available)\b", _E
    ),
    Marker(
        r"(?i)\b(not found|not supported|unsupported|incompatible|mismatch|invalid|undefined)\b", _H
    ),
    Marker(
        r"(?i)\b(does not support|not enough|insufficient|exceeds?|too (small|large|many|old))\b",
        _H,
    ),
    Marker(r"(?i)\bwarn(ing)?\b|\bdeprecated\b", _H),
    Marker(r"(?i)\bnan\b", _E),
    Marker(r"(?i)\boverflow|\btemporarily unavailable\b", _H),
    Marker(r"(?i)\b(crash|crashes|crashed|dies|died|killed)\b", _E),
    Marker(r"(?i)\b(dead|lost|missing)\b", _H),
    Marker(r"(?i)\bexit(s|ed)?( |-)?(with|code|status)|\bexitcode\b|\breturn code = -?[1-9]", _E),
    Marker("卡住|卡死|挂起|挂死|挂了|死锁|不动|没反应|没有反应|假死|夯住|停住|无响应", _F),
    Marker(
        "报错|错误|失败|异常|崩溃|超时|退出|中断|溢出|断开|找不到|无法|不能|起不来|起不了|跑不起来|被杀|爆显存|显存不足",
        _E,
    ),
    # Follow-on
    Marker(r"(?i)\b(connection (was )?(closed|reset) by (remote )?peer|broken pipe)\b", _O),
    Marker(r"\bChildFailedError\b|\bSIGTERM\b|\bSIGHUP\b|\bRoot Cause \(first observed", _O),
    Marker(r"\bhas NOT been destroyed before|\btaking the entire process down\b", _O),
    Marker(
        r"(?i)\bsending process \d+ closing signal|\bkilling subprocess|\bterminating worker",
        _O,
    ),
    Marker(r"\bsrun: (error|Terminating)|\bslurmstepd: error: \*\*\* ", _O),
    # Context
    Marker(r"\b(torchrun|mpirun|mpiexec|srun|sbatch|deepspeed|accelerate launch|docker run)\b", _C),
    Marker(r"\bpython3? (-m )?[\w./-]+ ", _C),
    Marker(r"\b(NCCL|TORCH|CUDA|VLLM|RAY|UCX|OMPI|FI|PYTORCH|ENABLE)_[A-Z_]{3,}=", _C),
    Marker(r"(?i)\bversion\b", _C),
    Marker(r"^frame #\d", _C),
)

MARKER_PATTERNS = tuple(Pattern(marker.pattern, regex=True) for marker in MARKERS)
"""The table as the scanner takes it, in the same order; every match is to be reported."""

_DENIED = re.compile(
    # The first letters of what follows: at most places nothing has to be tried.
    r"(?=[0nwzaefois])(?:"
    r"\b(?:0|no|without|zero|any) (?:known )?(?:\w+ )?(?:errors?|failures?|failed|warnings?)\b"
    r"|\b(?:errors?|failed|failures?|nan \w+)['\"]?\s*[:=]\s*['\"]?(?:0|false|none|null|\[\])\b"
    r"|\b(?:fail(?:ed|ures?)?|errors?) 0\b"
    r"|\b(?:on_|ignore[_ -]|skip[_ -])(?:error|fail)"
    r")",
    re.IGNORECASE,
)
_CALM = re.compile(
    r"\b(?:INFO|DEBUG|TRACE|NOTICE|LOG|info|debug)\b|^\s*(?:ok \d|PASS|# |\u2713|\u2714|\u221a)"
)


def grade_line(text: str, numbers: set[int]) -> Grade:
    """Weigh a line by the markers that fired on it.

    A line that denies a failure (`0 errors`) is context; a line that its own program calls
    informative counts one less.
    """
    grades = [MARKERS[number].grade for number in numbers]
    if not grades or _DENIED.search(text):
        return Grade.CONTEXT
    best = max(grades)
    if Grade.FOLLOW_ON in grades and best < Grade.FATAL:
        return Grade.FOLLOW_ON
    if best in (Grade.ERROR, Grade.HINT) and _CALM.search(text[:80]):
        return Grade.HINT if best is Grade.ERROR else Grade.CONTEXT
    return best
