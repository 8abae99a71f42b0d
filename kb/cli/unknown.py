"""What to say about a name that does not exist."""

from __future__ import annotations

from collections.abc import Collection

from kb.corpus.directories import RecordDirectories, RecordFile
from kb.errors import CorpusError, IncidentError
from kb.guides import Record
from kb.problem import skipped


def unknown(kind: str, name: str, known: Collection[str], otherwise: str) -> str:
    """A sentence with the known names that are close, or with what to do `otherwise`."""
    from difflib import get_close_matches

    close = " or ".join(f"`{other}`" for other in get_close_matches(name, known, cutoff=0.5))
    return f"unknown {kind} `{name}`; {f'did you mean {close}?' if close else otherwise}"


def record_file(identifier: str, directories: tuple[str, ...], otherwise: str) -> RecordFile:
    """The file of a record of any kind that is in use; broken ones are told.

    Raises:
        CorpusError: there is none; says which ids are close, or what to do `otherwise`.
        IncidentError: its file cannot be read.
    """
    from kb.cli.terminal import say  # a completion does not wait for it

    library: RecordDirectories[Record] = RecordDirectories(directories)
    file, problems = library.find(identifier)
    if file is None and problems:
        raise IncidentError(problems)
    if file is None:
        raise CorpusError(unknown("record", identifier, library.ids(), otherwise))
    if problems:
        say(skipped(problem.path for problem in problems))
    return file
