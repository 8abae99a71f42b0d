"""Makes log text safe for the screen: control sequences are shown, not interpreted."""

from __future__ import annotations

import re

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_TAB_COLUMNS = 4
"""Columns between two tab stops."""
_CONTROLS = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)

WRITTEN_OUT = re.compile(r"\^\[\[[0-?]*[ -/]*[@-~]|\^[@-_?]|<U\+[0-9A-F]{4}>|\\x[0-9a-f]{2}")
"""What `visible` wrote for control characters, with the colour or movement that one begins."""

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\ud800-\udfff]"
)


class NothingObeyed(LineFilter):
    """The last filter before the terminal: drops characters that move the cursor or reverse the
    text, and replaces characters that cannot be encoded by a question mark."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        return [
            segment
            if segment.control or not _OBEYED.search(segment.text)
            else Segment(_OBEYED.sub(_left, segment.text), segment.style)
            for segment in segments
        ]


def visible(text: str) -> str:
    """Control characters in the notation of a pager, `^[` or `<U+202E>`, and tabs as spaces.

    Only ASCII stands for them: other symbols are missing or two columns wide in some terminals.
    """
    return _CONTROLS.sub(_written_out, text).expandtabs(_TAB_COLUMNS)


def shortened(name: str, columns: int) -> str:
    """A path or an id with its middle left out, where it is longer: both ends tell something."""
    if len(name) <= columns:
        return name
    end = max(0, (columns - 1) // 2)
    return f"{name[: columns - 1 - end]}…{name[len(name) - end :]}"


def _written_out(control: re.Match[str]) -> str:
    code = ord(control[0])
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else f"<U+{code:04X}>"


def _left(character: re.Match[str]) -> str:
    return "?" if "\ud800" <= character[0] <= "\udfff" else ""
