"""Facts that can be read off lines: what runs, in which version, and the exact codes.

Codes one digit apart have different remedies (CUDA error 802, 803, 804), so they enter the search
as words of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from kb.evidence.accelerators import products_in
from kb.evidence.systems import systems_in, versions_in
from kb.expression import Expression
from kb.numbers import read_int, read_ints

Value = TypeVar("Value")


class Facts(msgspec.Struct, frozen=True):
    """What the lines say about the job. Empty where they are silent."""

    systems: tuple[str, ...] = ()
    absent_systems: tuple[str, ...] = ()
    """Those that somebody says are not used."""
    accelerators: tuple[str, ...] = ()
    """Cards, as they are named: `NVIDIA H800`, `RTX 4090`."""
    versions: dict[str, str] = {}
    collective: str | None = None
    """The first collective operation named, in upper case without underscore: ALLREDUCE."""
    sequence: int | None = None
    """Sequence number of that collective."""
    elements: tuple[int, int] | None = None
    """Its numbers of elements in and out."""
    timeout_ms: int | None = None
    ranks: tuple[int, ...] = ()
    world_size: int | None = None
    exit_codes: tuple[int, ...] = ()
    signals: tuple[str, ...] = ()
    xid: tuple[int, ...] = ()
    cuda_errors: tuple[int, ...] = ()
    nccl_errors: tuple[str, ...] = ()
    errno: tuple[int, ...] = ()
    environment: dict[str, str] = {}
    """Environment variables that are set on a line."""


_NOT_USED = Expression(
    r"(?:(?:(?<!can )(?<!could )\b(?:not|never)|(?<!ca)(?<!could)n't)"
    r" (?:us(?:e|ing)|(?:run(?:ning)? )?(?:in|under))(?: an?| any)?|\bno) "
    r"(?P<what>[\w-]+(?:/[\w-]+){0,3}(?:(?:, [\w-]+){0,2},? (?:or|and|nor) [\w-]+)?)"
    r"(?=\s*(?:[,.;:!)]|$))|(?:没有?|不|未)(?:使用|用|开|启用|在)\s?(?P<zh>容器|[\w-]+)",
    re.IGNORECASE | re.MULTILINE | re.ASCII,
)
"""A person says that something does not run: "we do not use docker", "没有用 deepspeed". A list
goes on behind a comma only where it ends in "or": "no error, slurm" runs with slurm."""
_COLLECTIVE = Expression(
    r"OpType=_?(?P<op>[A-Z_]+)|\b(?P<name>all[-_ ]?(?:gather|reduce)|reduce[-_ ]?scatter)",
    re.IGNORECASE,
)
_SEQUENCE = Expression(r"\bSeqNum=(\d+)")
_ELEMENTS = Expression(r"\bNumelIn=(\d+), NumelOut=(\d+)")
_TIMEOUT = Expression(r"\bTimeout\(ms\)=(\d+)")
_RANK = Expression(r"\[?[Rr]ank[ :=]?(\d{1,5})\b")
_WORLD_SIZE = Expression(r"\bworld[_ ]?size['\"]?[ :=]+(\d+)", re.IGNORECASE)
_EXIT_CODE = Expression(
    r"\b(?:exit ?code|exit status|return code|returncode|exited with(?: code)?|返回码)"
    r"\s*[:=(]*\s*(-?\d{1,3})\b",
    re.IGNORECASE,
)
_SIGNAL = Expression(r"\b(SIG(?:KILL|TERM|SEGV|BUS|ABRT|FPE|ILL|HUP|INT))\b")
_XID = Expression(r"\bXid\b(?: \([^()]*\))?[:# ]*(?:error |code )?(\d{1,3})\b", re.IGNORECASE)
_CUDA_ERROR = Expression(
    r"\b(?:CUDA|cu\w+|cuda\w*|driver)[ -]?(?:error|failure|code|err)s?(?: code)?\W{0,3}(\d{1,3})\b"
    r"|\b(?:error|code|错误码?)\W{0,2}(\d{3})\b",
    re.IGNORECASE,
)
_NCCL_ERROR = Expression(r"\b(nccl(?:Unhandled|System|Internal|Invalid|Remote)\w+)")
_ERRNO = Expression(r"\b(?:errno|Errno)[ :=]+(\d{1,3})\b")
_ENVIRONMENT = Expression(
    r"\b((?:NCCL|TORCH|CUDA|VLLM|RAY|UCX|OMPI|FI|PYTORCH|GLOO|HF|OMP|ENABLE|HSA|ROCR)_[A-Z0-9_]+)"
    r"\s?[=:]\s?([^\s'\",;]+)"
)
_SIGNAL_NUMBERS = {6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_MAX_VALUES = 16
"""Values kept of one fact: more are a list of all ranks, not a trait of the failure."""


def find_facts(lines: Iterable[str]) -> Facts:
    """Read the facts off some lines."""
    text = "\n".join(lines)
    systems, absent = _systems(text)
    collective = _COLLECTIVE.search(text)
    exit_codes = _numbers(_EXIT_CODE, text)
    return Facts(
        systems=systems,
        absent_systems=absent,
        accelerators=_unique(products_in(text)),
        versions=versions_in(text),
        collective=_operation(collective) if collective else None,
        sequence=_first(_SEQUENCE, text),
        elements=_elements(text),
        timeout_ms=_first(_TIMEOUT, text),
        ranks=tuple(sorted(_numbers(_RANK, text))),
        world_size=_first(_WORLD_SIZE, text),
        exit_codes=exit_codes,
        signals=_signals(text, exit_codes),
        xid=_numbers(_XID, text),
        cuda_errors=_numbers(_CUDA_ERROR, text),
        nccl_errors=_unique(match[1] for match in _NCCL_ERROR.finditer(text)),
        errno=_numbers(_ERRNO, text),
        environment=dict(match.groups() for match in _ENVIRONMENT.finditer(text)),  # type: ignore[misc]
    )


def fact_words(facts: Facts) -> str:
    """The codes as words for the lexical channel; documents and queries use the same."""
    return " ".join(_words(facts))


def _words(facts: Facts) -> Iterator[str]:
    if facts.sequence is not None:
        yield "sequence:first" if facts.sequence < 10 else "sequence:later"
    if facts.elements == (1, 1):
        yield "elements:one"
    for name, values in (
        ("timeout", [] if facts.timeout_ms is None else [facts.timeout_ms // 1000]),
        ("exitcode", facts.exit_codes),
        ("xid", facts.xid),
        ("cuda", facts.cuda_errors),
        ("errno", facts.errno),
    ):
        yield from (f"{name}:code_{value}" for value in values)


def _systems(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The systems that a text names, and those that it names only to say that they are not used."""
    absent = [match["what"] or match["zh"] for match in _NOT_USED.finditer(text)]
    if not absent:
        return systems_in(text), ()
    used = systems_in(_NOT_USED.sub(" ", text))
    return used, tuple(name for name in systems_in("\n".join(absent)) if name not in used)


def _operation(match: re.Match[str]) -> str:
    name = (match["op"] or match["name"]).upper().lstrip("_")
    return re.sub(r"[-_ ]", "", name).removesuffix("BASE")


def _elements(text: str) -> tuple[int, int] | None:
    match = _ELEMENTS.search(text)
    numbers = tuple(read_ints(match.groups())) if match else ()
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _first(pattern: Expression, text: str) -> int | None:
    match = pattern.search(text)
    return read_int(match[1]) if match else None


def _numbers(pattern: Expression, text: str) -> tuple[int, ...]:
    found = pattern.finditer(text)
    return _unique(read_ints(next(filter(None, match.groups())) for match in found))


def _signals(text: str, exit_codes: Iterable[int]) -> tuple[str, ...]:
    """Signals by name, and those that an exit code stands for (-9, or 137 from a shell)."""
    named = [match[1] for match in _SIGNAL.finditer(text)]
    numbers = (-code if code < 0 else code - 128 for code in exit_codes)
    return _unique([*named, *(_SIGNAL_NUMBERS[n] for n in numbers if n in _SIGNAL_NUMBERS)])


def _unique(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))[:_MAX_VALUES]
