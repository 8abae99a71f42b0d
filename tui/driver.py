"""Textual's way to the terminal, where it would end with a traceback or leave the terminal odd."""

from __future__ import annotations

import codecs
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import IO

from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START
from textual.drivers import linux_driver
from textual.events import Key, Resize
from textual.message import Message

_GONE = 128 + signal.SIGHUP
"""The exit code, as of a shell."""


def _replacing(encoding: str) -> partial[codecs.IncrementalDecoder]:
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")


class _Writer(linux_driver.WriterThread):  # type: ignore[name-defined,misc]
    """Writes to the terminal."""

    def run(self) -> None:
        """End the process where the terminal is gone and hang-ups are ignored: whoever writes to it
        would wait forever, also in order to end."""
        try:
            super().run()
        except OSError:
            os._exit(_GONE)


class _Direct:
    """Writes to the terminal at once, whoever holds the lock of what is to be written."""

    def __init__(self, file: IO[str] | None) -> None:
        self._file = file

    def write(self, text: str) -> None:
        """Write a text."""
        if self._file:
            with suppress(OSError):
                os.write(self._file.fileno(), text.encode())

    def flush(self) -> None:
        """Nothing is held back."""

    def stop(self) -> None:
        """Nothing runs."""

    def is_alive(self) -> bool:
        """It can be written to."""
        return True


_MIN_PASTE_CHARACTERS = 200
"""So much that comes at once, with ends of lines, was not typed."""


_MAX_CELLS = 1_000
"""Columns or lines of a terminal; the largest screens show some 600. Each cell takes memory."""
_MARKS = re.compile(f"({re.escape(BRACKETED_PASTE_START)}|{re.escape(BRACKETED_PASTE_END)})")
"""Between which the terminal hands over a paste."""
_CUT_OFF = re.compile(r"\x1b(?:\[[0-?]*[ -/]*)?\Z")
"""The beginning of a sequence, of which the rest comes later."""
_ABSURD_SIZE = re.compile(r"\x1b\[48;[\d:;]*?\d{5}[\d:;]*t")
"""A report of a size that no terminal has, which a broken line sends."""


class TerminalParser(linux_driver.XTermParser):  # type: ignore[name-defined,misc]
    """Reads what the terminal sends."""

    _is_pasting = False
    """The terminal marked where a paste begins, and not yet where it ends."""
    _cut_off = ""
    """Of a paste, the beginning of a sequence at the end of what came so far."""

    def feed(self, data: str) -> Iterable[Message]:
        """Read on. A paste that the terminal does not mark is one all the same: each character by
        itself would take half a millisecond."""
        data, self._cut_off = self._cut_off + data, ""
        if BRACKETED_PASTE_START in data or self._is_pasting:
            known = self._pasted(data)
        else:
            is_burst = len(data) >= _MIN_PASTE_CHARACTERS and ("\r" in data or "\n" in data)
            if is_burst and "\x1b" not in data:
                data = f"{BRACKETED_PASTE_START}{data}{BRACKETED_PASTE_END}"
            known = data
        known = _ABSURD_SIZE.sub("", known)
        if data and not known:  # nothing at all would be the end
            return
        for message in super().feed(known):
            if not (isinstance(message, Resize) and max(message.size) > _MAX_CELLS):
                yield message

    def _pasted(self, data: str) -> str:
        """The data without the colours of what is pasted: the library ends a paste at an escape
        sequence, takes the rest for keys, and a secret would stand behind what is left of it."""
        from kb.log.clean import without_escapes  # not before the first screen

        parts = _MARKS.split(data)
        for place, part in enumerate(parts):
            if part in (BRACKETED_PASTE_START, BRACKETED_PASTE_END):
                self._is_pasting = part == BRACKETED_PASTE_START
            elif self._is_pasting:
                if place == len(parts) - 1 and (cut_off := _CUT_OFF.search(part)):
                    part, self._cut_off = part[: cut_off.start()], cut_off[0]
                parts[place] = without_escapes(part)
        return "".join(parts)

    def _parse_extended_key(self, sequence: str) -> list[Key] | None:
        """Leave out a key whose number is that of no character: a broken line sends such ones."""
        numbers = map(int, re.findall(r"\d{1,12}", sequence))
        if any(number > sys.maxunicode or _is_half(number) for number in numbers):
            return None
        keys: list[Key] | None = super()._parse_extended_key(sequence)
        return keys


def _is_half(number: int) -> bool:
    """Whether it is half of a pair of UTF-16, and no character by itself."""
    return 0xD800 <= number <= 0xDFFF


class TerminalDriver(linux_driver.LinuxDriver):
    """Keeps the terminal usable whatever is typed, and however the app stops and ends."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._has_terminal = False
        """Whether its modes are set: not any more from the moment on at which they are set back."""
        self._goes_on = False
        """Whether they are about to be set again."""
        # Bytes that are no UTF-8 come with a paste from a file in GBK or Latin-1.
        linux_driver.getincrementaldecoder = _replacing  # type: ignore[assignment,attr-defined]
        linux_driver.WriterThread = _Writer  # type: ignore[attr-defined]
        linux_driver.XTermParser = TerminalParser  # type: ignore[attr-defined]
        # The library draws on stderr, which may be closed or a file; `kb` looked at stdout.
        if sys.__stderr__ is None or not sys.__stderr__.isatty():
            self._file = sys.__stdout__
        if signal.getsignal(signal.SIGQUIT) is not signal.SIG_IGN:
            signal.signal(signal.SIGQUIT, self._quit)

    def start_application_mode(self) -> None:
        """Set the modes of the terminal."""
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._has_terminal = self._writer_thread is not None and self._writer_thread.is_alive()

    def stop_application_mode(self) -> None:
        """Set the modes of the terminal back."""
        self._has_terminal = False
        super().stop_application_mode()

    def _sigtstp_application(self, *_: object) -> None:
        """Give the terminal back and stop."""
        if not self._soon(super()._sigtstp_application):
            os.kill(os.getpid(), signal.SIGSTOP)

    def _sigcont_application(self, *_: object) -> None:
        """Take the terminal again; once, for however many signals."""
        if not self._goes_on:
            self._goes_on = self._soon(self._go_on)

    def _soon(self, do: Callable[[], object]) -> bool:
        """Do it when nothing else is being done, if the app still runs: what a signal interrupts
        may hold the lock of what is to be written."""
        try:
            self._loop.call_soon_threadsafe(do)
        except RuntimeError:
            return False
        return True

    def _go_on(self) -> None:
        """Set the modes of the terminal again: whoever had it meanwhile may have set others. What
        stopped the process may have been STOP, of which it was not told."""
        try:
            if self._has_terminal:
                self.suspend_application_mode()
                self._must_signal_resume = True
            if self._must_signal_resume:
                super()._sigcont_application()
        finally:
            self._goes_on = False

    def _quit(self, number: int, _frame: FrameType | None) -> None:
        """Die of the signal as without this handler, but give the terminal back before."""
        if self._has_terminal:
            self._writer_thread = _Direct(self._file)  # type: ignore[assignment]
            self.suspend_application_mode()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
