"""Bytes of a terminal session to bytes of text. Line numbers are kept: no line is joined or split.

Logs are hostile input: what `strip_controls` leaves cannot move a cursor, set a title or ring.
"""

from __future__ import annotations

import re
import string

_ESCAPE = re.compile(
    rb"\x1b(?:"
    rb"\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor movement (ECMA-48, 5.4)
    rb"|[\]PX^_](?:[^\x07\x1b\n]*(?:\x07|\x1b\\))?"  # OSC, DCS and other strings (ECMA-48, 5.6)
    rb"|[ -/]*[0-~]?"  # two-character escapes
    rb")"
)
"""Of a string without an end in its line only the start goes: what follows may be a message."""
_OVERSTRUCK = re.compile(rb"([!-~]|[\xc2-\xf4][\x80-\xbf]{1,3})\x08(?=\1)|_\x08|\x08_")
"""Bold and underlined text of a line printer: the same sign twice, or a line below it. What another
sign strikes over stays, since it may be a message; only the backspace between them goes."""
_FULL_WIDTH = re.compile(rb"\xef(?:\xbc[\x90-\x99\xa1-\xba]|\xbd[\x81-\x9a])")
"""Digits and letters of the width of Chinese characters (U+FF10 to U+FF5A in UTF-8)."""
_FULL_WIDTH_OFFSET = 0xFEE0
"""From a sign of ASCII to its full-width form."""
_PROGRESS = re.compile(rb"\d\s?%|it/s|s/it|\d/\d+\s*\[|[#=\xe2\x96\x88>.-]{8,}")
"""Only the last digit of a number is looked for: with all of them, a line of digits would be read
again from each."""
_ESCAPED = re.compile(
    rb"\\u(00[a-fA-F][0-9a-fA-F]|00(?!22|5[cC]|7[fF])[2-7][0-9a-fA-F]"
    rb"|0[1-9a-fA-F][0-9a-fA-F]{2}|[1-9a-cA-CefEF][0-9a-fA-F]{3}"
    rb"|[dD][0-7][0-9a-fA-F]{2})"
)
"""A sign as JSON writes it, but for controls, halves of pairs, and what ends a text of JSON."""
_INVISIBLE = re.compile(rb"\xe2\x80[\x8b-\x8f]|\xe2\x81[\xa0-\xa4]|\xc2\xad|\xef\xbb\xbf")
"""Zero-width signs and soft hyphens, which split a word unseen (in UTF-8)."""
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_DISGUISES = str.maketrans(
    dict.fromkeys(
        [0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF]
    )
    | dict.fromkeys([0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
    | {_FULL_WIDTH_OFFSET + ord(sign): sign for sign in f"{string.ascii_letters}{string.digits}="}
)
"""Signs of no width, which go; blanks of another width, and full-width letters, digits and `=`,
which become plain ones."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_block(block: bytes) -> bytes:
    """Strip escape sequences, NUL bytes and signs of no width, collapse progress bars that redraw
    themselves, and write overstruck, full-width and escaped letters as plain ones."""
    if b"\x1b" in block:
        block = _ESCAPE.sub(b"", block)
    if b"\0" in block:
        block = block.replace(b"\0", b"")
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if b"\r" in block:
        block = b"\n".join(map(collapse_progress, block.split(b"\n")))
    if b"\b" in block:
        block = _OVERSTRUCK.sub(b"", block).replace(b"\b", b"")
    if b"\xef" in block:  # one byte alone is searched for at memory speed
        block = _FULL_WIDTH.sub(_plain, block)
    if b"\\" in block:
        block = _ESCAPED.sub(_decoded, block)
    if b"\xe2" in block or b"\xc2" in block or b"\xef" in block:
        block = _INVISIBLE.sub(b"", block)
    return block


def _decoded(sign: re.Match[bytes]) -> bytes:
    return chr(int(sign[1], 16)).encode()


def _plain(sign: re.Match[bytes]) -> bytes:
    return bytes([ord(sign[0].decode()) - _FULL_WIDTH_OFFSET])


def without_escapes(text: str) -> str:
    """A text that was not read from a log, without its escape sequences."""
    if "\x1b" not in text:
        return text
    encoded = text.encode("utf-8", "surrogatepass")
    return _ESCAPE.sub(b"", encoded).decode("utf-8", "surrogatepass")


def without_disguises(text: str) -> str:
    """A text that was pasted from a chat, a web page, a line printer or a Chinese keyboard, with
    plain blanks, letters and `=`, and without signs of no width."""
    if "\b" in text or "\0" in text:
        encoded = text.encode("utf-8", "surrogatepass").replace(b"\0", b"")
        struck = _OVERSTRUCK.sub(b"", encoded).replace(b"\b", b"")
        text = struck.decode("utf-8", "surrogatepass")
    return text if text.isascii() else text.translate(_DISGUISES)


def collapse_progress(line: bytes) -> bytes:
    """A line as it is left: what a carriage return overwrites goes only if it is a progress bar."""
    if b"\r" not in line:
        return line
    *overwritten, last = line.rstrip(b"\r").split(b"\r")
    return b"".join([*map(_message, overwritten), last])


def _message(text: bytes) -> bytes:
    return b"" if not text.strip() or _PROGRESS.search(text) else text + b" "


def strip_controls(text: str) -> str:
    """Replace tabs by spaces and drop escape sequences, control, bidirectional and invisible
    characters."""
    return drop_controls(text.expandtabs(4))


def drop_controls(text: str) -> str:
    """Drop escape sequences, whole, so that nothing of them stands before a secret; and control,
    bidirectional and invisible characters, but for tabs and ends of lines."""
    return _UNPRINTABLE.sub("", without_escapes(text))


def escape_controls(encoded: str) -> str:
    """The same JSON with escapes for what `strip_controls` drops: other tools get every character,
    and a terminal obeys none."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)


def decode_path(path: str) -> str:
    """The name of a file as text: what is not UTF-8 in it is replaced."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def replace_surrogates(text: str) -> str:
    """A text that can be written: a pickle may hold halves of characters."""
    return _SURROGATE.sub("\ufffd", text)
