"""All records are read, none twice, and a process that lives long lets go of them."""

from __future__ import annotations

import gc
import shutil
import weakref
from pathlib import Path

import pytest

from kb.corpus import document
from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import GuideDirectories, IncidentDirectories
from kb.diagnosis import diagnose
from kb.log import Log
from kb.settings import Settings


def test_a_closed_engine_is_freed_at_once(
    built_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An encoder is some 60 MB: the collector of circles comes by too seldom for that."""
    monkeypatch.setenv("KB_CACHE", str(built_cache))
    gc.collect()
    gc.disable()
    try:
        with KnowledgeBase.open(Settings()) as knowledge:
            diagnose(Log.from_text("NCCL hangs"), knowledge)
            encoder = weakref.ref(knowledge.encoder)
        del knowledge
        assert encoder() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("count", [3_000, pytest.param(100_001, marks=pytest.mark.slow)])
def test_no_file_of_a_directory_is_dropped_at_any_number(tmp_path: Path, count: int) -> None:
    for number in range(count):
        (tmp_path / f"record-{number:06}.md").touch()
    files = IncidentDirectories(first=tmp_path).files()
    assert [file.path.stem for file in files] == [f"record-{n:06}" for n in range(count)]


def test_each_file_becomes_a_document_or_a_problem(tmp_path: Path) -> None:
    shipped = sorted(Path("tests/tui/incidents").glob("*.md"))
    for record in shipped:
        shutil.copy(record, tmp_path)
    wrong = [tmp_path / f"wrong-{number:04}.md" for number in range(1_000)]
    for path in wrong:
        path.write_text("no record\n")
    content = IncidentDirectories(first=tmp_path).read({})
    assert [document.id for document in content.documents] == [path.stem for path in shipped]
    named = {problem.path for problem in content.problems}
    assert named == {f"{tmp_path.name}/{path.name}" for path in wrong}


def test_a_file_that_is_known_is_not_read_as_a_record_again(tmp_path: Path) -> None:
    record = Path(shutil.copy("tests/tui/incidents/shm-too-small.md", tmp_path))
    directories = IncidentDirectories(first=tmp_path)
    (document,) = directories.read({}).documents
    again = directories.read({document.id: document.digest})
    assert (again.documents, again.unchanged) == ([], [document.id])
    record.write_text(record.read_text() + "\n")
    (changed,) = directories.read({document.id: document.digest}).documents
    assert changed.digest != document.digest


def test_the_fingerprint_follows_every_file(tmp_path: Path) -> None:
    directories = IncidentDirectories(first=tmp_path)
    seen = [directories.fingerprint()]
    record = tmp_path / "a.md"
    for text in ("x", "longer"):
        record.write_text(text)
        seen.append(directories.fingerprint())
    record.rename(tmp_path / "b.md")
    seen.append(directories.fingerprint())
    assert len(set(seen)) == len(seen)
    (tmp_path / "b.md").unlink()
    assert directories.fingerprint() == seen[0]


def test_the_fingerprint_follows_the_form_in_which_documents_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = IncidentDirectories(first=tmp_path)
    before = directories.fingerprint()
    monkeypatch.setattr(document, "_FORMAT_VERSION", 0)  # that of an older version
    assert directories.fingerprint() != before


BROKEN = {
    "nothing": "",
    "no front matter": "no record\n",
    "YAML that does not parse": "---\nid: NAME\ntitle: [broken\n---\n",
    "another id": "---\nid: other\nkind: KIND\n---\n",
    "a check without its parts": "---\nid: NAME\nkind: check\n---\n",
    "an incident without its parts": "---\nid: NAME\nkind: incident\n---\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", BROKEN.values(), ids=list(BROKEN))
@pytest.mark.parametrize("name", ["nccl-shm-too-small-container", "df-shm", "hang-mid-training"])
def test_a_broken_file_overrides_nothing_and_is_named(tmp_path: Path, name: str, text: str) -> None:
    first, team = tmp_path / "first", tmp_path / "team"
    first.mkdir()
    shutil.copy(next(Path("incidents").rglob(f"{name}.md")), first)
    team.mkdir()
    (team / f"{name}.md").write_text(text.replace("NAME", name))
    named = []
    for kind in (IncidentDirectories, GuideDirectories):
        shipped, library = kind(first=first), kind([team], first=first)
        assert library.files() == shipped.files()
        records, problems = library.load()
        assert [record.id for record in records] == shipped.ids()
        content = library.read({})
        assert [document.id for document in content.documents] == shipped.ids()
        assert content.problems == problems
        named += [problem.path for problem in problems]
    assert set(named) == {f"team/{name}.md"}


def test_the_fingerprint_follows_what_is_overridden(tmp_path: Path) -> None:
    """It is in use again once what overrides it breaks."""
    first, team = tmp_path / "first", tmp_path / "team"
    for directory in (first, team):
        directory.mkdir()
        shutil.copy("tests/tui/incidents/shm-too-small.md", directory)
    library = IncidentDirectories([team], first=first)
    seen = library.fingerprint()
    (first / "shm-too-small.md").write_text("changed")
    assert library.fingerprint() != seen
