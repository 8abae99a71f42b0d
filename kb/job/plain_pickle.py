"""Reads pickles of plain values: texts, numbers, lists, tuples, and dictionaries by text.

A pickle is a program. Python's own machine for it runs code, calls itself for each level of a tuple
that is a key, and takes numbers as keys that were chosen to have one hash. The machine here knows
only the instructions for plain values, and only texts as keys.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Sequence
from typing import Any

_LITERALS = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING"),
        *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    )
)
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
}
_COUNTS = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "APPEND": 1, "SETITEM": 2}
"""Values that an instruction takes; another takes those behind the last mark."""
_SAVE = ("PUT", "BINPUT", "LONG_BINPUT")
_LOAD = ("GET", "BINGET", "LONG_BINGET")
_NO_VALUE = ("PROTO", "FRAME")


def load_plain(pickled: bytes, most: int) -> Any:
    """What a pickle stands for that has at most so many instructions.

    Raises:
        Exception: it has more, is damaged, or holds more than plain values.
    """
    machine = _Machine()
    for count, (opcode, argument, _place) in enumerate(pickletools.genops(pickled)):
        if count > most:
            raise ValueError("too many values")
        if opcode.name != "STOP":
            machine.step(opcode.name, argument)
    return machine.stack.pop()


class _Machine:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _LITERALS:
            stack.append(argument)
        elif name in _SAVE:
            self._memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in _LOAD:
            stack.append(self._memo[argument])
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            self._marks.append(len(stack))
        elif name not in _NO_VALUE:
            self._gather(name)

    def _gather(self, name: str) -> None:
        """Make one value of the last ones, or put them into the one before them."""
        count = _COUNTS.get(name)
        start = self._marks.pop() if count is None else len(self.stack) - count
        values = self.stack[start:]
        del self.stack[start:]
        if name.startswith("TUPLE"):
            self.stack.append(tuple(values))
        elif name == "LIST":
            self.stack.append(values)
        elif name == "DICT":
            self.stack.append(_pairs(values))
        elif name in ("APPEND", "APPENDS"):
            self.stack[-1].extend(values)
        elif name in ("SETITEM", "SETITEMS"):
            self.stack[-1].update(_pairs(values))
        else:
            raise ValueError(f"{name} is of no plain value")


def _pairs(values: Sequence[Any]) -> dict[str, Any]:
    if not all(isinstance(key, str) for key in values[::2]):
        raise ValueError("a key is no text")
    return dict(zip(values[::2], values[1::2], strict=True))
