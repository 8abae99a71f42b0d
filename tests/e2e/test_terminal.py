"""The screen in a real terminal: tmux types, pastes and reads what stands there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import copy_cache, environment

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux")

ROOT = Path(__file__).resolve().parent.parent.parent
LOG = ROOT / "benchmarks" / "samples" / "nccl-shm.log"
WATCHDOG = ROOT / "tui" / "samples" / "2-watchdog.log"
ANSWER = "NCCL fails to create its shared memory"
KB = f"{shlex.quote(sys.executable)} -m kb"
PATIENCE_S = 60


class Terminal:
    """One terminal of a given size, in which a shell command runs."""

    def __init__(self, socket: Path, size: tuple[int, int], command: str, cwd: Path) -> None:
        self._socket = socket
        width, height = map(str, size)
        # The shell tells the exit code, and stays so that the screen can be read.
        script = f"{command}; echo exit=$?; exec sleep 600"
        self.tmux("new-session", "-d", "-x", width, "-y", height, "-c", str(cwd), script)
        self.tmux("set-option", "-s", "escape-time", "0")

    def tmux(self, *arguments: str, text: str | None = None) -> str:
        """Run a command of tmux."""
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, input=text, encoding="utf-8"
        ).stdout

    def press(self, *keys: str) -> None:
        """Press keys, as tmux calls them."""
        self.tmux("send-keys", *keys)

    def back(self, to: str) -> None:
        """Press esc and wait for the hint of where it leads: a key right behind it is alt+key."""
        self.press("Escape")
        self.until(to)

    def type(self, text: str) -> None:
        """Type a text."""
        self.tmux("send-keys", "-l", text)

    def paste(self, text: str) -> None:
        """Paste as a terminal does, in brackets."""
        self.tmux("load-buffer", "-b", "pasted", "-", text=text)
        self.tmux("paste-buffer", "-p", "-b", "pasted")

    def screen(self) -> str:
        """All that stands on the screen."""
        return self.tmux("capture-pane", "-p")

    def until(self, text: str) -> str:
        """Wait for a text, and return the screen with it."""
        return self.wait(lambda: text in self.screen(), text)

    def wait(self, true: Callable[[], bool], what: str) -> str:
        """Wait for something; a test that waits in vain fails."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if true():
                return self.screen()
            time.sleep(0.05)
        pytest.fail(f"waited in vain for {what}:\n{self.screen()}")

    def ended(self, code: int = 0) -> None:
        """The command has ended, and left the terminal as it was."""
        screen = self.until(f"exit={code}\n")
        assert screen.strip() == f"exit={code}"
        flags = "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{keypad_flag}"
        self.wait(
            lambda: self.tmux("display-message", "-p", flags).split() == ["0", "0", "1", "0"],
            "the terminal as it was",
        )


Open = Callable[..., Terminal]


@pytest.fixture
def terminal(built_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Open a terminal: `terminal(command, size)`. It copies into a cache of its own."""
    cache = tmp_path / "cache"
    copy_cache(built_cache, cache)
    for name, value in environment(cache, KB_STATE=str(tmp_path / "state")).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("WAYLAND_DISPLAY", "DISPLAY", "TMUX", "NO_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    opened: list[Terminal] = []

    def run(command: str = f"{KB} tui", size: tuple[int, int] = (120, 34)) -> Terminal:
        opened.append(Terminal(tmp_path / "tmux", size, command, tmp_path))
        return opened[-1]

    yield run
    for one in opened:
        one.tmux("kill-server")


@pytest.mark.parametrize(
    "size",
    [(80, 24), *(pytest.param(size, marks=pytest.mark.slow) for size in [(120, 34), (200, 50)])],
    ids="{0[0]}x{0[1]}".format,
)
def test_a_night_on_call(terminal: Open, tmp_path: Path, size: tuple[int, int]) -> None:
    screen = terminal(size=size)
    screen.until("Paste the error.")
    screen.paste(LOG.read_text())
    answer = screen.until(ANSWER)
    assert "● Match" in answer
    screen.press("Space", "c")
    copied = tmp_path / "cache" / "last-copy.txt"
    screen.wait(copied.exists, "the copy")
    assert copied.read_text().startswith("docker run --gpus all --shm-size")
    screen.until("Step 2: command")
    screen.wait(lambda: screen.tmux("show-buffer") == copied.read_text(), "the buffer of tmux")
    screen.press("x")
    screen.until("Write the hand-off note")
    screen.press("Enter")
    screen.until("Written")
    (note,) = tmp_path.glob("incident-*.md")
    assert "[x] Look at the size of the mount" in note.read_text()

    screen.paste(WATCHDOG.read_text())
    screen.until("◐ Possible")
    shown = screen.until("Which of these does the job use?")
    asked = re.search(r"1 (\S+) +2 \S", shown)
    assert asked
    screen.until("t talk")  # the keys are those of the answer, no longer of the box
    screen.press("1", "t")
    screen.until("enter send")
    screen.wait(lambda: f"1 {asked[1]} " not in screen.screen(), "the next question")
    screen.back("p new search")
    screen.press("q")
    screen.ended()


@pytest.mark.slow
@pytest.mark.parametrize("key", ["C-j", "M-Enter"])
def test_what_is_typed_is_searched_for(terminal: Open, key: str) -> None:
    screen = terminal()
    screen.until("Paste the error.")
    screen.type("Error while creating shared memory segment /dev/shm/nccl-x")
    screen.press(key)
    screen.type("in docker")
    screen.until("in docker")
    screen.press("Enter")
    screen.until(ANSWER)
    screen.press("C-c")
    screen.ended()


@pytest.mark.slow
def test_a_log_is_piped_in_and_the_keyboard_works(terminal: Open) -> None:
    screen = terminal(f"cat {shlex.quote(str(LOG))} | {KB} tui")
    screen.until(ANSWER)
    screen.until("piped log")
    screen.press("q")
    screen.ended()


@pytest.mark.slow
@pytest.mark.parametrize("line", ["{kb} {log}", "{kb} {log} < /dev/null", "cat {log} | {kb}"])
def test_a_log_needs_no_command(terminal: Open, line: str) -> None:
    screen = terminal(line.format(kb=KB, log=shlex.quote(str(LOG))))
    screen.until(ANSWER)
    screen.press("q")
    screen.ended()


@pytest.mark.slow
def test_an_empty_pipe_leaves_the_keyboard(terminal: Open) -> None:
    screen = terminal(f"true | {KB}")
    screen.until("The input is empty")
    screen.press("q")
    screen.ended()


@pytest.mark.slow
def test_without_input_the_help_is_printed(terminal: Open) -> None:
    screen = terminal(f"{KB} < /dev/null", (120, 50))
    assert "Usage: kb" in screen.until("exit=0")


def test_a_log_is_answered_into_a_pipe(terminal: Open) -> None:
    screen = terminal(f"{KB} {shlex.quote(str(LOG))} | head -3")
    answered = screen.until("exit=0")
    assert "First to fail" in answered
    assert "Traceback" not in answered


@pytest.mark.slow
def test_the_logs_of_a_job(terminal: Open) -> None:
    job = ROOT / "benchmarks" / "jobs" / "acc-lora" / "logs"
    screen = terminal(f"{KB} tui {shlex.quote(str(job))}")
    screen.until("First to fail  rank 1")
    screen.press("r")
    screen.until("Timeline")
    screen.press("Enter")
    screen.until(">")
    screen.press("q")
    screen.ended()


@pytest.mark.slow
def test_a_directory_is_classified(terminal: Open, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(LOG, logs / "a.log")
    (logs / "b.log").write_text("epoch 1 loss 2.3\ntraining finished\n")
    screen = terminal()
    screen.until("Paste the error.")
    screen.back("p new search")
    screen.press("b")
    screen.until("Classify all logs below")
    screen.type("logs")
    screen.press("Enter")
    screen.until("2 of 2 logs")
    screen.until("nccl-shm-too-small-container")
    screen.back("p new search")
    screen.press("q")
    screen.ended()


@pytest.mark.slow
def test_a_wrong_path_is_told_before_the_screen_opens(terminal: Open) -> None:
    screen = terminal(f"{KB} tui gone.log")
    told = screen.until("exit=2")
    assert "cannot read gone.log" in " ".join(told.split())
    assert "Traceback" not in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('theme = "pink"', "unknown theme 'pink' in the configuration"),
        ('keys = {fly = "f"}', "the configuration binds keys to the unknown action 'fly'"),
        ("history = 7", "invalid configuration"),
    ],
)
def test_a_wrong_setting_is_told_before_the_screen_opens(
    terminal: Open, tmp_path: Path, line: str, told: str
) -> None:
    (tmp_path / "config.toml").write_text(line)
    screen = terminal(f"KB_CONFIG=config.toml {KB} tui")
    shown = screen.until("exit=2")
    assert told in " ".join(shown.split())
    assert "Traceback" not in shown


@pytest.mark.slow
def test_without_colour_all_is_said(terminal: Open) -> None:
    screen = terminal(f"NO_COLOR=1 TERM=screen {KB} tui {shlex.quote(str(LOG))}")
    screen.until(ANSWER)
    coloured = screen.tmux("capture-pane", "-p", "-e")
    codes = {
        code for found in re.findall(r"\x1b\[([\d;:]*)m", coloured) for code in found.split(";")
    }
    assert not codes & {str(n) for n in (*range(31, 37), *range(41, 47), *range(91, 97))}
    assert "● Match" in screen.screen()
    screen.press("q")
    screen.ended()


@pytest.mark.slow
def test_what_is_piped_in_has_no_name_and_a_signal_leaves_the_terminal_as_it_was(
    terminal: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    screen = terminal(f"cat {LOG} | sh -c 'echo $$ > pid; exec {KB} tui'")
    screen.until(ANSWER)
    assert not list((tmp_path / "tmp").iterdir())
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    screen.ended(143)


@pytest.mark.slow
def test_a_terminal_of_ascii_shows_plain_signs(terminal: Open) -> None:
    screen = terminal(f"PYTHONIOENCODING=ascii {KB} tui {shlex.quote(str(LOG))}")
    shown = screen.until(ANSWER)
    assert "* Match" in shown
    assert shown.isascii()
    assert "\\u" not in shown
    screen.press("q")
    screen.ended()


@pytest.mark.slow
def test_the_pane_is_made_narrow_and_wide_again(terminal: Open) -> None:
    screen = terminal(f"{KB} tui {shlex.quote(str(LOG))}")
    screen.until(ANSWER)
    for width in (9, 5, 1):
        screen.tmux("resize-window", "-x", str(width), "-y", "34")
        screen.wait(lambda: ANSWER not in screen.screen(), "a narrow screen")
    screen.tmux("resize-window", "-x", "120", "-y", "34")
    screen.until(ANSWER)
    screen.press("q")
    screen.ended()
