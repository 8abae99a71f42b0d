"""Check incident files. A rule is a small class with a code; its docstring says why it matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kb.contribute.lint.evidence import STOLEN_EVIDENCE, accepted_before
from kb.contribute.lint.rule import CheckedFile, Rule
from kb.contribute.lint.rules import RULES
from kb.documents import digest
from kb.errors import IncidentError, LibraryError
from kb.incident import Incident
from kb.library import IncidentFile, Library, markdown_files
from kb.problem import Problem

__all__ = ["ALL_RULES", "CheckedFile", "Rule", "lint"]

ALL_RULES: tuple[Rule, ...] = (*RULES, STOLEN_EVIDENCE)
"""Every rule beside those of the record's shape, which `kb.markdown` checks while reading."""


def lint(paths: Sequence[Path], library: Library) -> tuple[int, list[Problem]]:
    """Check the given files, or the whole library when none is given.

    Rules across files see the library as well, but only problems of the given files are returned.
    Returns the number of files and the problems in order of place.

    Raises:
        LibraryError: a path does not exist or holds no incident files.
    """
    known = {file.path.stem: file for file in library.files()}
    chosen = list(_chosen(paths)) if paths else list(known.values())
    problems = list(_duplicates(chosen))
    replaced = {file.path.stem for file in chosen}
    others = (file for key, file in known.items() if key not in replaced)
    context, _ = _read_all(others, accepted_before())
    files, shape = _read_all(chosen)
    problems += shape
    names = {file.name for file in files}
    for rule in ALL_RULES:
        for file in files:
            problems.extend(rule.check(file))
        found = rule.finish([*context, *files])
        problems.extend(problem for problem in found if problem.path in names)
    return len(chosen), sorted(problems)


def _chosen(paths: Iterable[Path]) -> Iterable[IncidentFile]:
    for path in paths:
        if path.is_dir():
            found = [IncidentFile(file, str(file)) for file in markdown_files(path)]
            if not found:
                raise LibraryError(f"{path} holds no incident files (*.md)")
            yield from found
        elif path.exists():
            yield IncidentFile(path, str(path))
        else:
            raise LibraryError(f"{path} does not exist")


def _read_all(
    files: Iterable[IncidentFile], accepted: Mapping[str, Incident] | None = None
) -> tuple[list[CheckedFile], list[Problem]]:
    """Read files; those with content that was `accepted` before are there to compare with."""
    checked: list[CheckedFile] = []
    problems: list[Problem] = []
    for file in files:
        try:
            source = file.source()
            incident = (accepted or {}).get(digest(source)) or file.read(source)
        except IncidentError as error:
            problems.extend(error.problems)
        else:
            lines = tuple(source.decode().split("\n"))
            checked.append(CheckedFile(file.name, lines, incident, accepted is None))
    return checked, problems


def _duplicates(files: Sequence[IncidentFile]) -> Iterable[Problem]:
    first: dict[str, IncidentFile] = {}
    for file in files:
        other = first.setdefault(file.path.stem, file)
        if other is not file:
            yield Problem(
                file.name,
                1,
                "IDS401",
                f"the id `{file.path.stem}` is also that of {other.name}",
                "give one of the two another id, or remove it",
            )
