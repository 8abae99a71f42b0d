"""Make the pictures and the table of keys of the documentation from the real app.

python -m benchmarks.pictures
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from pathlib import Path

from textual.worker import WorkerCancelled

from kb.service.input import UserInput
from kb.settings import Settings
from tui.actions import keys_table
from tui.app import KbApp
from tui.widgets.paste_box import PasteBox

_DOCS = Path(__file__).resolve().parent.parent / "docs"
_SAMPLE = Path(__file__).resolve().parent / "samples" / "nccl-shm.log"
_SIZE = (120, 36)
_KEYS = re.compile(r"(?<=<!-- keys -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)


async def picture() -> str:
    """The screen with an answer on it, as SVG."""
    app = KbApp(Settings(history=False), UserInput())
    async with app.run_test(size=_SIZE) as pilot:
        await pilot.pause()
        app.main.query_one(PasteBox).take(_SAMPLE.read_text(encoding="utf-8"))
        for _ in range(3):
            await pilot.pause(0.5)
            with suppress(WorkerCancelled):  # by what begins anew
                await app.workers.wait_for_complete()
        await pilot.press("e")
        await pilot.pause(0.5)
        return app.export_screenshot(title="kb")


def main() -> None:
    """Write docs/screen.svg and the table in docs/tui.md."""
    svg = asyncio.run(picture())
    (_DOCS / "screen.svg").write_text(svg, encoding="utf-8")
    page = _DOCS / "tui.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(_KEYS.sub(lambda _found: keys_table(), text), encoding="utf-8")


if __name__ == "__main__":
    main()
