"""Check record files. A rule is a small class with a code; its docstring says why it matters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from kb.containment import contained
from kb.contribute.lint.checked import CheckedFile, CheckedGuide, GuideLibrary
from kb.contribute.lint.claims import CLAIM_RULES
from kb.contribute.lint.context import LintContext, accepted_before, indexed_guides
from kb.contribute.lint.duplicates import DUPLICATE_RULES
from kb.contribute.lint.evidence import EVIDENCE_RULES
from kb.contribute.lint.guides import GUIDE_RULES
from kb.contribute.lint.links import LINK_RULES
from kb.contribute.lint.private import PRIVATE_RULES
from kb.contribute.lint.prose import PROSE_RULES
from kb.contribute.lint.rule import GuideRule, Rule, TextRule
from kb.contribute.lint.signatures import SIGNATURE_RULES
from kb.corpus.directories import IncidentDirectories, RecordFile, markdown_files
from kb.corpus.document import digest, from_payload
from kb.errors import CorpusError, IncidentError
from kb.guides import Guide, is_guide, stated_kind
from kb.incident import Incident, Kind
from kb.log.clean import decode_path
from kb.paths import packaged_incidents
from kb.problem import Problem

__all__ = [
    "ALL_RULES",
    "GUIDE_RULES",
    "CheckedFile",
    "Rule",
    "chosen_files",
    "lint",
    "read_all",
]

ALL_RULES: tuple[Rule, ...] = (
    *SIGNATURE_RULES,
    *EVIDENCE_RULES,
    *LINK_RULES,
    *PROSE_RULES,
    *CLAIM_RULES,
    *DUPLICATE_RULES,
    *PRIVATE_RULES,
)
"""Every rule about incidents except those of the shape, which `kb.markdown` checks while it
reads."""

_ALL_FILES = "(all files)"
"""In the place of a path, where a rule fails at what it compares."""


def lint(paths: Sequence[Path], library: IncidentDirectories) -> tuple[int, list[Problem]]:
    """Check the given files, or the whole library when none is given.

    Rules across files see the library as well, but only problems of the given files are returned.
    Returns the number of files and the problems in order of place.

    Raises:
        CorpusError: a path does not exist or holds no incident files.
    """
    present, closed = library.all_files_and_closed()
    known = {file.path.stem: file for file in present}
    chosen = list(chosen_files(paths)) if paths else [*present, *closed]
    replaced = {file.path.stem for file in chosen}
    others = [file for key, file in known.items() if key not in replaced]
    problems = [
        *_lint_incidents(
            _incidents(chosen),
            _incidents(others),
            library.directories,
            [file.path.stem for file in (*chosen, *others) if _is_playbook(file)],
        ),
        *_lint_guides(chosen, others, library.directories),
    ]
    return len(chosen), sorted(problems)


def _incidents(files: Iterable[RecordFile]) -> list[RecordFile]:
    return [file for file in files if not is_guide(file.head())]


def _is_playbook(file: RecordFile) -> bool:
    return stated_kind(file.head()) is Kind.PLAYBOOK


def _lint_incidents(
    chosen: Sequence[RecordFile],
    others: Sequence[RecordFile],
    directories: Sequence[Path],
    playbooks: Sequence[str],
) -> Iterator[Problem]:
    if not chosen:
        return
    accepted = accepted_before()
    rest, _ = read_all(others, accepted, chosen=False)
    files, problems = read_all(chosen, accepted, chosen=True)
    yield from problems
    names = {file.name for file in files}
    with LintContext([*rest, *files], directories, playbooks) as context:
        for rule in ALL_RULES:
            for file in files:
                yield from _found(rule, file.name, partial(rule.check, file))
            across = _found(rule, _ALL_FILES, partial(rule.finish, context))
            yield from (problem for problem in across if problem.path in (*names, _ALL_FILES))
        yield from (problem for problem in context.problems if problem.path in names)


def _lint_guides(
    chosen: Sequence[RecordFile], others: Sequence[RecordFile], directories: Sequence[Path]
) -> Iterator[Problem]:
    guides = [file for file in chosen if is_guide(file.head())]
    if not guides:
        return
    files, problems = _read_guides(guides, {}, chosen=True)
    yield from problems
    compared = (file for file in others if is_guide(file.head()))
    rest, _ = _read_guides(compared, indexed_guides(directories), chosen=False)
    incidents = {file.path.stem for file in _incidents([*chosen, *others])}
    library = GuideLibrary([*rest, *files], incidents)
    for text_rule in (rule for rule in ALL_RULES if isinstance(rule, TextRule)):
        for file in files:
            yield from _found(text_rule, file.name, partial(text_rule.check, file))
    for rule in GUIDE_RULES:
        for file in files:
            yield from _found(rule, file.name, partial(rule.check, file))
        yield from _found(rule, _ALL_FILES, partial(rule.finish, library))


def _read_guides(
    files: Iterable[RecordFile], indexed: Mapping[str, Guide], *, chosen: bool
) -> tuple[list[CheckedGuide], list[Problem]]:
    checked: list[CheckedGuide] = []
    problems: list[Problem] = []
    for file in files:
        try:
            source = file.source()
            record = indexed.get(digest(source)) or file.read(source)
        except IncidentError as error:
            problems.extend(error.problems)
        else:
            if not isinstance(record, Incident):
                checked.append(
                    CheckedGuide(
                        name=file.name,
                        lines=_lines(source),
                        chosen=chosen,
                        shipped=_is_shipped(file),
                        guide=record,
                    )
                )
    return checked, problems


def _lines(source: bytes) -> tuple[str, ...]:
    return tuple(source.decode().split("\n"))


def _is_shipped(file: RecordFile) -> bool:
    return file.path.resolve().is_relative_to(packaged_incidents().resolve())


def _found(
    rule: Rule | GuideRule, path: str, look: Callable[[], Iterable[Problem]]
) -> Iterator[Problem]:
    """What the rule finds. That it fails is a problem too: the file may not pass unseen."""
    failures: list[str] = []
    with contained("this rule cannot be checked", failures.append):
        yield from look()
    for failure in failures:
        yield Problem(path, 1, rule.code, failure, "report the file as a bug of kb")


def chosen_files(paths: Iterable[Path]) -> Iterable[RecordFile]:
    """The record files that the paths are or hold, and the folders that cannot be listed.

    Raises:
        CorpusError: a path does not exist or holds none.
    """
    for path in paths:
        if path.is_dir():
            closed: list[Path] = []
            files = [*markdown_files(path, closed.append), *closed]
            found = [RecordFile(file, decode_path(str(file))) for file in files]
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
            checked.append(
                CheckedFile(
                    name=file.name,
                    lines=_lines(source),
                    chosen=chosen,
                    shipped=_is_shipped(file),
                    incident=incident,
                )
            )
    return checked, problems
