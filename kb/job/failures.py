"""What a line says about who is at fault. Adding a failure is adding a row."""

from __future__ import annotations

import re

from kb.evidence.markers import Grade
from kb.job.lines import ATTACHED
from kb.job.model import FailureKind, FailurePattern, FaultRole


def _row(role: FaultRole, kind: FailureKind, *patterns: str) -> FailurePattern:
    return FailurePattern(re.compile("|".join(patterns), re.IGNORECASE), kind, role)


FAILURES = (
    # Told to stop
    _row(
        FaultRole.STOPPED,
        FailureKind.SIGNAL,
        r"\bSIGTERM\b|\bSignal(?:s\.)?:? ?15\b|SignalException.*\b15\b|signal: Terminated",
        r"KeyboardInterrupt|\bsending process \d+ closing|Exception ignored in",
    ),
    _row(
        FaultRole.STOPPED,
        FailureKind.HANG,
        r"time ?limit\b.{0,40}\b(?:reached|exceeded|expired)|exceeded the time limit",
        r"due to time ?limit|MPIEXEC_TIMEOUT",
    ),
    # Something outside
    _row(
        FaultRole.EXTERNAL_CAUSE,
        FailureKind.DISK,
        r"no space left on device|disk quota exceeded|read-only file system|input/output error",
        r"\bENOSPC\b|\bEDQUOT\b|\bErrno (?:28|122|30|5)\b|stale (?:nfs )?file handle",
        # torch.save on a full disk
        r"file write failed|unexpected pos \d+ vs|iostream error|StreamWriter failed writing",
        r"\d requested and \d+ written",
    ),
    _row(
        FaultRole.EXTERNAL_CAUSE,
        FailureKind.MEMORY,
        r"\bkilled process \d+|\boom-kill:|\boom_kill\b|detected \d+ oom[-_ ]kill|out of memory",
        r"\bMemoryError\b|\bOutOfMemory|std::bad_alloc|\bErrno 12\b",
        r"cannot allocate memory|can't allocate memory",
    ),
    _row(
        FaultRole.EXTERNAL_CAUSE,
        FailureKind.HARDWARE,
        r"\bXid \(|fallen off the bus|uncorrectable ecc|\bmachine check\b|hardware error",
    ),
    _row(
        FaultRole.EXTERNAL_CAUSE,
        FailureKind.EXCEPTION,
        r"\bunable to (?:find|launch|execute) the specified",
    ),
    _row(
        FaultRole.EXTERNAL_CAUSE,
        FailureKind.RENDEZVOUS,
        r"temporary failure in name resolution|name or service not known|\bgai ?error\b",
        r"could ?n.t resolve host|nodename nor servname|\bEADDRINUSE\b|address already in use",
    ),
    _row(
        FaultRole.EXTERNAL_CAUSE,
        FailureKind.NETWORK,
        r"\blink (?:is )?down\b|port error|\bport \d+ (?:is )?down\b",
        # ip monitor, for other than the devices of containers
        r"\d: (?!docker|veth|br-|virbr|cni|flannel|cali|lo\b|tun|tap|dummy|vnet)[a-z][\w.-]*"
        r"(?:@[\w.-]+)?: <[^>]*>.*\bstate (?:LOWERLAYER)?DOWN",
    ),
    # Different things on different ranks
    _row(
        FaultRole.OUT_OF_STEP,
        FailureKind.DESYNC,
        r"detected mismatch between collectives|mismatched? (?:between )?(?:collective|sequence)",
        r"\bdesync|collectives differ|preamble\.length|message truncated|MPI_ERR_TRUNCATE",
        r"expects same model across all ranks|appears not to match (?:sizes|strides)",
    ),
    # In vain
    _row(
        FaultRole.TIMED_OUT,
        FailureKind.RENDEZVOUS,
        r"rendezvous\w*timeout|timed out (?:after \d+ seconds )?waiting for clients|clients joined",
        r"client socket has timed out|timed out initializing process group|store based barrier",
        r"waitForInput: (?:poll|socket)",
        r"failed to connect to|failed to recv|DistStoreError|: wait timeout\b|wait timeout after",
    ),
    _row(
        FaultRole.TIMED_OUT,
        FailureKind.HANG,
        r"timed out waiting \d+ ?ms|collective operation timeout|watchdog (?:caught|timeout)",
        r"monitoredBarrier|application timeout caused|operation timed out|timed out while waiting",
        r"last enqueued .*work|^Timeout \(\d+:\d\d:\d\d\)!",
        r"(?:barrier|collective|all_?reduce|all_?gather|broadcast|recv|send)\b.{0,60}\btimed out",
    ),
    # A peer went away
    _row(
        FaultRole.LOST_PEER,
        FailureKind.NETWORK,
        r"no route to host|network is unreachable|connection timed out|host is unreachable",
        r"lost communication|unable to connect to the peer",
    ),
    _row(
        FaultRole.LOST_PEER,
        FailureKind.SIGNAL,
        r"connection (?:was )?(?:closed|reset) by (?:remote )?peer|broken pipe|socket closed",
        r"remote process exited|communicator was aborted|got 0 bytes|transport endpoint|recvBytes",
        r"sendBytes|\bEOFError\b|Connection(?:Reset)?Error\b|ConnectionAborted|DistNetworkError",
        r"peer went away|peer (?:process )?(?:died|exited)|the server has (?:likely )?died",
        r"RendezvousConnectionError|RendezvousClosedError|ncclRemoteError|connectFullMesh",
        r"RemoteDisconnected|DataLoader worker .*(?:exited unexpectedly|signal: Terminated)",
        # what launchers say when a child failed
        r"ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException",
        r"RayActorError|ActorDiedError|fatal error in \w+: (?:other mpi|unknown)|_ERR_PROC_FAILED",
        r"BAD TERMINATION|callback returned error status|terminated badly|demux engine error",
        r"assert \(!closed\)",
    ),
    _row(
        FaultRole.UNCLASSIFIED,
        FailureKind.EXCEPTION,
        r"RayTaskError|WorkerCrashedError|a worker died or was killed|terminate called",
    ),
    # By itself
    _row(
        FaultRole.SELF_INFLICTED,
        FailureKind.SIGNAL,
        r"segmentation fault|\bsegfault\b|\bbus error\b|illegal instruction|stack smashing",
        r"floating point exception|\bSIG(?:SEGV|BUS|FPE|ILL|ABRT|KILL)\b|fatal python error",
        r"\bcore dumped\b|caught signal \d|double free|free\(\): invalid|malloc\(\)",
        r"corrupted size|\bSignal: .*\(\d+\)",
    ),
    _row(
        FaultRole.SELF_INFLICTED,
        FailureKind.EXCEPTION,
        r"^\s*(?:[\w.]+\.)?[A-Za-z_]\w*(?:Error|Exception|Failure|Exit|Interrupt|Warning)\b"
        r"(?::|$|\()",
        r"\bwhat\(\):|\bassert(?:ion)?\b.{0,120}\bfailed|\bpanic\b",
        r"ModuleNotFound|command not found|No such file|\berror while loading shared libraries",
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
_EXCEPTION = FailurePattern(_ANYTHING, FailureKind.EXCEPTION, FaultRole.SELF_INFLICTED)
_COMPLAINT = FailurePattern(_ANYTHING, FailureKind.EXCEPTION, FaultRole.UNCLASSIFIED)


def classify(text: str, grade: Grade) -> FailurePattern | None:
    """What a line says about its rank, or None where it says nothing of the kind."""
    if grade is Grade.CONTEXT or _NO_FAILURE.match(text):
        return None
    pattern = next((pattern for pattern in FAILURES if pattern.regex.search(text)), None)
    if pattern is not None and pattern.role is FaultRole.SELF_INFLICTED and _WARNS.search(text):
        return _COMPLAINT
    if pattern is not None or grade in (Grade.HINT, Grade.FOLLOW_ON):
        return pattern
    return _EXCEPTION if grade is Grade.FATAL else _COMPLAINT
