"""Consoles and progress bars. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from kb.log.clean import strip_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segment

    from index.progress import Report

_MAX_WIDTH = 100
_MIN_WIDTH = 40
"""Columns between which text stays readable."""
_PIPE_WIDTH = 80
"""Columns where no terminal says how wide it is."""


def output_console() -> Console:
    """A console for results: coloured on a terminal, plain in a pipe or with `NO_COLOR`."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False, markup=False, soft_wrap=False)
    width = console.width if console.is_terminal else _PIPE_WIDTH
    console.width = max(_MIN_WIDTH, min(width, _MAX_WIDTH))
    return console


def show(*parts: RenderableType, paged: bool = True) -> None:
    """Print results; if `paged`, use the pager for output longer than the terminal."""
    from rich.segment import Segments

    console = output_console()
    with console.capture() as capture:
        for part in parts:
            console.print(Segments(map(_unobeyed, console.render(part))), crop=False, end="")
    text = "".join(f"{line.rstrip()}\n" for line in capture.get().strip("\n").splitlines())
    if paged and console.is_terminal and text.count("\n") > console.height and sys.stdin.isatty():
        os.environ.setdefault("LESS", "-RFX")
        click.echo_via_pager(text, color=not console.no_color)
    else:
        click.echo(text, nl=False, color=console.is_terminal and not console.no_color)


def _unobeyed(segment: Segment) -> Segment:
    return segment if segment.control else segment._replace(text=strip_controls(segment.text))


def say(sentence: str) -> None:
    """Tell the user something that is not a result; names of files in it are hostile input."""
    click.echo(strip_controls(sentence), err=True)


@contextmanager
def progress(title: str) -> Iterator[Report]:
    """A progress bar on stderr, only on a terminal and only when there is something to wait for."""
    with ExitStack() as stack:
        bar = None

        def report(done: int, total: int) -> None:
            nonlocal bar
            if bar is None and total and sys.stderr.isatty():
                from kb.cli.bar import Bar

                bar = stack.enter_context(Bar(title))
            if bar is not None:
                bar.show(done, total)

        yield report
