"""The lines of a job on which its diagnosis stands: the culprits' own before all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from kb.job.attempt import Attempt, RankLog
from kb.job.model import Culprit, FaultRole, LogLine, RootCause
from kb.log import Block
from kb.log.layout import is_system_log
from kb.rules.rows import FailureKind

_MAX_RANKS_SHOWN = 3
"""Culprits, and of the others as many: more print the same."""
_HEAD_LINES, _TAIL_LINES = 15, 150
"""Of a culprit's log: what it was started with, and the end."""
_LINES_AROUND = 12
"""Lines before and after a complaint: a stack and the line that led to it."""
_SHARED = (FailureKind.HANG, FailureKind.DESYNC, FailureKind.NETWORK, FailureKind.RENDEZVOUS)
"""Failures between ranks: what the others complain of is a part of the story."""


def excerpt(attempt: Attempt, root_cause: RootCause) -> tuple[Block, ...]:
    """Blocks of the lines that tell of the first failure, each line with its number."""
    return _blocks(_chosen(attempt, root_cause))


def _chosen(attempt: Attempt, root_cause: RootCause) -> Iterator[LogLine]:
    culprits = root_cause.culprits[:_MAX_RANKS_SHOWN]
    for culprit in culprits:
        yield from _of_culprit(attempt, culprit)
    for log in attempt.hosts.values():
        head = log.lines[:_HEAD_LINES]
        yield from (line for line in head if not is_system_log(line.file or ""))
    if root_cause.kind in _SHARED:
        shown = {culprit.rank for culprit in culprits}
        others = [log for log in attempt.logs if log.failure and log.rank not in shown]
        for log in others[:_MAX_RANKS_SHOWN]:
            yield from _around(log, log.failure)


def _of_culprit(attempt: Attempt, culprit: Culprit) -> Iterator[LogLine]:
    log = None if culprit.rank is None else attempt.ranks.get(culprit.rank)
    if log is not None:
        yield from log.lines[:_HEAD_LINES]
        yield from log.lines[-_TAIL_LINES:]
    for other in attempt.logs:
        yield from _around(other, culprit.line)
        if other.rank is None and other.host == culprit.host and culprit.rank is None:
            yield from (line for line in other.failures if line.role >= FaultRole.LOST_PEER)


def _around(log: RankLog, line: LogLine | None) -> Iterator[LogLine]:
    """The lines of a log near one of its own; none if the line is of another log."""
    index = next((n for n, own in enumerate(log.lines) if own is line), None)
    if index is not None and line is not None:
        reach = 0 if line.kind is FailureKind.NETWORK else _LINES_AROUND
        near = log.lines[max(index - reach, 0) : index + reach + 1]
        yield from (other for other in near if other.file == line.file)


def _blocks(lines: Iterable[LogLine]) -> tuple[Block, ...]:
    by_file: dict[str | None, dict[int, list[str]]] = defaultdict(dict)
    for line in lines:
        texts = by_file[line.file].setdefault(line.number, [])
        if line.text not in texts:
            texts.append(line.text)
    return tuple(_block(file, by_number) for file, by_number in by_file.items())


def _block(file: str | None, by_number: dict[int, list[str]]) -> Block:
    pairs = [(number, text) for number in sorted(by_number) for text in by_number[number]]
    data = "".join(f"{text}\n" for _number, text in pairs).encode()
    numbers = tuple(number for number, _text in pairs)
    return Block(file, numbers[0], len(numbers), data, numbers)
