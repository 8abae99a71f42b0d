"""Textual's way to the terminal, where it would end with a traceback or leave the terminal odd."""

from __future__ import annotations

import codecs
import os
import signal
from functools import partial
from types import FrameType

from textual.drivers import linux_driver

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


class TerminalDriver(linux_driver.LinuxDriver):
    """Keeps the terminal usable whatever is typed, and however the app stops and ends."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._has_terminal = False
        """Whether its modes are set: not any more from the moment on at which they are set back."""
        self._goes_on = False
        """Whether they are being set again: one signal may come on top of another."""
        # Bytes that are no UTF-8 come with a paste from a file in GBK or Latin-1.
        linux_driver.getincrementaldecoder = _replacing  # type: ignore[assignment,attr-defined]
        linux_driver.WriterThread = _Writer  # type: ignore[attr-defined]
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

    def _sigcont_application(self, *_: object) -> None:
        """Set the modes of the terminal again: whoever had it meanwhile may have set others. What
        stopped the process may have been STOP, of which it was not told."""
        if self._goes_on:
            return
        self._goes_on = True
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
            self.suspend_application_mode()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
