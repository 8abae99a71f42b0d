"""What a log, a name or a path holds is shown and never obeyed, and does not freeze the screen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.events import Key, Paste, Resize
from textual.pilot import Pilot

from kb.service.input import UserInput
from tests.tui.conftest import (
    SHM,
    WATCHDOG,
    Start,
    answered,
    app_of,
    paste,
    press,
    shown,
    told,
    until,
    until_shown,
)
from tui.driver import TerminalParser
from tui.screens.history import HistoryScreen
from tui.widgets.log_prompt import LogPrompt
from tui.widgets.log_view import LogView
from tui.widgets.paste_box import PasteBox

pytestmark = pytest.mark.slow


TITLE = "\x1b]0;owned\x07"
CLIPBOARD = "\x1b]52;c;b3duZWQ=\x07"
COLOURS = "\x1b[31mred\x1b[0m"
BIDI = "abc\u202edef\u2066ghi"
HOSTILE = (
    f"[bold red]{TITLE}{CLIPBOARD}{COLOURS} {BIDI} [/nothing] [@click=app.quit]quit[/] $primary\n"
    "Fehler: 显存不足 内存 🔥👩‍🔬 Ошибка\n"
    f"{SHM}\n"
)


def assert_harmless(text: str) -> None:
    """Nothing in it would move a cursor, set a title, or turn the direction of text."""
    controls = [c for c in text if (ord(c) < 32 and c != "\n") or "\x7f" <= c <= "\x9f"]
    assert not controls
    assert not set(text) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200b\u200f")


@pytest.mark.parametrize("size", [(80, 24), (120, 34)])
async def test_hostile_text_in_the_box(start: Start, size: tuple[int, int]) -> None:
    async with start(size=size) as pilot:
        await paste(pilot, HOSTILE)
        for keys in (["p"], ["escape", "l"], ["escape", "t"]):
            await press(pilot, *keys)
            assert_harmless(shown(pilot))
            assert all(cell_len(row) <= size[0] for row in shown(pilot).splitlines())
        assert "[bold red]" in pilot.app.query_one(PasteBox).text
        await press(pilot, "escape", "l")
        assert "[bold red]" in shown(pilot)
        assert "显存不足" in shown(pilot)
        assert pilot.app.return_code is None


async def test_hostile_text_in_a_file_and_its_name(start: Start, tmp_path: Path) -> None:
    directory = tmp_path / f"[red]{BIDI}"
    directory.mkdir()
    for rank in range(2):
        path = directory / f"rank{rank}[bold]{TITLE}火.log"
        path.write_text(HOSTILE.replace("[3]", f"[{rank}]"))
    async with start(user_input=UserInput(paths=(directory,), name=str(directory))) as pilot:
        await answered(pilot)
        assert_harmless(shown(pilot))
        await press(pilot, "e")
        assert_harmless(shown(pilot))
        assert "[bold]" in shown(pilot)
        await press(pilot, "r")
        await pilot.pause()
        assert_harmless(shown(pilot))


@pytest.mark.parametrize("name", ["x[/]b.log", "y[/yy.log", "[@click=app.quit]b.log"])
async def test_markup_in_a_name_is_text(start: Start, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(SHM)
    async with start(user_input=UserInput(paths=(path,), name=name)) as pilot:
        await answered(pilot)
        app_of(pilot).main.query_one(PasteBox).clear()
        await until_shown(pilot, name)
        await press(pilot, "e")
        await until_shown(pilot, path.name)


async def test_a_name_that_is_not_utf_8(start: Start, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"train-\xff\xe9.log")
    path.write_text(SHM)
    async with start(user_input=UserInput(paths=(path,), name=str(path))) as pilot:
        await answered(pilot)
        shown(pilot).encode("utf-8")
        await press(pilot, "x", "enter")
        await until(pilot, lambda: "Written" in told(pilot))
        await press(pilot, "h")
        await until(pilot, lambda: isinstance(pilot.app.screen, HistoryScreen))
        shown(pilot).encode("utf-8")
    (note,) = tmp_path.glob("incident-*.md")
    assert "train-��.log" in note.read_text()


async def test_hostile_name_of_a_file_that_is_not_there(start: Start, tmp_path: Path) -> None:
    path = tmp_path / f"[bold]{TITLE}{BIDI}.log"
    async with start() as pilot:
        app_of(pilot).main.ask(UserInput(paths=(path,), name=str(path)))
        await until(pilot, lambda: "no such file" in told(pilot).lower())
        assert_harmless(told(pilot))
        assert_harmless(shown(pilot))
        assert "[bold]" in told(pilot)


@pytest.mark.slow
async def test_hostile_text_in_the_conversation_and_the_history(start: Start) -> None:
    hostile = "[bold]we run[/] [/x] [@click=app.quit]gloo[/]"
    async with start(size=(200, 50)) as pilot:
        await paste(pilot, f"RuntimeError: {hostile}\n{HOSTILE}")
        await press(pilot, "t", *hostile, "enter")
        await until_shown(pilot, f"› {hostile}")
        await press(pilot, "escape", "h")
        await until(pilot, lambda: isinstance(pilot.app.screen, HistoryScreen))
        assert_harmless(shown(pilot))


async def test_a_note_of_a_hostile_log_is_harmless(start: Start, tmp_path: Path) -> None:
    async with start() as pilot:
        await paste(pilot, HOSTILE)
        await press(pilot, "x", "enter")
        await until(pilot, lambda: "Written" in told(pilot))
    (note,) = tmp_path.glob("incident-*.md")
    assert_harmless(note.read_text())


@pytest.mark.slow
async def test_a_line_of_30_mb_is_shown(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "one.log"
    path.write_text("x" * 30_000_000 + f"\n{SHM}")
    async with start(user_input=UserInput(paths=(path,), name="one.log")) as pilot:
        await answered(pilot)
        assert "shm-too-small" in shown(pilot)
        await until_shown(pilot, "5 lines")
        await press(pilot, "l", "G")
        await until_shown(pilot, "5 node-a")
        await press(pilot, "g")
        await until_shown(pilot, "1 xxxxxxxx")


async def typed(pilot: Pilot[int], key: str, text: str) -> None:
    """Type something into the line below the log."""
    await press(pilot, key)
    await until(pilot, lambda: isinstance(pilot.app.focused, LogPrompt))
    pilot.app.screen.query_one(f"#{pilot.app.focused.id}", LogPrompt).value = text  # type: ignore[union-attr]
    await press(pilot, "enter")


@pytest.mark.parametrize("words", ["[/x", "[bold red]", BIDI, TITLE, "(a+)+$", "\udcff", "\\"])
async def test_hostile_words_are_searched_for_and_filtered_by(start: Start, words: str) -> None:
    async with start(size=(80, 24)) as pilot:
        await paste(pilot, HOSTILE)
        await press(pilot, "l")
        await typed(pilot, "slash", f"{words}#")
        await until(pilot, lambda: "No line has" in told(pilot))
        await typed(pilot, "f", f"rank 1 {words}#")
        await until_shown(pilot, "[no line is like this]")
        assert_harmless(shown(pilot))
        assert_harmless(told(pilot))
        assert pilot.app.return_code is None


async def test_lines_of_10_mb_are_searched_wrapped_and_gone_through(
    start: Start, tmp_path: Path
) -> None:
    path = tmp_path / "[red]one.log"
    path.write_text(f"{'x' * 10_000_000}\n{HOSTILE}{'y [/]' * 2_000_000}needle\n")
    async with start(user_input=UserInput(paths=(path,), name="one.log")) as pilot:
        await answered(pilot)
        await press(pilot, "l", "w")
        await until_shown(pilot, "xxxxxxxx")
        await typed(pilot, "slash", "显存不足")
        await until(pilot, lambda: pilot.app.query_one(LogView).current == 3)
        await press(pilot, "G", "right_square_bracket", "g")
        await until_shown(pilot, "xxxxxxxx")
        assert_harmless(shown(pilot))


@pytest.mark.slow
async def test_a_line_of_30_mb_can_be_pasted(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, "x" * 30_000_000 + f"\n{SHM}")
        assert "pasted log" in shown(pilot)
        assert "shm-too-small" in shown(pilot)


OPENED = {
    "f1": "HelpScreen",
    "n": "DraftScreen",
    "slash": "BrowseScreen",
    "h": "HistoryScreen",
    "o": "PickScreen",
    "b": "PickScreen",
    "x": "ExportScreen",
    "l": "MainScreen",
    "t": "MainScreen",
}
"""Keys of an answer, and what they open."""


@pytest.mark.parametrize("key", OPENED)
async def test_a_terminal_made_tiny_ends_nothing(start: Start, key: str) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, key)
        await until(pilot, lambda: type(pilot.app.screen).__name__ == OPENED[key])
        before = shown(pilot)
        for size in [*((width, 34) for width in range(11, 0, -1)), (120, 1), (1, 1), (3, 60)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
        await pilot.resize_terminal(120, 34)
        await until(pilot, lambda: bool(before) and len(shown(pilot)) == len(before))
        assert pilot.app.return_code is None


@pytest.mark.parametrize("size", [(1, 1), (9, 34), (5, 5)])
async def test_a_tiny_terminal_is_opened(start: Start, size: tuple[int, int]) -> None:
    async with start(size=size) as pilot:
        await paste(pilot, SHM)
        await pilot.resize_terminal(120, 34)
        await until_shown(pilot, "shm-too-small")


@pytest.mark.parametrize("size", [(20, 5), (59, 30), (100, 19)])
async def test_what_is_typed_after_a_tiny_terminal_is_text(
    start: Start, size: tuple[int, int]
) -> None:
    """Without a focus, each letter would be a key, and `q` the end."""
    async with start() as pilot:
        await until(pilot, lambda: isinstance(pilot.app.focused, PasteBox))
        await pilot.resize_terminal(*size)
        await pilot.pause()
        await pilot.resize_terminal(120, 34)
        await until(pilot, lambda: isinstance(pilot.app.focused, PasteBox))
        await press(pilot, *"a quick")
        assert pilot.app.return_code is None
        assert pilot.app.screen.query_one(PasteBox).text == "a quick"


async def test_a_history_that_rotted_is_told(start: Start, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "history.json").write_bytes(b'[{"text":"\xff"}]')
    async with start() as pilot:
        await paste(pilot, SHM)
        await until(pilot, lambda: "damaged" in told(pilot))
        await press(pilot, "h")
        await until(pilot, lambda: isinstance(pilot.app.screen, HistoryScreen))
        assert "NCCL WARN" in shown(pilot)


async def test_wide_characters_keep_the_frame(start: Start) -> None:
    async with start(size=(80, 24)) as pilot:
        await paste(pilot, f"显存不足 内存溢出 火\n{SHM}")
        await press(pilot, "l")
        rows = [row for row in shown(pilot).splitlines() if row.startswith("│")]
        assert rows
        assert {cell_len(row) for row in rows} == {80}


def test_a_size_that_no_terminal_has_is_left_out() -> None:
    parser = TerminalParser()
    for report in ("\x1b[48;99999999999999999999;1;1;1t", "\x1b[48;5000;5000;0;0t"):
        assert not [one for one in parser.feed(report) if isinstance(one, Resize)]
    (resized,) = [one for one in parser.feed("\x1b[48;40;120;0;0t") if isinstance(one, Resize)]
    assert resized.size == (120, 40)


def test_many_lines_at_once_are_a_paste_also_where_it_is_not_marked() -> None:
    parser = TerminalParser()
    text = "step 1 loss 2.3\r" * 20
    (pasted,) = parser.feed(text)
    assert isinstance(pasted, Paste)
    assert pasted.text == text
    typed = list(parser.feed("why\r"))
    assert [type(one) for one in typed] == [Key] * 4


@pytest.mark.parametrize("piece", [7, 256])
def test_a_marked_paste_is_one_however_it_is_cut_and_coloured(piece: int) -> None:
    parser, text = TerminalParser(), "step 1 loss 2.3\r" * 40
    coloured = text.replace("loss", "\x1b[1;31mloss\x1b[0m\x1b[K")
    marked = f"\x1b[200~{coloured}\x1b[201~"
    found = [
        one
        for start in range(0, len(marked), piece)
        for one in parser.feed(marked[start : start + piece])
    ]
    assert [one.text for one in found if isinstance(one, Paste)] == [text]
    assert not [one for one in found if isinstance(one, Key)]
