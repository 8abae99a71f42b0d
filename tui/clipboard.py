"""Copying: to whatever clipboard can be reached, and always to a file.

A terminal does not report whether it accepted the text (OSC 52 has no reply, and many terminals
ignore it). So the message only says what kb tried, and names the file.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from textual.app import App

from index.private import FILE, make_directory
from kb.paths import cache_directory

MAX_BASE64_BYTES = 74_994
"""Bytes that xterm takes in one OSC 52 sequence, and others after it."""

_SCREEN_PIECE_BYTES = 240
"""GNU screen passes on pieces below 256 bytes, whatever its version."""
_HELPER_TIMEOUT_SECONDS = 2.0
"""A program that fills a clipboard takes milliseconds, unless its display does not answer."""


class _Helper(msgspec.Struct, frozen=True):
    """A program that fills a clipboard from its standard input."""

    session: str | None
    """The environment variable that is set where it works."""
    command: tuple[str, ...]
    clipboard: str


_HELPERS = (
    _Helper("WAYLAND_DISPLAY", ("wl-copy",), "the system clipboard"),
    _Helper("DISPLAY", ("xclip", "-selection", "clipboard"), "the system clipboard"),
    _Helper("DISPLAY", ("xsel", "--clipboard", "--input"), "the system clipboard"),
    _Helper(None, ("pbcopy",), "the system clipboard"),
    # Unless it is configured, tmux takes no OSC 52 from a program; by this way it sends its own.
    _Helper("TMUX", ("tmux", "load-buffer", "-w", "-"), "the tmux buffer"),
)


async def copy(text: str, app: App[Any]) -> str:
    """Copy exactly this text by every way there is; in a browser, to that of the browser alone.

    Returns a sentence for the user: which clipboards it was given to, and the file it is in.
    """
    data = text.encode("utf-8", "replace")
    if app.is_web:
        return _sent_to_browser(text, data, app)
    done = [f"copied to {clipboard}" async for clipboard in _filled(data)]
    done.append(_sent(text, data, app))
    done.append(_kept(data))
    sentence = "; ".join(done)
    return sentence[0].upper() + sentence[1:]


def escape_sequence(data: bytes, environment: Mapping[str, str]) -> str:
    """OSC 52, in the wrapping that tmux or GNU screen passes on to the terminal."""
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode()}\a"
    if environment.get("TMUX"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    if environment.get("STY"):
        starts = range(0, len(sequence), _SCREEN_PIECE_BYTES)
        return "".join(
            f"\x1bP{sequence[start : start + _SCREEN_PIECE_BYTES]}\x1b\\" for start in starts
        )
    return sequence


async def _filled(data: bytes) -> AsyncIterator[str]:
    """The clipboards that a program has filled, by the first program that can."""
    filled = set()
    for helper in _HELPERS:
        here = helper.session is None or os.environ.get(helper.session)
        if here and helper.clipboard not in filled and await _ran(helper.command, data):
            filled.add(helper.clipboard)
            yield helper.clipboard


async def _ran(command: tuple[str, ...], data: bytes) -> bool:
    if not shutil.which(command[0]):
        return False
    # Keep its output off the screen, and let no process that it leaves behind hold a pipe.
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL
        )
    except OSError:
        return False
    try:
        await asyncio.wait_for(process.communicate(data), _HELPER_TIMEOUT_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
    return process.returncode == 0


def _sent(text: str, data: bytes, app: App[Any]) -> str:
    """Give it to the terminal, unless it is too long for one, and to the app itself."""
    if len(data) * 4 / 3 > MAX_BASE64_BYTES:
        _fill_textual(app, text, "")
        return "too long for the terminal's clipboard"
    _fill_textual(app, text, escape_sequence(data, os.environ))
    return "sent to the terminal's clipboard (some terminals ignore it)"


def _sent_to_browser(text: str, data: bytes, app: App[Any]) -> str:
    _fill_textual(app, text, escape_sequence(data, {}))
    return "Sent to the browser's clipboard (it takes nothing over plain HTTP from another machine)"


def _fill_textual(app: App[Any], text: str, sequence: str) -> None:
    """Do what `App.copy_to_clipboard` does, with our own sequence for the terminal.

    Textual's own knows neither a multiplexer nor how much a terminal takes, and nothing public
    sets its clipboard or writes to its terminal. So this function alone uses private names of it.
    """
    app._clipboard = text
    if app._driver is not None:
        app._driver.write(sequence)


def _kept(data: bytes) -> str:
    path = cache_directory() / "last-copy.txt"
    try:
        make_directory(path.parent)
        path.unlink(missing_ok=True)
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags, FILE)) as file:
            file.write(data)
    except OSError as error:
        return f"cannot save it to {_short(path)}: {error.strerror or error}"
    return f"saved to {_short(path)}"


def _short(path: Path) -> str:
    """The path as a shell takes it, with `~` for the home directory."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
