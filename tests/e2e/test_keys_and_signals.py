"""What a terminal sends, byte by byte, and the signals that stop or end what has it: the terminal
is as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import environment
from tests.e2e.conftest import PATIENCE_S
from tests.e2e.test_ending import ENDINGS, HEARD, signals_as_of_a_terminal

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
READY = "Paste the error."


def _own_the_terminal() -> None:
    signals_as_of_a_terminal()
    os.close(os.open(os.ttyname(0), os.O_RDWR))


class Screen:
    """The command on a terminal of its own."""

    def __init__(self, cache: Path, *program: str, term: str) -> None:
        self.terminal, self._theirs = pty.openpty()
        termios.tcsetwinsize(self._theirs, (30, 100))
        self._before = termios.tcgetattr(self._theirs)
        self.process = subprocess.Popen(
            program,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            cwd=cache.parent,
            env=environment(cache, PYTHONPATH=str(ROOT), TERM=term),
            start_new_session=True,
            preexec_fn=_own_the_terminal,
        )
        self.shown = b""

    def read(self, enough: Callable[[], bool], what: str) -> None:
        """Read until there is enough."""
        deadline = time.monotonic() + PATIENCE_S
        while not enough():
            assert time.monotonic() < deadline, (what, self.shown[-2000:])
            if select.select([self.terminal], [], [], 0.05)[0]:
                self.shown += os.read(self.terminal, 65536)

    def until(self, text: str) -> None:
        """Wait for a text that was not there yet."""
        self.shown = b""
        self.read(lambda: text in self.text(), text)

    def at_prompt(self) -> None:
        """Wait until the line editor of the conversation waits for a message."""
        self.read(
            lambda: (
                self.text().endswith("\n> ")
                and not termios.tcgetattr(self.terminal)[3] & termios.ICANON
            ),
            "the prompt",
        )

    def press_until_it_ends(self, key: bytes) -> None:
        """Press a key: Python does not hear a signal that comes just before it waits for a key, so
        people press again."""
        pressed = 0.0

        def is_over() -> bool:
            nonlocal pressed
            if time.monotonic() - pressed > 1:
                pressed = time.monotonic()
                os.write(self.terminal, key)
            return self.process.poll() is not None

        self.read(is_over, "the end")

    def press_until_it_is_left(self, key: bytes) -> None:
        """Press a key until the screen gives the terminal back: whatever is open leaves one by
        one."""
        pressed = 0.0

        def is_left() -> bool:
            nonlocal pressed
            if b"\x1b[?1049l" in self.shown or self.process.poll() is not None:
                return True
            if time.monotonic() - pressed > 2:
                pressed = time.monotonic()
                os.write(self.terminal, key)
            return False

        self.read(is_left, "the screen is left")

    def is_opened_again(self) -> bool:
        """Whether all is painted after the terminal was taken anew."""
        return READY.encode() in self.shown.partition(b"\x1b[?1049h")[2]

    def text(self) -> str:
        """What is shown, without what moves and colours it."""
        plain = re.sub(rb"\x1b\[[0-9;?<>$]*[A-Za-z]", b"", self.shown)
        return plain.decode(errors="replace")

    def ended(self) -> int:
        """The exit code; all modes of the terminal are as before."""
        self.read(lambda: self.process.poll() is not None, "the end")
        while select.select([self.terminal], [], [], 0.2)[0]:
            self.shown += os.read(self.terminal, 65536)
        assert termios.tcgetattr(self._theirs)[:4] == self._before[:4]
        modes = dict(re.findall(rb"\x1b\[\?(1049|1000|1003|1004|2004)([hl])", self.shown))
        assert b"h" not in modes.values()
        return self.process.returncode

    def is_taken(self) -> bool:
        """Whether all that was typed was read."""
        waiting = fcntl.ioctl(self._theirs, termios.FIONREAD, b"\0" * 4)
        return not any(waiting)

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for end in (self.terminal, self._theirs):
            os.dup2(nothing, end)
        os.close(nothing)

    def close(self) -> None:
        """End all."""
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)
        os.close(self._theirs)


Open = Callable[..., Screen]


@pytest.fixture
def terminal(built_cache: Path) -> Iterator[Open]:
    """Open a terminal: `terminal("tui")`."""
    opened: list[Screen] = []

    def run(
        *arguments: str,
        program: tuple[str, ...] = (sys.executable, "-m", "kb"),
        term: str = "xterm-256color",
    ) -> Screen:
        opened.append(Screen(built_cache, *program, *arguments, term=term))
        return opened[-1]

    yield run
    for one in opened:
        one.close()


@pytest.mark.parametrize("sent", [b"\xff", b"\x1b[200~\xb4\xed\xce\xf3 caf\xe9\x1b[201~"])
def test_bytes_of_another_encoding_are_replaced(terminal: Open, sent: bytes) -> None:
    screen = terminal("tui")
    screen.until(READY)
    os.write(screen.terminal, sent)
    screen.until("\ufffd")
    screen.press_until_it_ends(b"\x03y")  # it asks, unless the paste was searched by then
    assert screen.ended() == 0


@pytest.mark.parametrize("sent", [b"\x1b[1114112u", b"\x1b[99999999999999u", b"\x1b[55296u"])
def test_keys_that_are_no_characters_are_left_out(terminal: Open, sent: bytes) -> None:
    screen = terminal("tui")
    screen.until(READY)
    os.write(screen.terminal, sent + b"hello")
    screen.until("hello")
    os.write(screen.terminal, b"\x03")
    screen.until("Quit and discard")
    os.write(screen.terminal, b"y")
    assert screen.ended() == 0


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/null"])
def test_the_screen_needs_no_stderr(terminal: Open, stderr: str) -> None:
    command = f'exec "$0" -m kb tui {stderr}'
    screen = terminal(program=("sh", "-c", command, sys.executable))
    screen.until(READY)
    os.write(screen.terminal, b"\x03")
    assert screen.ended() == 0


def test_what_is_typed_ends_with_the_first_end(terminal: Open) -> None:
    screen = terminal("ask")
    screen.until("press Enter and Ctrl-D")
    os.write(screen.terminal, LOG[1].encode() + b"\r")
    screen.until("size 9637888")
    os.write(screen.terminal, b"\x04")
    screen.until("nccl-shm-too-small-container")
    os.write(screen.terminal, b"q")  # a long answer is paged
    assert screen.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_paste_whose_end_is_lost_can_be_ended(terminal: Open, number: signal.Signals) -> None:
    screen = terminal("chat")
    screen.at_prompt()
    os.write(screen.terminal, b"\x1b[200~half a paste")
    screen.read(screen.is_taken, "the keys")
    screen.process.send_signal(number)
    assert screen.ended() == 128 + number


@pytest.mark.parametrize("keys", [b"\x1br\x1b\x1b[B", b"\x10\r\r"], ids=["ranks", "palette"])
def test_keys_of_a_slow_line_come_at_once(terminal: Open, keys: bytes) -> None:
    screen = terminal("tui", str(ROOT / "benchmarks" / "samples" / "nccl-shm.log"))
    screen.until("First to fail")
    os.write(screen.terminal, keys)
    screen.press_until_it_is_left(b"\x03y")
    assert screen.ended() == 0, screen.text()[-2000:]


def test_a_screen_that_breaks_down_is_no_success(terminal: Open) -> None:
    program = """
import tui.screens.main
def broken(*_):
    raise KeyError("odd")
tui.screens.main.MainScreen.say = broken
from kb.__main__ import main
main()
"""
    screen = terminal("tui", program=(sys.executable, "-c", program))
    assert screen.ended() == 2
    assert "Error: the screen broke down" in screen.text()


@pytest.mark.parametrize("stop", [(), (signal.SIGSTOP,), (signal.SIGTSTP,)], ids=str)
def test_the_screen_goes_on_after_a_stop(terminal: Open, stop: tuple[signal.Signals, ...]) -> None:
    screen = terminal("tui")
    screen.until(READY)
    screen.shown = b""
    for number in stop:
        screen.process.send_signal(number)
        os.waitid(os.P_PID, screen.process.pid, os.WSTOPPED)
    screen.process.send_signal(signal.SIGCONT)
    screen.read(screen.is_opened_again, "the screen is opened again")
    os.write(screen.terminal, b"\x03")
    assert screen.ended() == 0


def test_ctrl_z_stops_the_screen_and_it_is_painted_again(terminal: Open) -> None:
    screen = terminal("tui")
    screen.until(READY)
    os.write(screen.terminal, b"\x1b")
    screen.until("new search")
    os.write(screen.terminal, b"\x1a")
    os.waitid(os.P_PID, screen.process.pid, os.WSTOPPED)
    screen.shown = b""
    screen.process.send_signal(signal.SIGCONT)
    screen.read(screen.is_opened_again, "the screen is opened again")
    os.write(screen.terminal, b"\x03")
    assert screen.ended() == 0


def test_going_on_while_it_ends_takes_no_terminal(terminal: Open) -> None:
    screen = terminal("tui")
    screen.until(READY)
    os.write(screen.terminal, b"\x03")

    def is_over() -> bool:
        screen.process.send_signal(signal.SIGCONT)
        return screen.process.poll() is not None

    screen.read(is_over, "the end")
    assert screen.ended() == 0


def test_quit_gives_the_terminal_of_the_screen_back(terminal: Open) -> None:
    screen = terminal("tui")
    screen.until(READY)
    screen.process.send_signal(signal.SIGQUIT)
    assert screen.ended() == -signal.SIGQUIT


@pytest.mark.parametrize(("key", "code"), [(b"\x1c", 131), (b"\x03", 130)])
def test_a_key_that_ends_the_conversation_gives_the_terminal_back(
    terminal: Open, key: bytes, code: int
) -> None:
    """The code is what a shell tells: it knows no difference between a signal and 128 + its
    number."""
    screen = terminal("chat", "NCCL timeout")
    screen.at_prompt()
    screen.press_until_it_ends(key)
    ended = screen.ended()
    assert (ended if ended >= 0 else 128 - ended) == code


LOG = (
    "[rank0]: RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:2356",
    "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)",
    "NCCL WARN Call to posix_fallocate failed: No space left on device",
    "\tlast line of the paste",
)


def test_the_conversation_greets_and_a_paste_in_brackets_is_one_message(terminal: Open) -> None:
    screen = terminal("chat")
    screen.until("Tell me what you see")
    screen.at_prompt()
    assert b"\x1b[?2004h" in screen.shown
    os.write(screen.terminal, b"\x1b[200~" + "\r".join(LOG).encode() + b"\x1b[201~")
    screen.until("last line of the paste")
    assert "[nccl-shm-too-small-container]" not in screen.text()
    os.write(screen.terminal, b"\r")
    screen.until("[nccl-shm-too-small-container]")
    screen.at_prompt()
    screen.shown = b""
    os.write(screen.terminal, b"what did I tell you?\r")
    screen.until("Nothing yet; I only have the log.")
    screen.at_prompt()
    os.write(screen.terminal, b"\x04")
    assert screen.ended() == 0


@pytest.mark.parametrize("end", [b"", b"\r"], ids=["without an end", "with an end"])
@pytest.mark.parametrize("name", ["xterm-256color", "dumb"])
def test_a_paste_without_brackets_is_one_message(terminal: Open, name: str, end: bytes) -> None:
    screen = terminal("chat", "it hangs at init", term=name)
    screen.at_prompt()
    os.write(screen.terminal, "\r".join(LOG).encode() + end)
    if not end:
        screen.until("last line of the paste")
        os.write(screen.terminal, b"\r")
    screen.until("[nccl-shm-too-small-container]")
    screen.at_prompt()
    os.write(screen.terminal, b"what did I tell you?\r")
    screen.until("1. ")
    screen.at_prompt()
    assert "2. “" not in screen.text()
    os.write(screen.terminal, b"quit\r")
    assert screen.ended() == 0


@pytest.mark.parametrize("number", HEARD)
def test_a_signal_ends_the_screen_as_any_command(terminal: Open, number: signal.Signals) -> None:
    screen = terminal("tui")
    screen.until(READY)
    screen.process.send_signal(number)
    assert screen.ended() == ENDINGS[number]
    assert "Error" not in screen.text()


def test_a_screen_without_a_terminal_ends_where_hang_ups_are_ignored(terminal: Open) -> None:
    ignoring = f"trap '' HUP; exec {sys.executable} -m kb tui"
    screen = terminal(program=("sh", "-c", ignoring))
    screen.until(READY)
    screen.hang_up()
    assert screen.process.wait(PATIENCE_S) == 128 + signal.SIGHUP
