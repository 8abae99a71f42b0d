"""Check incident files. A rule is a small class with a code; its docstring says why it matters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from kb.containment import contained
from kb.contribute.lint.checked import CheckedFile
from kb.contribute.lint.context import LintContext, accepted_before
from kb.contribute.lint.duplicates import DUPLICATE_RULES
from kb.contribute.lint.evidence import EVIDENCE_RULES
from kb.contribute.lint.links import LINK_RULES
from kb.contribute.lint.private import PRIVATE_RULES
from kb.contribute.lint.prose import PROSE_RULES
from kb.contribute.lint.rule import Rule
from kb.contribute.lint.signatures import SIGNATURE_RULES
from kb.corpus.directories import IncidentDirectories, RecordFile, markdown_files
from kb.corpus.document import digest, from_payload
from kb.errors import CorpusError, IncidentError
from kb.incident import Incident
from kb.log.clean import decode_path
from kb.paths import packaged_incidents
from kb.problem import Problem

__all__ = ["ALL_RULES", "CheckedFile", "Rule", "chosen_files", "lint", "read_all"]

ALL_RULES: tuple[Rule, ...] = (
    *SIGNATURE_RULES,
    *EVIDENCE_RULES,
    *LINK_RULES,
    *PROSE_RULES,
    *DUPLICATE_RULES,
    *PRIVATE_RULES,
)
"""Every rule except those of the record's shape, which `kb.markdown` checks while it reads."""

_ALL_FILES = "(all files)"
"""In the place of a path, where a rule fails at what it compares."""


def lint(paths: Sequence[Path], library: IncidentDirectories) -> tuple[int, list[Problem]]:
    """Check the given files, or the whole library when none is given.

    Rules across files see the library as well, but only problems of the given files are returned.
    Returns the number of files and the problems in order of place.

    Raises:
        CorpusError: a path does not exist or holds no incident files.
    """
    known = {file.path.stem: file for file in library.files()}
    chosen = list(chosen_files(paths)) if paths else list(known.values())
    replaced = {file.path.stem for file in chosen}
    others = (file for key, file in known.items() if key not in replaced)
    accepted = accepted_before()
    rest, _ = read_all(others, accepted, chosen=False)
    files, problems = read_all(chosen, accepted, chosen=True)
    names = {file.name for file in files}
    with LintContext([*rest, *files], library.directories) as context:
        for rule in ALL_RULES:
            for file in files:
                problems.extend(_found(rule, file.name, partial(rule.check, file)))
            across = _found(rule, _ALL_FILES, partial(rule.finish, context))
            problems.extend(problem for problem in across if problem.path in (*names, _ALL_FILES))
        problems.extend(problem for problem in context.problems if problem.path in names)
    return len(chosen), sorted(problems)


def _found(rule: Rule, path: str, look: Callable[[], Iterable[Problem]]) -> Iterator[Problem]:
    """What the rule finds. That it fails is a problem too: the file may not pass unseen."""
    failures: list[str] = []
    with contained("this rule cannot be checked", failures.append):
        yield from look()
    for failure in failures:
        yield Problem(path, 1, rule.code, failure, "report the file as a bug of kb")


def chosen_files(paths: Iterable[Path]) -> Iterable[RecordFile]:
    """The incident files that the paths are or hold.

    Raises:
        CorpusError: a path does not exist or holds none.
    """
    for path in paths:
        if path.is_dir():
            found = [RecordFile(file, decode_path(str(file))) for file in markdown_files(path)]
            if not found:
                raise CorpusError(f"{path} contains no incident files (*.md)")
            yield from found
        elif path.exists():
            yield RecordFile(path, decode_path(str(path)))
        else:
            raise CorpusError(f"{path} does not exist")


def read_all(
    files: Iterable[RecordFile], accepted: Mapping[str, Incident], *, chosen: bool
) -> tuple[list[CheckedFile], list[Problem]]:
    """Read the files, except those whose content was `accepted` before; return them and the
    problems in the shape of the others."""
    checked: list[CheckedFile] = []
    problems: list[Problem] = []
    package = packaged_incidents().resolve()
    for file in files:
        try:
            source = file.source()
            incident = accepted.get(digest(source))
            if incident is None or incident.id != file.path.stem:
                # As it is indexed: what cannot be is no record.
                incident = from_payload(file.document(source).payload).incident
        except IncidentError as error:
            problems.extend(error.problems)
        else:
            lines = tuple(source.decode().split("\n"))
            shipped = file.path.resolve().is_relative_to(package)
            checked.append(CheckedFile(file.name, lines, incident, chosen, shipped))
    return checked, problems
