"""Ranks that called different collectives: the minority is at fault."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kb.expression import Expression
from kb.job.attempt import Attempt, RankLog
from kb.job.differences import find_departures, find_differences
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.job.root_cause.comparison import odd_ones
from kb.log.mask import mask
from kb.numbers import read_int
from kb.rules.rows import FailureKind

_WORD = Expression(r"\W*[^\W\d]+\W*")
_MIN_RANKS = 3
"""Of two ranks nothing tells which one is the odd one."""
_STATED = tuple(
    re.compile(pattern)
    for pattern in (
        # torch with TORCH_DISTRIBUTED_DEBUG=DETAIL: the operation, its shape, its type
        r"Rank (?P<rank>\d+) is running collective: CollectiveFingerPrint\(SequenceNumber=\d+"
        r"(?:, )?OpType=(?P<what>\w+)",  # without a comma where it has no tensors
        r"Rank (?P<rank>\d+) is running collective: CollectiveFingerPrint\(.*?"
        r"TensorShape=(?P<what>\[[^\]]*\])",
        r"Rank (?P<rank>\d+) is running collective: CollectiveFingerPrint\(.*?"
        r"TensorDtypes=(?P<what>\w+)",
        # DistributedDataParallel
        r"[Rr]ank (?P<rank>\d+) has (?:inconsistent )?(?P<what>\d+) params",
    )
)
"""What each rank did, as the error of any of them states it."""
_TIMED_OUT = re.compile(
    r"\[(?P<group>[^\]]{0,200}?)Rank \d+\] Watchdog caught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?!SEND|RECV|COALESCED|UNKNOWN)"
    r"(?P<what>(?P<operation>\w+)(?:, NumelIn=\d+)?)"
)
"""What a rank waited for in vain, as the watchdog of its process group says; what is sent to one
peer is not the same on both sides."""
_TRUNCATED = re.compile(r"\bMPI_ERR_TRUNCATE\b|\bmessage truncated\b", re.IGNORECASE)
_UNEVEN = "ALLTOALL"
"""Its ranks may send different numbers of elements."""


def sent_more(attempt: Attempt) -> RootCause | None:
    """Name the rank that alone printed another value than before, where a message was longer than
    the buffer of a rank. One that crashes beside it did so for what was written behind its own."""
    failed = [log.failure for log in attempt.ranks.values() if log.failure]
    own = [line for line in failed if line.role >= FaultRole.SELF_INFLICTED]
    if any(line.kind is not FailureKind.SIGNAL for line in own) or not any(
        line.role is FaultRole.OUT_OF_STEP and _TRUNCATED.search(line.text) for line in failed
    ):
        return None
    found = dict(find_departures(attempt))
    if len(found) != 1:
        return None
    ((rank, line),) = found.items()
    host = line.host or attempt.reported_host(rank)
    return RootCause(FailureKind.DESYNC, (Culprit(rank, host, line),), Explanation.DESYNC)


def mismatched(attempt: Attempt) -> RootCause | None:
    """Name the ranks whose collective, or whose last line, differs from most."""
    apart = [log for log in attempt.logs if log.role is FaultRole.OUT_OF_STEP]
    if not apart:
        return None
    odd = _odd_statements(apart)
    if odd:
        culprits = [
            Culprit(rank, attempt.reported_host(rank), _line_of(attempt, rank, apart))
            for rank in odd
        ]
    elif alone := _odd_words(apart):
        culprits = [Culprit(log.rank, log.host, log.failure) for log in alone]
    elif other_value := _printed_other_value(attempt):
        culprits = [other_value]
    else:
        chosen = odd_ones(list(attempt.ranks.values())) or apart
        culprits = [Culprit(log.rank, log.host, log.failure or log.last) for log in chosen]
    return RootCause(FailureKind.DESYNC, tuple(culprits), Explanation.DESYNC)


def timed_out_apart(attempt: Attempt) -> RootCause | None:
    """Name the ranks that waited for another collective than most, each for the same one by its
    number in one process group."""
    waited: dict[tuple[str, str], dict[int, tuple[str, LogLine]]] = defaultdict(dict)
    for rank, log in attempt.ranks.items():
        for line in log.failures:
            if match := _TIMED_OUT.search(line.text):
                operation = match["operation"]
                what = operation if operation.startswith(_UNEVEN) else match["what"]
                waited[match["group"], match["number"]].setdefault(rank, (what, line))
    for by_rank in waited.values():
        odd = _unlike_most({rank: what for rank, (what, _line) in by_rank.items()})
        if odd:
            culprits = (Culprit(rank, by_rank[rank][1].host, by_rank[rank][1]) for rank in odd)
            return RootCause(FailureKind.DESYNC, tuple(culprits), Explanation.DESYNC)
    return None


def _odd_words(apart: Iterable[RankLog]) -> list[RankLog]:
    """The ranks of which the error names another operation than that of most, in the same words."""
    said = {
        log: tuple(mask(log.failure.message).split())
        for log in apart
        if log.failure and log.rank is not None
    }
    common = Counter(said.values()).most_common(1)
    if len(said) < _MIN_RANKS or 2 * common[0][1] <= len(said):
        return []
    usual = common[0][0]
    return [log for log, own in said.items() if _differs_in_one(own, usual)]


def _differs_in_one(own: Sequence[str], usual: Sequence[str]) -> bool:
    """Whether two lines differ in one word, which may be the name of an operation."""
    different = [one for one, other in zip(own, usual, strict=False) if one != other]
    return len(own) == len(usual) and len(different) == 1 and bool(_WORD.fullmatch(different[0]))


def _printed_other_value(attempt: Attempt) -> Culprit | None:
    """The one rank that printed another value than all others, as of a size that it read."""
    found = [one for one in find_differences(attempt) if one.usual is not None]
    if len({one.rank for one in found}) != 1:
        return None
    rank, line = found[0].rank, found[0].line
    return Culprit(rank, line.host or attempt.reported_host(rank), line)


def _odd_statements(logs: Iterable[RankLog]) -> list[int]:
    """Ranks of which something else is stated than of most."""
    texts = [(log.rank, line.text) for log in logs for line in log.failures]
    for pattern in _STATED:
        stated: dict[int, str] = {}
        own: dict[int, str] = {}
        for speaker, text in texts:
            for match in pattern.finditer(text):
                if (rank := read_int(match["rank"])) is not None:
                    (own if rank == speaker else stated)[rank] = match["what"]
        stated |= own  # what a rank says of another one may be garbled
        if odd := _unlike_most(stated):
            return odd
    return []


def _unlike_most(stated: Mapping[int, str]) -> list[int]:
    """Ranks of which something else is stated than of most; none where no statement is that of
    most."""
    common = Counter(stated.values()).most_common()
    if len(common) < 2 or common[0][1] == common[1][1]:
        return []
    return sorted(rank for rank, what in stated.items() if what != common[0][0])


def _line_of(attempt: Attempt, rank: int, apart: Sequence[RankLog]) -> LogLine | None:
    """The failure of a rank, or else of one that prints about it."""
    log = attempt.ranks.get(rank)
    if log is not None and log.failure is not None:
        return log.failure
    return next((other.failure for other in apart if other.failure), None)
