"""What the process inherits from its terminal, made usable once at its start: the standard streams,
their encoding, and the size of the terminal."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import sys

PLAIN = "kb.plain"
"""How stdout and stderr write a sign that their encoding lacks: as one of ASCII."""
AS_JSON = "kb.json"
"""The same in JSON: as an escape, so that the reader of the JSON loses nothing."""

_STAND_INS = {
    sign: plain
    for plain, signs in (
        ("#", "█▓▉▊▋▌▍▎▏▐▀▁▂▃▄▅▆▇"),
        ("-", "░▒‐‑‒–—―−─━┄┅┈┉╌╍═╴╶╸╺"),
        ("|", "│┃┆┇┊┋╎╏║╵╷╹╻"),
        ("+", "┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┣┫┳┻╋╔╗╚╝╠╣╦╩╬"),
        ("*", "•·∙‣▪●◐✓"),
        ("o", "○◦"),
        (">", "›»▸▶→⇒"),
        ("<", "‹«◂◀←⇐"),
        ("...", "…"),
        ("'", "‘’‚′"),
        ('"', "“”„″"),
        ("x", "×"),
        (" ", "\u00a0"),
    )
    for sign in signs
}
"""A readable sign of ASCII for each that kb or a record prints. Any other becomes `?`."""

_SIZE = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
"""Columns or lines that a terminal can have."""


def prepare() -> None:
    """Make usable what the caller handed on."""
    _open_missing_streams()
    _write_any_text()
    _forget_odd_sizes()


def writable(text: str, lacking: str = PLAIN) -> str:
    """The text as the encoding of stdout has it; `lacking` names what is done where it lacks a
    sign."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, lacking).decode(encoding)


def _open_missing_streams() -> None:
    """Replace a stream that the caller closed (`<&-`) by the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _write_any_text() -> None:
    """Whatever the encoding of the terminal is, no text is an error."""
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, PLAIN), (sys.stderr, PLAIN)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def _forget_odd_sizes() -> None:
    """Libraries read a size as a number without asking whether it is one."""
    for name in ("COLUMNS", "LINES"):
        if not _SIZE.fullmatch(os.environ.get(name, "")):
            os.environ.pop(name, None)


def _plain(error: UnicodeError) -> tuple[str, int]:
    signs, end = _lacking(error)
    return "".join(_STAND_INS.get(sign, "?") for sign in signs), end


def _escaped(error: UnicodeError) -> tuple[str, int]:
    signs, end = _lacking(error)
    return json.dumps(signs)[1:-1], end


def _lacking(error: UnicodeError) -> tuple[str, int]:
    """The signs that cannot be encoded, and the place behind them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return error.object[error.start : error.end], error.end


codecs.register_error(PLAIN, _plain)
codecs.register_error(AS_JSON, _escaped)
