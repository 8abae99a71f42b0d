"""The package carries a built index: on an empty cache only what differs from it is encoded."""

from __future__ import annotations

import json
import re
import resource
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.conftest import environment
from tests.e2e.conftest import ANSWER, QUESTION, RECORDS, Small

pytestmark = pytest.mark.slow


PACK = """
from index.encoder import load_encoder
from kb.corpus.sync import pack_indexes

encoder = load_encoder()
pack_indexes(lambda: encoder)
"""


@pytest.fixture(scope="module")
def home(small_installation: Small, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small installation with a packed index, as a wheel installs it."""
    copy = tmp_path_factory.mktemp("packed") / "home"
    shutil.copytree(small_installation.home, copy)
    made = Small(copy, copy.parent / "unused").kb("-c", PACK, program=(sys.executable,))
    assert made.returncode == 0, made.stderr
    return copy


@pytest.fixture
def fresh(home: Path, tmp_path: Path) -> Small:
    """A copy of that installation, with an empty cache."""
    return Small(Path(shutil.copytree(home, tmp_path / "home")), tmp_path / "cache")


def packed(fresh: Small) -> Path:
    return fresh.home / "kb" / "index.sqlite.zst"


def record(fresh: Small, name: str) -> Path:
    return next(fresh.home.glob(f"incidents/*/{name}.md"))


def index(fresh: Small, *options: str | Path) -> dict[str, int]:
    """The figures that `kb index` prints of the incidents."""
    run = fresh.kb("index", *options)
    assert (run.returncode, run.stderr) == (0, b"")
    incidents = run.stdout.decode().splitlines()[0]
    return {name: int(count) for count, name in re.findall(r"(\d+) (\w+)", incidents)}


def first(run: subprocess.CompletedProcess[bytes]) -> str:
    assert run.returncode == 0, run.stderr
    return str(json.loads(run.stdout)["matches"][0]["id"])


def test_nothing_is_encoded_on_an_empty_cache(fresh: Small) -> None:
    counts = index(fresh)
    assert (counts["unchanged"], counts["added"], counts["passages"]) == (len(RECORDS), 0, 0)
    assert first(fresh.kb("ask", "--json")) == ANSWER


def test_the_first_question_is_answered(fresh: Small) -> None:
    run = fresh.kb("ask", "--json")
    assert (first(run), run.stderr) == (ANSWER, b"")


def test_of_a_teams_directory_only_its_own_records_are_encoded(
    fresh: Small, tmp_path: Path
) -> None:
    teams = [tmp_path / "one", tmp_path / "two"]
    for team in teams:
        team.mkdir()
        text = record(fresh, RECORDS[4]).read_text()
        new = text.replace(f"id: {RECORDS[4]}", f"id: zz-{team.name}")
        (team / f"zz-{team.name}.md").write_text(
            new.replace("## Symptom\n", "## Symptom\n\nOur.\n")
        )
    override = record(fresh, ANSWER).read_text().replace("\ntitle: ", "\ntitle: Ours, ")
    (teams[1] / f"{ANSWER}.md").write_text(override)
    options = [part for team in teams for part in ("--incidents", str(team))]
    counts = index(fresh, *options)
    assert (counts["unchanged"], counts["added"], counts["changed"]) == (len(RECORDS) - 1, 2, 1)
    assert 0 < counts["passages"] < 6
    answer = json.loads(fresh.kb("ask", "--json", *options).stdout)["matches"][0]
    assert answer["id"] == ANSWER
    assert answer["title"].startswith("Ours, ")


def test_records_that_are_changed_or_gone_are_not_those_of_the_package(fresh: Small) -> None:
    record(fresh, ANSWER).unlink()
    changed = record(fresh, RECORDS[4])
    changed.write_text(changed.read_text().replace("## Symptom\n", "## Symptom\n\nAgain.\n"))
    counts = index(fresh)
    assert (counts["removed"], counts["changed"], counts["unchanged"]) == (1, 1, len(RECORDS) - 2)
    assert ANSWER not in fresh.kb("ask", "--json").stdout.decode()


def test_rebuild_takes_nothing_from_the_package_and_answers_the_same(fresh: Small) -> None:
    seeded = json.loads(fresh.kb("ask", "--json").stdout)
    counts = index(fresh, "--rebuild")
    assert counts["added"] == len(RECORDS)
    assert counts["passages"] > 5
    assert json.loads(fresh.kb("ask", "--json").stdout)["matches"] == seeded["matches"]


def test_cache_that_cannot_be_written(fresh: Small, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.touch()
    run = fresh.kb("ask", "--json", env={"KB_CACHE": str(blocker / "cache")})
    assert first(run) == ANSWER
    assert b"in memory" in run.stderr
    assert b"Traceback" not in run.stderr


def test_damaged_index_of_the_package_is_ignored(fresh: Small) -> None:
    whole = packed(fresh).read_bytes()
    packed(fresh).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert index(fresh)["added"] == len(RECORDS)
    assert first(fresh.kb("ask", "--json")) == ANSWER


def test_damaged_cache_begins_with_the_package_again(fresh: Small) -> None:
    assert fresh.kb("index").returncode == 0
    fresh.vectors.write_bytes(b"x")
    run = fresh.kb("ask", "--json")
    assert first(run) == ANSWER
    assert b"rebuilding it" in run.stderr


def test_emptied_cache_begins_with_the_package_again(fresh: Small) -> None:
    assert fresh.kb("index").returncode == 0
    for file in fresh.cache.glob("*/*"):
        file.write_bytes(b"")
    assert index(fresh)["unchanged"] == len(RECORDS)
    assert first(fresh.kb("ask", "--json")) == ANSWER


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the system")
def test_disk_that_is_full_while_the_index_is_copied(fresh: Small) -> None:
    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    run = fresh.kb("ask", "--json", before=full)
    assert first(run) == ANSWER
    assert run.stderr.count(b"\n") == 1
    assert b"in memory" in run.stderr
    assert [path.name for path in fresh.cache.glob("index-*/*")] == ["lock"]


@pytest.mark.slow
def test_wheel_of_this_checkout_answers_at_once(tmp_path: Path) -> None:
    """Built and installed as a user does; nothing of this environment is used."""
    venv.create(tmp_path / "venv")
    program = str(tmp_path / "venv" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", program, "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, "-c", "constraints.txt", "."], check=True, timeout=1200)
    for command, expected in (("index", b" 0 passages encoded"), ("ask", ANSWER.encode())):
        run = subprocess.run(
            [program, "-m", "kb", command],
            input=QUESTION,
            capture_output=True,
            cwd=tmp_path,
            env=environment(tmp_path / "cache"),
            timeout=100,
        )
        assert (run.returncode, run.stderr) == (0, b"")
        assert expected in run.stdout
