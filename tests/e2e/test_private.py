"""What `kb` writes is for the user alone, under any umask, unless a cache is said to be shared."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.conftest import ANSWER, QUESTION, Small

any_umask = pytest.mark.parametrize("umask", [0o000, 0o027, 0o277], ids=oct)


def _set(umask: int) -> None:
    os.umask(umask)


def modes(directory: Path) -> tuple[set[str], set[str]]:
    """Those of the directories, and those of the files."""
    found: tuple[set[str], set[str]] = ({oct(directory.stat().st_mode & 0o777)}, set())
    for path in directory.rglob("*"):
        found[path.is_file()].add(oct(path.stat().st_mode & 0o777))
    return found


@pytest.mark.slow
@any_umask
def test_all_that_is_written_is_for_the_user_alone(
    small_installation: Small, tmp_path: Path, umask: int
) -> None:
    home, log = tmp_path / "home", tmp_path / "a.log"
    log.write_bytes(QUESTION)
    own = {"KB_CACHE": str(home / "cache"), "KB_STATE": str(home / "state")}
    for words in (
        ["index"],
        ["classify", log, "--format", "csv", "-o", home / "out.csv", "--jobs", "1"],
        ["classify", log, "-o", home / "out.jsonl", "--jobs", "1"],
        ["new", "--from-log", log, "-o", home / "drafts" / "an-error.md"],
        ["lint", home / "drafts" / "an-error.md"],
    ):
        run = small_installation.kb(*words, env=own, before=lambda: _set(umask))
        assert run.returncode in (0, 1), run.stderr
    assert {path.name for path in home.iterdir()} >= {"cache", "drafts", "out.csv", "out.jsonl"}
    assert modes(home) == ({"0o700"}, {"0o600"})


@pytest.mark.slow
@any_umask
def test_a_shared_cache_is_for_all_whom_the_umask_lets_in(
    small_installation: Small, tmp_path: Path, umask: int
) -> None:
    cache, settings = tmp_path / "shared" / "cache", tmp_path / "config.toml"
    settings.write_text("shared_cache = true\n")
    own = {"KB_CACHE": str(cache), "KB_CONFIG": str(settings)}
    run = small_installation.kb("ask", "--json", env=own, before=lambda: _set(umask))
    assert ANSWER in run.stdout.decode()
    umask &= 0o077  # the user keeps the own rights
    assert modes(cache)[0] == {oct(0o755 & ~umask)}
    for path in cache.rglob("*.*"):  # not the lock, which holds nothing
        assert oct(path.stat().st_mode & 0o777) == oct(0o644 & ~umask), path


@pytest.mark.slow
def test_an_index_that_was_open_is_closed(small_installation: Small, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    own = {"KB_CACHE": str(cache)}
    assert small_installation.kb("index", env=own).returncode == 0
    for directory in cache.glob("index-*"):
        directory.chmod(0o755)
    assert small_installation.kb("index", env=own).returncode == 0
    assert modes(cache)[0] == {"0o700"}


@pytest.mark.slow
def test_a_directory_below_the_home_is_found_where_no_shell_expands_it(
    small_installation: Small, tmp_path: Path
) -> None:
    """A unit of systemd hands variables over as they stand."""
    own = {"HOME": str(tmp_path), "KB_CACHE": "~/cache"}
    assert small_installation.kb("index", env=own).returncode == 0
    assert list(tmp_path.glob("cache/index-*"))
