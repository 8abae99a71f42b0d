"""The index builds itself, follows changes, and survives being killed and used at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from filelock import FileLock

from tests.conftest import Run
from tests.e2e.conftest import ANSWER, PATIENCE_S, QUESTION, RECORDS, Small


def first(run: subprocess.CompletedProcess[bytes]) -> str:
    assert run.returncode == 0, run.stderr
    return str(json.loads(run.stdout)["matches"][0]["id"])


@pytest.fixture
def cache(small: Small) -> Path:
    """A built cache of one's own."""
    return small.cache


def team_record(directory: Path, **changes: str) -> Path:
    """A private record in a directory of its own; it overrides nothing unless it is told to."""
    source = next(Path("incidents").glob("*/xid79-gpu-fallen-off-bus.md")).read_text()
    name = changes.pop("id", "zz-team-lamp-is-red")
    text = source.replace("id: xid79-gpu-fallen-off-bus", f"id: {name}")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    directory.mkdir(exist_ok=True)
    path = directory / f"{name}.md"
    path.write_text(text)
    return path


def test_first_use_builds_the_index_and_answers(kb: Run, tmp_path: Path) -> None:
    run = kb("ask", "--json", stdin=QUESTION, cache=tmp_path / "nothing" / "yet")
    assert first(run) == ANSWER
    assert run.stderr == b""


def test_second_build_has_nothing_to_do(kb: Run, cache: Path) -> None:
    text = kb("index", cache=cache).stdout.decode()
    assert f"0 added, 0 changed, 0 removed, {len(RECORDS)} unchanged" in text
    assert "0 passages encoded" in text


@pytest.mark.slow
@pytest.mark.parametrize("command", [("ask", "--json"), ("list",), ("show", ANSWER)])
def test_a_broken_file_of_a_team_takes_no_shipped_record_away(
    kb: Run, cache: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / f"{ANSWER}.md").write_text(f"---\nid: {ANSWER}\ntitle: [broken\n---\n")
    run = kb(*command, "--incidents", str(tmp_path / "team"), stdin=QUESTION, cache=cache)
    assert run.returncode == 0
    assert ANSWER in run.stdout.decode()
    assert "[broken" not in run.stdout.decode()
    assert run.stderr.decode().count(f"team/{ANSWER}.md") == 1
    again = kb(*command, "--incidents", str(tmp_path / "team"), stdin=QUESTION, cache=cache)
    assert again.stderr.decode().count(f"team/{ANSWER}.md") == 1, "as long as it is broken"


def test_team_directory_adds_and_changed_files_are_found_at_once(
    kb: Run, cache: Path, tmp_path: Path
) -> None:
    team = tmp_path / "team"
    path = team_record(team)
    question = b"the flux capacitor of rack seven hums at 1.21 gigawatts\n"
    assert kb("ask", "--json", "--incidents", team, stdin=question, cache=cache).returncode == 1
    text = path.read_text()
    lines = "- pattern: flux capacitor of rack\n  strength: strong\n"
    path.write_text(text.replace("signatures:\n", f"signatures:\n{lines}", 1))
    run = kb("ask", "--json", "--incidents", team, stdin=question, cache=cache)
    assert first(run) == "zz-team-lamp-is-red"
    by_variable = kb("ask", "--json", stdin=question, cache=cache, env={"KB_INCIDENTS": str(team)})
    assert first(by_variable) == "zz-team-lamp-is-red"
    path.unlink()
    assert kb("ask", "--json", "--incidents", team, stdin=question, cache=cache).returncode == 1


@pytest.mark.slow
def test_same_id_in_a_later_directory_overrides(kb: Run, cache: Path, tmp_path: Path) -> None:
    team = tmp_path / "team"
    path = team_record(team, id="xid79-gpu-fallen-off-bus")
    title = next(line for line in path.read_text().splitlines() if line.startswith("title:"))
    path.write_text(path.read_text().replace(title, "title: Our own words for it"))
    run = kb("ask", "--json", "--incidents", team, "GPU has fallen off the bus Xid 79", cache=cache)
    assert json.loads(run.stdout)["matches"][0]["title"] == "Our own words for it"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## Cause", "## Because"),
        ("signatures:\n", "signatures:\n- pattern: (abc\n  strength: weak\n  regex: true\n"),
    ],
)
def test_broken_record_is_left_out_and_named(
    kb: Run, cache: Path, tmp_path: Path, old: str, new: str
) -> None:
    team = tmp_path / "team"
    path = team_record(team)
    path.write_text(path.read_text().replace(old, new, 1))
    run = kb("ask", "--json", "--incidents", team, stdin=QUESTION, cache=cache)
    assert first(run) == ANSWER
    assert b"zz-team-lamp-is-red.md" in run.stderr
    assert b"kb lint" in run.stderr


def start(small: Small, *arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "kb", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=small.home,
        env=small.environment(),
    )


@pytest.mark.slow
def test_killed_at_any_moment_the_last_good_index_answers(
    kb: Run, small: Small, tmp_path: Path
) -> None:
    cache = small.cache
    team = tmp_path / "team"
    path = team_record(team)
    kb("index", "--incidents", team, cache=cache)
    started = time.monotonic()
    path.write_text(path.read_text().replace("## Symptom\n", "## Symptom\n\nRound zero.\n"))
    kb("index", "--incidents", team, cache=cache)
    whole = time.monotonic() - started
    for number in range(12):
        text = path.read_text().replace("## Symptom\n", f"## Symptom\n\nRound {number}.\n", 1)
        path.write_text(text)
        process = start(small, "index", "--incidents", team)
        with suppress(subprocess.TimeoutExpired):
            process.wait(whole * number / 11)
        process.kill()
        process.communicate()
        run = kb("ask", "--json", "--incidents", team, stdin=QUESTION, cache=cache)
        assert first(run) == ANSWER
        assert b"damaged" not in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("made", ["lock", "index.sqlite"])
def test_killed_in_the_first_build_the_next_one_succeeds(
    small: Small, tmp_path: Path, made: str
) -> None:
    """As soon as the build has made a certain file."""
    new = Small(small.home, tmp_path / "new")
    process = start(new, "index")
    while not list(new.cache.glob(f"index-*/{made}")):
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.001)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert first(new.kb("ask", "--json")) == ANSWER


@pytest.mark.slow
def test_two_processes_build_and_ask_at_once(small: Small, tmp_path: Path) -> None:
    new = Small(small.home, tmp_path / "new")
    commands = [["index"], ["ask", "--json"], ["ask", "--json"], ["index", "--rebuild"]]
    processes = [start(new, *command) for command in commands]
    for command, process in zip(commands, processes, strict=True):
        output, error = process.communicate(QUESTION, timeout=300)
        assert process.returncode == 0, error
        if command[0] == "ask":
            assert json.loads(output)["matches"][0]["id"] == ANSWER


def test_cache_that_cannot_be_written_is_answered_from_memory(kb: Run, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a directory")
    run = kb("ask", "--json", stdin=QUESTION, cache=blocker / "cache")
    assert first(run) == ANSWER
    assert b"in memory" in run.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_cache_still_answers(kb: Run, cache: Path) -> None:
    for directory in [cache, *cache.iterdir()]:
        directory.chmod(0o555)
    try:
        assert first(kb("ask", "--json", stdin=QUESTION, cache=cache)) == ANSWER
    finally:
        for directory in [cache, *cache.iterdir()]:
            directory.chmod(0o755)


def test_a_wait_for_another_process_is_told(small: Small) -> None:
    with FileLock(small.index / "lock"):
        process = subprocess.Popen(
            [sys.executable, "-m", "kb", "index"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=small.home,
            env=small.environment(),
        )
        assert process.stderr is not None
        said = process.stderr.readline().decode()
        assert said == f"waiting for another process that builds the index in {small.index}\n"
        assert process.poll() is None
    assert process.communicate(timeout=PATIENCE_S)[1] == b""
    assert process.returncode == 0
