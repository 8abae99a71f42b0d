"""Hide what differs between two prints of the same line: times, addresses, paths, numbers.

Two lines with the same mask say the same. Identifiers with digits in them (`H100`, `zero3`,
`fp16`) are names and stay.
"""

from __future__ import annotations

import re

import msgspec


class Mask(msgspec.Struct, frozen=True):
    """One kind of detail and what stands for it."""

    pattern: str
    shown: str


_PORT = r"(?:[:/]\d+\b|<\d+>)?"

MASKS = (
    Mask(r"\d{4}[-/]\d\d[-/]\d\d[T ,_]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
    Mask(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
    Mask(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<uuid>"),
    Mask(r"\b0x[0-9a-fA-F]+\b", "<address>"),
    Mask(r"\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?\b", "<pci>"),
    Mask(r"\b127(?:\.\d{1,3}){3}" + _PORT, "<loopback>"),
    Mask(r"\b169\.254(?:\.\d{1,3}){2}" + _PORT, "<link-local>"),
    Mask(r"\bfe80:[0-9a-fA-F:]*", "<link-local>"),
    Mask(r"\b\d{1,3}(?:\.\d{1,3}){3}" + _PORT, "<ip>"),
    Mask(r"\b(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{0,4}\b", "<ip>"),
    Mask(r"\b[0-9a-f]{12,64}\b", "<hash>"),
    Mask(r"(?:/[\w.@+~-]+){2,}(?=/[\w.@+~-]+/[\w.@+~-]+)", ""),
    Mask(r"(?<![\w.])[+-]?\d+(?:\.\d+)*(?:[eE][+-]?\d+)?(?![\w])", "<n>"),
    Mask(r"(?<=\d)(?=[KMGT]i?B\b)", ""),
)
"""Tried in this order at every place. A path keeps its last two parts, and an address its kind:
who listens on the loopback is not reached from another host."""

_STARTS = r"(?=[\da-fA-F/+KMGT-])"
"""What any of them begins with: at most places of a line nothing has to be tried."""

_ANY = re.compile(
    f"{_STARTS}(?:"
    + "|".join(f"(?P<m{number}>{mask.pattern})" for number, mask in enumerate(MASKS))
    + ")"
)
_SHOWN = {f"m{number}": mask.shown for number, mask in enumerate(MASKS)}


def mask(text: str) -> str:
    """Return the text with its details hidden."""
    return _ANY.sub(lambda match: _SHOWN[match.lastgroup or ""], text)
