"""The file of a record that a user names."""

from __future__ import annotations

from kb.corpus.directories import RecordDirectories, RecordFile
from kb.errors import CorpusError, IncidentError, short_name, unknown
from kb.guides import Record
from kb.problem import skipped


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
        raise CorpusError(unknown("record", short_name(identifier), library.ids(), otherwise))
    if problems:
        say(skipped(problem.path for problem in problems))
    return file
