"""`kb watch`: logs that grow."""

from __future__ import annotations

import errno
import os
import select
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import FrameType

import click

from kb.classify import Unit
from kb.cli import NamedPath, incidents_option
from kb.cli.case import open_service
from kb.cli.exit_codes import BY_SIGNAL, of_check
from kb.cli.terminal import put, put_json, say
from kb.errors import LogError
from kb.settings import load_settings
from kb.views.watch import to_json_line, to_line, to_summary
from kb.watch import Event, Notifier, Watcher, allow_open_files

_STDOUT = 1
_PAUSE_SECONDS = 0.5
"""Between two looks."""
_MAX_PAUSE_SECONDS = 5.0
"""As long as the look took, where that is longer: many files on a slow disk are looked at less
often."""
_LAST_SECONDS = 5.0
"""How long to read on after Ctrl-C or TERM: the last words of a job tell most."""


class Form(StrEnum):
    """How news is written."""

    TEXT = "text"
    JSONL = "jsonl"


@click.command("watch")
@click.argument("paths", nargs=-1, required=True, type=NamedPath(), metavar="PATH...")
@click.option(
    "--unit",
    type=click.Choice([unit.value for unit in Unit]),
    default=Unit.JOB.value,
    callback=lambda _context, _option, value: Unit(value),
    show_default=True,
    help="What one case is: each PATH as the logs of one job, or each file.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in Form]),
    default=Form.TEXT.value,
    callback=lambda _context, _option, value: Form(value),
    show_default=True,
    help="A line of text or a JSON object for each incident.",
)
@click.option("--once", is_flag=True, help="End when all that is there was read.")
@click.option("--until-first", is_flag=True, help="End at the first that is said.")
@click.option(
    "--notify",
    "urls",
    multiple=True,
    metavar="URL",
    help="Also send failures to a webhook (https://...) or a URL of Apprise; repeatable.",
)
@incidents_option
def command(
    paths: tuple[Path, ...],
    unit: Unit,
    form: Form,
    once: bool,
    until_first: bool,
    urls: tuple[str, ...],
    incidents: tuple[Path, ...],
) -> None:
    """Follow growing logs, and say what fails.

    PATH is a log, or a directory with the logs of one job; it need not be there yet. What is in it
    is read once, and then what is added, over rotation and truncation. Each incident is said once,
    on a line of its own; so is a failure that nothing known matches.

    Exit code of --once and --until-first: 0 an incident was found, 1 none was. Ctrl-C ends the
    watch with 130, TERM with 143.
    """
    missing = next((path for path in paths if once and not path.exists()), None)
    if missing:
        raise LogError(missing, "no such file or directory; without --once, kb waits for it")
    settings = load_settings(incidents)
    started = time.monotonic()
    allow_open_files()
    with (
        open_service(settings) as service,
        Notifier(urls, say) as notifier,
        Watcher(paths, unit, service, say) as watcher,
        _stopped_softly() as stop,
    ):
        for event in _events(watcher, stop, once=once):
            _tell(event, form, notifier)
            if until_first:
                break
    say(to_summary(watcher, time.monotonic() - started))
    if stop.signal:
        raise SystemExit(BY_SIGNAL + stop.signal)
    raise click.exceptions.Exit(of_check(good=watcher.found_known))


def _tell(event: Event, form: Form, notifier: Notifier) -> None:
    line = to_line(event)
    if form is Form.JSONL:
        put_json(to_json_line(event))
    else:
        put(line)
    if event.is_failure:
        notifier.tell(line, event)


class _Stop:
    """What a signal asks for. The first one lets the watch say what it saw; the next one ends
    it."""

    signal: int | None = None


@contextmanager
def _stopped_softly() -> Iterator[_Stop]:
    stop = _Stop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, _frame: FrameType | None) -> None:
        stop.signal = number
        restore()

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, ask)
    try:
        yield stop
    finally:
        restore()


def _events(watcher: Watcher, stop: _Stop, *, once: bool) -> Iterator[Event]:
    """What is news, until the end is asked for."""
    while True:
        started = time.monotonic()
        asked = stop.signal is not None
        yield from watcher.look()
        if asked or (once and not watcher.behind):
            break
        if not watcher.behind:
            _check_reader()
            took = time.monotonic() - started
            time.sleep(max(_PAUSE_SECONDS, min(took, _MAX_PAUSE_SECONDS)))
    until = time.monotonic() + _LAST_SECONDS
    while watcher.behind and time.monotonic() < until:
        yield from watcher.look()
    yield from watcher.finish()


def _check_reader() -> None:
    """End as soon as nobody reads the pipe that news is written to: the next news may never come.

    Raises:
        BrokenPipeError: nobody does.
    """
    poll = select.poll()
    poll.register(_STDOUT, 0)
    gone = any(events & select.POLLERR for _, events in poll.poll(0))
    if gone and stat.S_ISFIFO(os.fstat(_STDOUT).st_mode):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
