"""All that is printed. Results go to stdout, everything else to stderr.

Text from logs, records, names and arguments is hostile: whatever a command prints passes a function
of this module, which lets no control or bidirectional character through.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from kb.cli.process import AS_JSON, writable
from kb.log.clean import drop_controls, strip_controls

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
    """A console for results: coloured on a terminal, plain in a pipe or with `NO_COLOR`. No other
    variable has a say, such as `FORCE_COLOR`."""
    from rich.console import Console

    console = Console(
        force_terminal=sys.stdout.isatty(),
        highlight=False,
        emoji=False,
        markup=False,
        soft_wrap=False,
    )
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
        click.echo_via_pager(writable(text), color=not console.no_color)
    else:
        color = console.is_terminal and not console.no_color
        click.echo(text, sys.stdout, nl=False, color=color)


def _unobeyed(segment: Segment) -> Segment:
    return segment if segment.control else segment._replace(text=strip_controls(segment.text))


# Without a stream, `click.echo` takes ASCII for a mistake and writes UTF-8 there.


def put(text: str, end: str = "\n") -> None:
    """Print a result that is plain text, with its tabs."""
    click.echo(drop_controls(text) + end, sys.stdout, nl=False)


def put_json(text: str, end: str = "\n") -> None:
    """Print JSON; what the encoding of stdout lacks becomes an escape."""
    put(writable(text, AS_JSON), end)


def say(sentence: str) -> None:
    """Tell the user something that is not a result."""
    click.echo(strip_controls(sentence), sys.stderr)


def tell(error: click.ClickException) -> None:
    """Say what went wrong, and the usage where it was used wrongly."""
    message = io.StringIO()
    error.show(message)
    say(message.getvalue().removesuffix("\n"))


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
