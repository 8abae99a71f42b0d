"""Choose a file or a directory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.suggester import Suggester
from textual.widgets import DirectoryTree, Input, Static

from kb.paths import expand_user
from tui.screens.sheet import Sheet


class _Visible(DirectoryTree):
    """Without hidden files."""

    def filter_paths(self, paths: Iterable[Path]) -> Iterable[Path]:
        return [path for path in paths if not path.name.startswith(".")]


class _Paths(Suggester):
    """Completes the name of a file."""

    async def get_suggestion(self, value: str) -> str | None:
        folder, _slash, start = value.rpartition("/")
        try:
            names = sorted(path.name for path in expand_user(folder or "/").iterdir())
        except OSError:
            return None
        name = next((name for name in names if name.startswith(start)), None)
        return f"{folder}/{name}" if name and start else None


class PickScreen(Sheet[Path | None]):
    """Ends with the path that was typed or chosen."""

    AUTO_FOCUS = "#path"

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        here = Path.cwd()
        with Vertical(classes="sheet") as sheet:
            sheet.border_title = self._title
            sheet.border_subtitle = "enter: open, tab: file tree, esc: back"
            yield Input(
                f"{here}/", id="path", suggester=_Paths(case_sensitive=True), select_on_focus=False
            )
            yield Static(id="wrong")
            yield _Visible(here)

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        path = expand_user(event.value)
        if path.exists():
            self.dismiss(path)
        else:
            self.query_one("#wrong", Static).update("No such file or directory.")

    @on(DirectoryTree.FileSelected)
    def _file(self, event: DirectoryTree.FileSelected) -> None:
        self.dismiss(event.path)

    @on(DirectoryTree.NodeHighlighted)
    def _seen(self, event: DirectoryTree.NodeHighlighted[object]) -> None:
        data = event.node.data
        if data is not None and self.query_one(_Visible).has_focus:
            self.query_one("#path", Input).value = str(getattr(data, "path", ""))
