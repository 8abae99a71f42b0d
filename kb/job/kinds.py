"""What a line says about who is at fault. Adding a failure is adding a row.

The order of the standings is the order of trust: a full disk explains a dead rank, a dead rank
explains closed connections, and closed connections explain nothing.
"""

from __future__ import annotations

import re
from enum import IntEnum, StrEnum

import msgspec

from kb.evidence.markers import Grade
from kb.job.lines import ATTACHED


class Kind(StrEnum):
    """What kind of failure it is."""

    DISK = "disk"
    MEMORY = "memory"
    HARDWARE = "hardware"
    NETWORK = "network"
    RENDEZVOUS = "rendezvous"
    SIGNAL = "signal"
    EXCEPTION = "exception"
    DESYNC = "desync"
    HANG = "hang"
    STRAGGLER = "straggler"


class Standing(IntEnum):
    """What a line tells about the rank that says it."""

    NONE = 0
    STOPPED = 1
    """It was told to stop."""
    SAID = 2
    """It complains, in words that no row knows."""
    BEREFT = 3
    """It lost a peer."""
    WAITED = 4
    """It waited for others in vain."""
    APART = 5
    """It and others did different things."""
    OWN = 6
    """It failed by itself."""
    CAUSE = 7
    """What made it fail lies outside of it, and the line names it."""


class Row(msgspec.Struct, frozen=True):
    """A failure, the kind it is of, and what it says about its rank."""

    pattern: re.Pattern[str]
    kind: Kind
    standing: Standing


def _row(standing: Standing, kind: Kind, pattern: str) -> Row:
    return Row(re.compile(pattern, re.IGNORECASE), kind, standing)


_S, _B, _W, _A, _O, _C = (
    Standing.STOPPED,
    Standing.BEREFT,
    Standing.WAITED,
    Standing.APART,
    Standing.OWN,
    Standing.CAUSE,
)

ROWS = (
    # Told to stop
    _row(
        _S,
        Kind.SIGNAL,
        r"\bSIGTERM\b|\bSignal(?:s\.)?:? ?15\b|SignalException.*\b15\b|KeyboardInterrupt",
    ),
    _row(_S, Kind.SIGNAL, r"signal: Terminated|\bsending process \d+ closing|Exception ignored in"),
    _row(
        _S,
        Kind.HANG,
        r"time ?limit\b.{0,40}\b(?:reached|exceeded|expired)|due to time ?limit|MPIEXEC_TIMEOUT"
        r"|exceeded the time limit",
    ),
    # Something outside
    _row(
        _C,
        Kind.DISK,
        r"no space left on device|disk quota exceeded|\bENOSPC\b|\bEDQUOT\b|\bErrno (?:28|122|30|5)\b"
        r"|file write failed|unexpected pos \d+ vs|iostream error|read-only file system"
        r"|input/output error|stale (?:nfs )?file handle|\bPytorchStreamWriter failed writing\b",
    ),
    _row(
        _C,
        Kind.MEMORY,
        r"\bkilled process \d+|\boom-kill:|out of memory|\bMemoryError\b|cannot allocate memory|std::bad_alloc"
        r"|\boom_kill\b|\bOutOfMemory|can't allocate memory|\bErrno 12\b|detected \d+ oom[-_ ]kill",
    ),
    _row(
        _C,
        Kind.HARDWARE,
        r"\bXid \(|fallen off the bus|uncorrectable ecc|\bmachine check\b|hardware error",
    ),
    _row(_C, Kind.EXCEPTION, r"\bunable to (?:find|launch|execute) the specified"),
    _row(
        _C,
        Kind.RENDEZVOUS,
        r"temporary failure in name resolution|name or service not known|\bgai error\b|gaierror"
        r"|could ?n.t resolve host|nodename nor servname|\bEADDRINUSE\b|address already in use",
    ),
    _row(
        _C,
        Kind.NETWORK,
        r"\blink (?:is )?down\b|port error|\bport \d+ (?:is )?down\b"
        r"|\d: (?!docker|veth|br-|virbr|cni|flannel|cali|lo\b|tun|tap|dummy|vnet)[a-z][\w.-]*(?:@[\w.-]+)?:"
        r" <[^>]*>.*\bstate (?:LOWERLAYER)?DOWN",
    ),
    # Different things on different ranks
    _row(
        _A,
        Kind.DESYNC,
        r"detected mismatch between collectives|mismatched? (?:between )?(?:collective|sequence)|\bdesync"
        r"|expects same model across all ranks|appears not to match (?:sizes|strides)"
        r"|preamble\.length|collectives differ|message truncated|MPI_ERR_TRUNCATE",
    ),
    # In vain
    _row(
        _W,
        Kind.RENDEZVOUS,
        r"rendezvous\w*timeout|timed out (?:after \d+ seconds )?waiting for clients|\bclients joined\b"
        r"|client socket has timed out|timed out initializing process group|store based barrier"
        r"|failed to connect to|failed to recv|DistStoreError|wait timeout after",
    ),
    _row(
        _W,
        Kind.HANG,
        r"timed out waiting \d+ ?ms|collective operation timeout|watchdog (?:caught|timeout)"
        r"|monitoredBarrier|application timeout caused|operation timed out|timed out while waiting"
        r"|last enqueued .*work|^Timeout \(\d+:\d\d:\d\d\)!"
        r"|(?:barrier|collective|all_?reduce|all_?gather|broadcast|recv|send)\b.{0,60}\btimed out",
    ),
    # A peer went away
    _row(
        _B,
        Kind.NETWORK,
        r"no route to host|network is unreachable|connection timed out|host is unreachable"
        r"|lost communication|unable to connect to the peer",
    ),
    _row(
        _B,
        Kind.SIGNAL,
        r"connection (?:was )?(?:closed|reset) by (?:remote )?peer|broken pipe|remote process exited"
        r"|communicator was aborted|socket closed|\bEOFError\b|got 0 bytes|transport endpoint"
        r"|recvBytes|sendBytes|Connection(?:Reset)?Error\b|peer went away|ConnectionAborted"
        r"|DistNetworkError|RendezvousConnectionError|RendezvousClosedError|ncclRemoteError"
        r"|connectFullMesh|RemoteDisconnected|the server has (?:likely )?died|peer (?:process )?(?:died|exited)",
    ),
    _row(
        _B,
        Kind.SIGNAL,
        r"DataLoader worker .*(?:exited unexpectedly|killed by signal: Terminated)"
        r"|fatal error in \w+: (?:other mpi|unknown) error|BAD TERMINATION|callback returned error status"
        r"|\bterminated badly\b|demux engine error|assert \(!closed\)"
        r"|CalledProcessError|ProcessRaisedException|ProcessExitedException|ChildFailedError|\bMPI_ERR_PROC_FAILED\b|RayActorError|ActorDiedError",
    ),
    _row(
        Standing.SAID,
        Kind.EXCEPTION,
        r"RayTaskError|WorkerCrashedError|a worker died or was killed",
    ),
    # By itself
    _row(
        _O,
        Kind.SIGNAL,
        r"segmentation fault|\bsegfault\b|\bbus error\b|illegal instruction|floating point exception"
        r"|\bSIG(?:SEGV|BUS|FPE|ILL|ABRT|KILL)\b|fatal python error|\bcore dumped\b|stack smashing"
        r"|caught signal \d|double free|free\(\): invalid|malloc\(\)|corrupted size|\bSignal: .*\(\d+\)",
    ),
    _row(
        _O,
        Kind.EXCEPTION,
        r"^\s*(?:[\w.]+\.)?[A-Za-z_]\w*(?:Error|Exception|Failure|Exit|Interrupt|Warning)\b(?::|$|\()"
        r"|terminate called|\bwhat\(\):|\bassert(?:ion)?\b.{0,120}\bfailed|\bpanic\b|ModuleNotFound|command not found|No such file"
        r"|\berror while loading shared libraries",
    ),
)
"""Tried in this order; the first that fits gives the kind."""

_NO_FAILURE = re.compile(
    r"(?!\s+what\(\):)(?:" + ATTACHED.pattern + r")|\S+:\d+: \w*Warning:"
    r"|.*\bexit(?:ed|ing)? (?:with )?(?:status|code)[: =]*0\b"
)
"""Parts of stacks and other lines that only look like failures."""

_WARNS = re.compile(r"^.{0,60}?\b(?:warn(?:ing)?|info|debug|notice)\b", re.IGNORECASE)
_ANYTHING = re.compile("")
_EXCEPTION = Row(_ANYTHING, Kind.EXCEPTION, Standing.OWN)
_COMPLAINT = Row(_ANYTHING, Kind.EXCEPTION, Standing.SAID)


def classify(text: str, grade: Grade) -> Row | None:
    """What a line says about its rank, or None where it says nothing of the kind."""
    if grade is Grade.CONTEXT or _NO_FAILURE.match(text):
        return None
    row = next((row for row in ROWS if row.pattern.search(text)), None)
    if row is not None and row.standing is Standing.OWN and _WARNS.search(text):
        return _COMPLAINT
    if row is not None or grade in (Grade.HINT, Grade.FOLLOW_ON):
        return row
    return _EXCEPTION if grade is Grade.FATAL else _COMPLAINT
