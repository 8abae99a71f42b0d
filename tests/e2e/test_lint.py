"""`kb lint` accepts what is shipped and says of a wrong file what, where and what to do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import Run

FOUNDING = "gpt-fast-intra-node-comm-hang"
SOURCE = next(Path("incidents").glob(f"*/{FOUNDING}.md"))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    path = tmp_path / f"{FOUNDING}.md"
    path.write_text(SOURCE.read_text())
    return path


def test_everything_shipped_passes(kb: Run) -> None:
    run = kb("lint")
    assert (run.returncode, run.stdout) == (0, b""), run.stdout.decode()
    assert b"0 problems" in run.stderr


def test_one_good_file_passes(kb: Run, copy: Path) -> None:
    run = kb("lint", copy)
    assert run.returncode == 0, run.stdout.decode()
    assert b"1 files checked" in run.stderr


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("## Cause", "## Because", "SHP106"),
        (f"id: {FOUNDING}", "id: another-name", "SHP112"),
        ("kind: incident", "kind: incident\nmood: bad", "SHP105"),
        ("signatures:\n", "signatures:\n- pattern: (\n  strength: weak\n  regex: true\n", "SHP105"),
        (
            "signatures:\n",
            "signatures:\n- pattern: (abc\n  strength: weak\n  regex: true\n",
            "SIG201",
        ),
        (
            "signatures:\n",
            "signatures:\n- pattern: twice\n  strength: weak\n" * 2,
            "SHP104",
        ),
        (
            "signatures:\n",
            "signatures:\n" + "- pattern: twice\n  strength: weak\n" * 2,
            "SIG202",
        ),
        ("signatures:\n", "signatures:\n- pattern: Error while\n  strength: strong\n", "SIG203"),
        ("## Distinguish\n\n", "## Distinguish\n\n- `no-such-record`: Is it?\n", "IDS402"),
        ("## Distinguish\n\n", f"## Distinguish\n\n- `{FOUNDING}`: Is it?\n", "IDS403"),
    ],
)
def test_wrong_file_is_reported_with_rule_place_and_help(
    kb: Run, copy: Path, old: str, new: str, code: str
) -> None:
    text = copy.read_text()
    assert old in text
    copy.write_text(text.replace(old, new, 1))
    run = kb("lint", copy)
    report = run.stdout.decode()
    assert run.returncode == 1, report
    assert f"error[{code}]" in report
    assert f"  --> {copy}:" in report
    assert "= help: " in report


def test_distinction_without_its_counterpart_is_reported(kb: Run, copy: Path) -> None:
    link = "- `xid79-gpu-fallen-off-bus`: Does it hang without a message?"
    copy.write_text(copy.read_text().replace("## Distinguish\n", f"## Distinguish\n\n{link}", 1))
    report = kb("lint", copy).stdout.decode()
    assert "error[IDS404]: `xid79-gpu-fallen-off-bus` does not say how it is told" in report


def test_thief_is_named(kb: Run, copy: Path) -> None:
    theirs = next(Path("incidents").glob("*/xid79-gpu-fallen-off-bus.md")).read_text()
    evidence = theirs.split("## Evidence\n\n")[1].split("```\n")[0] + "```\n\n"
    copy.write_text(copy.read_text().replace("## Evidence\n\n", f"## Evidence\n\n{evidence}", 1))
    report = kb("lint", copy).stdout.decode()
    assert "error[EVD301]: this evidence finds `xid79-gpu-fallen-off-bus` first" in report


def test_two_files_with_one_id_are_reported(kb: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{FOUNDING}.md").write_text(SOURCE.read_text())
    assert "error[IDS401]" in kb("lint", tmp_path).stdout.decode()


@pytest.mark.parametrize("name", ["missing.md", "empty"])
def test_nothing_to_check_is_wrong_use(kb: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    run = kb("lint", tmp_path / name)
    assert run.returncode == 2
    assert name.encode() in run.stderr


def test_store_that_another_version_left_is_made_again(kb: Run, copy: Path, tmp_path: Path) -> None:
    assert kb("lint", copy, cache=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "lint" / "index.sqlite")) as connection:
        connection.execute("UPDATE meta SET value = 1 WHERE key = 'schema'")
        connection.execute("DROP TABLE tags")
        connection.commit()
    run = kb("lint", copy, cache=tmp_path)
    assert (run.returncode, run.stdout) == (0, b""), run.stderr.decode()
