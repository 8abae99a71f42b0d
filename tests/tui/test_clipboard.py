from __future__ import annotations

import base64
import os
import pty
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from textual.app import App

from tui.clipboard import MAX_BASE64_BYTES, copy, escape_sequence

pytestmark = pytest.mark.slow


COMMAND = "NCCL_DEBUG=INFO srun --ntasks=8 python train.py \\\n  --resume 'ä 火'"
APP = """
import sys
from textual.app import App
from tui.clipboard import copy

class Copying(App):
    async def on_mount(self):
        self.exit(await copy(sys.argv[1], self))

print("said:", Copying().run())
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No desktop, no multiplexer, and an empty cache below the home directory."""
    for name in ("WAYLAND_DISPLAY", "DISPLAY", "TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KB_CACHE", str(tmp_path / "cache"))
    return tmp_path


def program(directory: Path, name: str, script: str) -> Path:
    """A program of the user's, first on the path."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


async def copied(text: str) -> str:
    app: App[None] = App()
    async with app.run_test():
        return await copy(text, app)


def on_a_terminal(text: str, **environment: str) -> bytes:
    """What an app that copies the text writes to its terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", APP, text],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color", **environment},
        start_new_session=True,
    )
    os.close(slave)
    written = b""
    try:
        while select.select([master], [], [], 60)[0]:
            try:
                part = os.read(master, 65536)
            except OSError:  # the terminal is hung up: the program has ended
                break
            if not part:
                break
            written += part
    finally:
        os.close(master)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait()
    return written


def test_a_terminal_gets_the_very_text(home: Path) -> None:
    written = on_a_terminal(COMMAND)
    found = re.search(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", written)
    assert found
    assert base64.b64decode(found[1]).decode() == COMMAND
    assert b"said: Sent to the terminal's clipboard" in written


def test_tmux_passes_it_on(home: Path) -> None:
    written = on_a_terminal(COMMAND, TMUX="/nowhere,1,0")
    data = base64.b64encode(COMMAND.encode())
    assert b"\x1bPtmux;\x1b\x1b]52;c;" + data + b"\x07\x1b\\" in written


def test_screen_passes_it_on_in_pieces() -> None:
    text = "x" * 1000
    sequence = escape_sequence(text.encode(), {"STY": "1.pts"})
    pieces = re.findall(r"\x1bP(.*?)\x1b\\", sequence, re.DOTALL)
    assert "".join(f"\x1bP{piece}\x1b\\" for piece in pieces) == sequence
    assert max(map(len, pieces)) < 256
    assert "".join(pieces) == f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\a"


async def test_the_file_has_it_and_is_named(home: Path) -> None:
    said = await copied(COMMAND)
    file = home / "cache" / "last-copy.txt"
    assert "sent to the terminal's clipboard" in said.lower()
    assert said.endswith("saved to ~/cache/last-copy.txt")
    assert file.read_text() == COMMAND
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    await copied("next")
    assert file.read_text() == "next"


async def test_the_app_itself_can_paste_it(home: Path) -> None:
    app: App[None] = App()
    async with app.run_test():
        await copy(COMMAND, app)
        assert app.clipboard == COMMAND


async def test_what_is_too_long_for_a_terminal_is_in_the_file(home: Path) -> None:
    text = "x" * MAX_BASE64_BYTES
    said = await copied(text)
    assert said == "Too long for the terminal's clipboard; saved to ~/cache/last-copy.txt"
    assert (home / "cache" / "last-copy.txt").read_text() == text


async def test_a_desktop_gets_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(home / "bin", "wl-copy", "echo no display >&2; exit 1")
    program(home / "bin", "xclip", f'echo "$@" > {home}/arguments; cat > {home}/clipboard')
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    assert "the system clipboard" not in await copied(COMMAND)
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("DISPLAY", ":0")
    said = await copied(COMMAND)
    assert said.startswith("Copied to the system clipboard; sent to the terminal's clipboard")
    assert (home / "clipboard").read_text() == COMMAND
    assert (home / "arguments").read_text() == "-selection clipboard\n"


async def test_a_desktop_that_hangs_is_left_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home / "bin", "xclip", "exec sleep 600")
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("tui.clipboard._HELPER_TIMEOUT_SECONDS", 0.1)
    assert (await copied(COMMAND)).startswith("Sent to the terminal's clipboard")


async def test_a_file_that_cannot_be_written_is_said(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").touch()
    monkeypatch.setenv("KB_CACHE", str(home / "file" / "cache"))
    said = await copied(COMMAND)
    assert said.endswith("cannot save it to ~/file/cache/last-copy.txt: Not a directory")


@pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux")
async def test_the_buffer_of_a_real_tmux(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    socket = home / "socket"
    tmux = ["tmux", "-S", str(socket)]
    subprocess.run([*tmux, "-f", "/dev/null", "new-session", "-d", "sleep 600"], check=True)
    try:
        monkeypatch.setenv("TMUX", f"{socket},1,0")
        said = await copied(COMMAND)
        shown = subprocess.run([*tmux, "show-buffer"], check=True, capture_output=True)
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
    assert said.startswith("Copied to the tmux buffer; sent to the terminal's clipboard")
    assert shown.stdout.decode() == COMMAND
