from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.events import MouseScrollDown
from textual.pilot import Pilot

from tests.tui.conftest import strips, until
from tui.lines import Lines
from tui.widgets.log_view import LogView

pytestmark = pytest.mark.slow


class Viewer(App[None]):
    """A screen with a log on it, as wide as the oldest terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.grown: list[int] = []

    def compose(self) -> ComposeResult:
        yield LogView()

    def on_log_view_grown(self, event: LogView.Grown) -> None:
        self.grown.append(event.line_count)


class Seen:
    """What somebody sees of a log, and does with it."""

    def __init__(self, app: Viewer, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot
        self.view = app.query_one(LogView)

    def rows(self) -> list[str]:
        """The text of the screen."""
        return [strip.text for strip in strips(self.app.screen)]

    async def counted(self) -> None:
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.wait_for_scheduled_animations()

    async def jump(self, number: int, *, highlight: bool = True) -> None:
        """Jump to a line and wait until it is painted, with the cue if it is to have one."""
        self.view.jump(number, highlight=highlight)
        await self.until_painted(
            lambda row: f"line {number} " in row and row.startswith(">") == highlight
        )

    async def until_painted(self, is_it: Callable[[str], bool]) -> None:
        """Wait for a row."""
        await until(self.pilot, lambda: any(map(is_it, self.rows())))


@asynccontextmanager
async def viewing(lines: Lines) -> AsyncIterator[Seen]:
    app = Viewer()
    async with app.run_test(size=(80, 24)) as pilot:
        seen = Seen(app, pilot)
        seen.view.show(lines)
        seen.view.focus()
        await seen.counted()
        yield seen


def numbered(count: int) -> Lines:
    return Lines.from_text("".join(f"line {number}\n" for number in range(1, count + 1)))


async def test_two_million_lines_open_and_end_at_the_last(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    with path.open("w") as file:
        file.writelines(f"step {number}\n" for number in range(1, 2_000_001))
    async with viewing(Lines.open(path)) as seen:
        assert seen.rows()[0].split()[:3] == ["1", "step", "1"]
        await seen.press("G")
        assert seen.rows()[-1].split()[:3] == ["2000000", "step", "2000000"]
        assert seen.app.grown[-1] == seen.view.line_count == 2_000_000
        await seen.press("g")
        assert seen.rows()[0].split()[:3] == ["1", "step", "1"]


@pytest.mark.parametrize(
    ("keys", "top"),
    [
        (["down"], 2),
        (["j", "j", "k"], 2),
        (["pagedown"], 25),
        (["pagedown", "pageup"], 1),
        (["end"], 977),
        (["end", "home"], 1),
    ],
)
async def test_keys(keys: list[str], top: int) -> None:
    async with viewing(numbered(1000)) as seen:
        await seen.press(*keys)
        assert seen.rows()[0].split()[0] == str(top)


async def test_a_jump_shows_the_line_at_a_third_with_a_cue() -> None:
    async with viewing(numbered(100_000)) as seen:
        await seen.jump(55_555)
        (row,) = (row for row in seen.rows() if row.startswith(">"))
        assert row.split()[:3] == [">", "55555", "line"]
        assert seen.rows().index(row) == 8
        await seen.jump(3, highlight=False)
        assert seen.rows()[2].split()[:2] == ["3", "line"]
        assert not any(row.startswith(">") for row in seen.rows())


async def test_a_jump_waits_until_the_line_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text("".join(f"step {number}\n" for number in range(1, 1_000_001)))
    app = Viewer()
    async with app.run_test(size=(80, 24)) as pilot:
        seen = Seen(app, pilot)
        seen.view.show(Lines.open(path))
        seen.view.jump(999_999)
        await until(pilot, lambda: any(row.split()[:2] == [">", "999999"] for row in seen.rows()))


async def test_evidence_is_numbered_in_the_gutter_and_in_the_scrollbar() -> None:
    async with viewing(numbered(24_000)) as seen:
        seen.view.mark({2: 1, 4: 12, 12_001: 2, 24_000: 3})
        await seen.until_painted(lambda row: row.lstrip().startswith("[1]"))
        rows = seen.rows()
        assert [row.split()[0] for row in rows[:4]] == ["1", "[1]", "3", "[12]"]
        assert rows[0].index("line") == rows[1].index("line") == rows[3].index("line")
        assert [(y, row[-2:]) for y, row in enumerate(rows) if row[-2:].strip().isdigit()] == [
            (0, " 1"),
            (12, " 2"),
            (23, " 3"),
        ]


async def test_other_lines_have_no_marks_of_the_last() -> None:
    async with viewing(numbered(1000)) as seen:
        seen.view.mark({2: 1})
        seen.view.jump(500)
        seen.view.show(Lines.from_text("other\ntext"))
        await seen.counted()
        assert [row.split() for row in seen.rows()[:3]] == [["1", "other"], ["2", "text"], []]


HOSTILE = (
    "\x1b[31m\x1b]0;title\x07\x1b]52;c;eA==\x07 [bold red]x[/] [@click=app.quit]q[/] \x9b2J \u202e"
)


async def test_markup_and_control_sequences_are_shown_not_obeyed() -> None:
    async with viewing(Lines.from_text(HOSTILE)) as seen:
        (shown,) = (row for row in seen.rows() if "bold" in row)
        assert "^[[31m^[]0;title^G^[]52;c;eA==^G [bold red]x[/] [@click=app.quit]q[/]" in shown
        assert all(row.isprintable() for row in seen.rows())
        await seen.pilot.click(LogView, offset=(45, 0))
        assert seen.app.is_running


@pytest.mark.parametrize("sideways", [0, 1, 2, 3])
async def test_wide_characters_keep_the_columns(sideways: int) -> None:
    text = "训练失败：通信超时 한국어 ｱ " * 10
    async with viewing(Lines.from_text(f"{text}\n{'x' * 300}")) as seen:
        seen.view.scroll_to(sideways, animate=False, force=True)
        await seen.pilot.pause()
        assert {cell_len(row) for row in seen.rows()} == {80}
        assert all(row[:3].strip() == str(y) for y, row in enumerate(seen.rows()[:2], 1))


async def test_scrolling_sideways_keeps_the_gutter() -> None:
    text = "".join(f"{number:>8}" for number in range(1, 100))
    async with viewing(Lines.from_text(text)) as seen:
        await seen.press("right")
        assert seen.rows()[0].split()[:2] == ["1", "2"]
        await seen.press("left")
        assert seen.rows()[0].split()[:2] == ["1", "1"]
        wheel = MouseScrollDown(seen.view, 9, 9, 0, 1, 0, shift=True, meta=False, ctrl=False)
        seen.view.post_message(wheel)
        await until(seen.pilot, lambda: seen.view.scroll_offset.x > 0)
        assert seen.view.scroll_offset.y == 0


async def test_a_line_of_30_mb_has_a_beginning_and_an_end() -> None:
    async with viewing(Lines.from_text(f"BEGIN{'x' * 30_000_000}END\nnext")) as seen:
        assert "BEGINxxx" in seen.rows()[0]
        assert seen.rows()[1].split()[:2] == ["2", "next"]
        seen.view.scroll_to(seen.view.max_scroll_x, animate=False)
        await until(seen.pilot, lambda: "xxxEND" in seen.rows()[0])


@pytest.mark.parametrize(
    "pack", [gzip.compress, lambda data: data.decode().encode("utf-16")], ids=["gzip", "utf-16"]
)
async def test_packed_logs(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(pack("first 火\nsecond\n".encode()))
    async with viewing(Lines.open(path)) as seen:
        assert [row.split() for row in seen.rows()[:3]] == [
            ["1", "first", "火"],
            ["2", "second"],
            [],
        ]


async def test_a_file_that_is_cut_while_it_is_on_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "rotated.log"
    path.write_text("".join(f"line {number}\n" for number in range(1, 10_001)))
    async with viewing(Lines.open(path)) as seen:
        os.truncate(path, 100)
        await seen.press("G")
        assert "no longer in the file" in seen.rows()[-1]


async def test_an_empty_log_says_so() -> None:
    async with viewing(Lines.from_text("")) as seen:
        assert seen.rows()[0].strip() == "[the log is empty]"


async def test_quick_changes_between_logs_end_with_the_last(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text("".join(f"step {number}\n" for number in range(1, 1_000_001)))
    long, short = Lines.open(path), Lines.from_text("short")
    async with viewing(long) as seen:
        for lines in (short, long, short, long):
            seen.view.show(lines)
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            while seen.view.line_count < 1_000_000:
                await seen.pilot.pause(0.01)
        await seen.press("G")
        assert seen.rows()[-1].split()[:3] == ["1000000", "step", "1000000"]


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_without_colour_nothing_is_lost(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with viewing(numbered(1000)) as seen:
        seen.app.theme = theme
        seen.view.mark({500: 1})
        seen.view.jump(500)
        await seen.until_painted(lambda row: row.startswith(">[1]") and "line 500" in row)


async def dragged(seen: Seen, start: tuple[int, int], end: tuple[int, int]) -> str | None:
    """What is selected by dragging the mouse from one cell of the screen to another."""
    await seen.pilot.mouse_down(offset=start)
    await seen.pilot.hover(offset=end)
    await seen.pilot.mouse_up(offset=end)
    return seen.app.screen.get_selected_text()


async def test_text_is_selected_with_the_mouse_without_the_gutter() -> None:
    async with viewing(Lines.from_text("first [b]line[/]\n\n训练失败 after\nlast")) as seen:
        gutter = seen.rows()[0].index("first")
        assert await dragged(seen, (gutter + 6, 0), (gutter + 2, 2)) == "[b]line[/]\n\n训练"
        assert await dragged(seen, (gutter, 1), (gutter + 2, 3)) == "\n训练失败 after\nlas"
        assert [cell_len(row) for row in seen.rows()] == [80] * 24


async def test_of_a_whole_log_a_selection_takes_so_many_lines_and_says_so() -> None:
    async with viewing(numbered(12_345)) as seen:
        seen.view.text_select_all()
        selected = seen.app.screen.get_selected_text()
        assert selected is not None
        assert selected.splitlines()[:2] == ["line 1", "line 2"]
        assert selected.splitlines()[-2:] == [
            "line 10000",
            "[... 2,345 more lines not copied]",
        ]
