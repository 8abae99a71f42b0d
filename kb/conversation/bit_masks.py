"""Numbers of which each bit has a meaning: rows of `bit_masks.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from kb.conversation.language import Language

_NUMBER = re.compile(
    r"\b0x(?P<hex>[0-9a-f]{1,16})\b|\bbit ?(?P<bit>\d{1,2})\b|(?P<zh>\d{1,2}) ?(?:位|bit)"
    r"|(?<![\w.])(?P<decimal>\d{1,6})(?![\w.]*\d)",
    re.IGNORECASE,
)
_BITS = 64


class BitMask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each bit of a number stands for."""

    en: str
    zh: str
    named: str
    """Pattern: what stands around such a number."""
    source: str
    """The address of a page about it."""
    harmless: tuple[int, ...]
    """Bits that tell no fault."""
    bits: dict[int, str]
    """By the number of the bit, from 0."""
    bits_zh: dict[int, str]

    def name(self, language: Language) -> str:
        """As it is called."""
        return self.zh if language is Language.CHINESE else self.en

    def meaning(self, bit: int, language: Language) -> str:
        """Of one bit; empty where it has none."""
        return (self.bits_zh if language is Language.CHINESE else self.bits).get(bit, "")

    def holds(self, value: int) -> bool:
        """Whether all bits that are set have a meaning."""
        return all(bit in self.bits for bit in set_bits(value))


def number_asked(text: str) -> int | None:
    """The number whose bits a text asks for, "bit 3" as 8; None without one."""
    found = sorted(_NUMBER.finditer(text), key=lambda one: one["decimal"] is not None)
    if not found:
        return None
    first = found[0]
    if first["hex"]:
        return int(first["hex"], 16)
    bit = first["bit"] or first["zh"]
    return 1 << int(bit) if bit else int(first["decimal"])


def mask_named(texts: Iterable[str]) -> BitMask | None:
    """The mask that the first text which names one speaks of; None without."""
    for text in texts:
        for mask in bit_masks():
            if re.search(mask.named, text, re.IGNORECASE):
                return mask
    return None


def set_bits(value: int) -> list[int]:
    """The numbers of the bits that are 1, from 0."""
    return [bit for bit in range(_BITS) if value >> bit & 1]


@cache
def bit_masks() -> tuple[BitMask, ...]:
    """All of them, the most usual first."""
    source = Path(__file__).with_name("bit_masks.toml").read_bytes()
    rows = tomllib.loads(source.decode())["mask"]
    return msgspec.convert(rows, tuple[BitMask, ...], strict=False)
