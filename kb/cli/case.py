"""What `kb ask` and `kb chat` share: where the text comes from, and how it is diagnosed."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kb.cli import Function, incidents_option
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis, diagnose
from kb.log import Log, Source


def case_arguments(function: Function) -> Function:
    """Add TEXT, `-f` and `--incidents` to a command."""
    for decorate in (incidents_option, _file_option, click.argument("text", nargs=-1)):
        function = decorate(function)
    return function


_file_option = click.option(
    "-f",
    "--file",
    "paths",
    type=click.Path(path_type=Path, allow_dash=True),
    multiple=True,
    metavar="PATH",
    help="A log file, `-` for stdin, or a directory with the logs of one job.",
)


def read_case(text: tuple[str, ...], paths: tuple[Path, ...]) -> Log | None:
    """The log that the arguments make; None where there are none.

    Raises:
        LogError: a path cannot be read.
    """
    sources: list[Source] = list(Log.from_text(" ".join(text)).sources) if text else []
    for path in paths:
        log = Log.from_stream(sys.stdin.buffer) if str(path) == "-" else Log.from_paths([path])
        sources.extend(log.sources)
    return Log(sources) if sources else None


def diagnosed(log: Log, knowledge: KnowledgeBase, top: int) -> Diagnosis:
    """Diagnose, and tell what the user should know about the input itself."""
    from kb.cli.terminal import say

    diagnosis = diagnose(log, knowledge, top)
    for notice in diagnosis.notices:
        say(notice)
    return diagnosis
