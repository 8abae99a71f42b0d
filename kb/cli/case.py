"""What commands share that diagnose one log: where it comes from, and the service that answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli import Function, NamedPath, incidents_option
from kb.cli.terminal import progress, say
from kb.service.service import Service, result_of

if TYPE_CHECKING:
    from kb.diagnosis import Diagnosis
    from kb.log import Log, Source
    from kb.settings import Settings


def case_arguments(function: Function) -> Function:
    """Add TEXT, `-f` and `--incidents` to a command."""
    for decorate in (incidents_option, _file_option, click.argument("text", nargs=-1)):
        function = decorate(function)
    return function


_file_option = click.option(
    "-f",
    "--file",
    "paths",
    type=NamedPath(allow_dash=True),
    multiple=True,
    metavar="PATH",
    help="A log file, `-` for stdin, or a directory with the logs of one job.",
)


resume_option = click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[ID]",
    help="Go on with the last case, or with the one of this id; kb cases lists them.",
)


def read_case(text: Sequence[str], paths: Sequence[Path]) -> Log | None:
    """The log that the arguments make; None where there are none. Words that all name files, behind
    a path, are paths too.

    Raises:
        LogError: a path cannot be read.
    """
    from kb.log import Log

    if paths and text and all(map(_is_file, text)):
        # The shell made `-f *.log` into one path for the option and words behind it.
        text, paths = (), (*paths, *map(Path, text))
    sources: list[Source] = list(Log.from_text(" ".join(text)).sources) if text else []
    for path in paths:
        log = Log.from_stream(sys.stdin.buffer) if str(path) == "-" else Log.from_paths([path])
        sources.extend(log.sources)
    return Log(sources) if sources else None


def _is_file(word: str) -> bool:
    return os.path.isfile(word)  # noqa: PTH113  Path.is_file raises where a name is too long


@contextmanager
def open_service(settings: Settings) -> Iterator[Service]:
    """The service, with a progress bar while it builds the index; what it notices is said."""
    with progress("Building the index") as report, Service(settings, report, say) as service:
        yield service


def diagnosed(log: Log, service: Service, top: int) -> Diagnosis:
    """Diagnose, and tell what the user should know about the input itself."""
    future = service.diagnose(lambda: log, top)
    _load_masks()
    diagnosis = result_of(future)
    for notice in diagnosis.notices:
        say(notice)
    return diagnosis


def _load_masks() -> None:
    """Read the rules of secrets, which every answer needs, while the service searches."""
    from kb.evidence.secrets import mask_secrets

    mask_secrets("")
