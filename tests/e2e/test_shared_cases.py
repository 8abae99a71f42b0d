"""Cases of several servers in one PostgreSQL."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from tests.conftest import copy_cache
from tests.e2e.conftest import ANSWER, QUESTION, Small, wait_until
from tests.e2e.test_serve import JSON, Answer, Server, serving

psycopg = pytest.importorskip("psycopg")
PROGRAMS = (*Path("/usr/lib/postgresql").glob("*/bin"), *map(Path, os.get_exec_path()))
BIN = next((path for path in PROGRAMS if (path / "initdb").exists()), None)
pytestmark = [
    pytest.mark.xdist_group("cases"),
    pytest.mark.skipif(BIN is None, reason="needs PostgreSQL: apt-get install postgresql"),
]

PASSWORD = "p-of-the-tests"


class Database(msgspec.Struct, frozen=True):
    """A PostgreSQL of the tests alone."""

    home: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://kb:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def control(self, *arguments: str) -> None:
        """Start or stop it."""
        assert BIN
        options = f"-p {self.port} -k {self.home} -c listen_addresses=127.0.0.1 -c fsync=off"
        given = ("-D", str(self.home / "data"), "-l", str(self.home / "log"), "-w", "-o", options)
        _run(self.home, str(BIN / "pg_ctl"), *given, *arguments)

    def query(self, statement: str) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(statement)


def _run(home: Path, *command: str) -> None:
    """As another user: PostgreSQL refuses to run as root."""
    owner: Mapping[str, int] = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        owner = {"user": nobody.pw_uid, "group": nobody.pw_gid}
    subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, **owner)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    import tempfile

    home = Path(tempfile.mkdtemp(prefix="kb-pg-", dir="/tmp"))  # the name of a socket is short
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = Database(home, port)
    (home / "password").write_text(PASSWORD)
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for path in (home, home / "password"):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    assert BIN
    initdb = (str(BIN / "initdb"), "-D", str(home / "data"), "-U", "kb", "-A", "scram-sha-256")
    _run(home, *initdb, f"--pwfile={home / 'password'}", "-E", "UTF8")
    made.control("start")
    try:
        yield made
    finally:
        made.control("stop", "-m", "immediate")
        shutil.rmtree(home)


@pytest.fixture(scope="module")
def small(small_installation: Small, tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The small installation, with a cache of these tests alone."""
    own = tmp_path_factory.mktemp("shared") / "cache"
    return Small(small_installation.home, copy_cache(small_installation.cache, own))


@pytest.fixture(scope="module")
def two(
    small: Small, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    """Two servers that share nothing but the database."""
    states = [str(tmp_path_factory.mktemp("state")) for _ in range(2)]
    with (
        serving(small, KB_CASES_AT=database.url, KB_STATE=states[0]) as one,
        serving(small, "--workers", "2", KB_CASES_AT=database.url, KB_STATE=states[1]) as other,
    ):
        yield one, other
        assert not [file for state in states for file in Path(state).rglob("talks*")]


def say(server: Server, text: str, case: str | None = None) -> Answer:
    message = {"text": text} if case is None else {"text": text, "case": case}
    return server.ask("/v1/chat", json.dumps(message).encode(), JSON)


def test_a_case_goes_on_at_any_server(two: tuple[Server, Server]) -> None:
    one, other = two
    first = say(one, QUESTION.decode() + "\0é").json
    assert first["matches"][0]["id"] == ANSWER
    then = say(other, "how do I fix it?", first["case"])
    assert "--shm-size" in then.json["text"]
    assert say(one, "why?", first["case"]).status == 200
    assert say(other, "hello", "0" * 32).status == 404


@pytest.mark.slow
def test_a_case_expires(two: tuple[Server, Server], database: Database) -> None:
    one, other = two
    case = say(one, QUESTION.decode()).json["case"]
    assert say(other, "why?", case).status == 200
    database.query("UPDATE kb_message SET time = time - 24 * 3600 - 1")
    assert say(one, "why?", case).status == 404
    say(other, QUESTION.decode())  # whoever begins another one forgets it
    with psycopg.connect(database.url) as connection:
        kept = connection.execute("SELECT count(*) FROM kb_message WHERE case_id = %s", [case])
        assert kept.fetchone() == (0,)


@pytest.mark.slow
def test_two_messages_at_once_are_one_conflict(
    two: tuple[Server, Server], database: Database
) -> None:
    one, _other = two
    case = say(one, QUESTION.decode()).json["case"]
    from kb.serve.postgres_talks import PostgresTalks
    from kb.serve.refusal import RefusedError

    talks = PostgresTalks(database.url, print)
    said = talks.messages(case)
    talks.add(case, said, "why?")
    with pytest.raises(RefusedError, match="another message") as refused:
        talks.add(case, said, "and?")
    assert refused.value.status == 409


@pytest.mark.slow
def test_a_database_that_goes_away_costs_the_conversation_alone(
    two: tuple[Server, Server], database: Database
) -> None:
    one, _other = two
    case = say(one, QUESTION.decode()).json["case"]
    database.control("stop", "-m", "immediate")
    for server in two:
        for answer in (say(server, "why?", case), say(server, QUESTION.decode())):
            assert answer.status == 503
            assert "conversation cannot be kept" in answer.json["error"]
            assert PASSWORD not in answer.body.decode()
        text = {"Content-Type": "text/plain"}
        assert server.ask("/v1/diagnose", QUESTION, text).status == 200
        assert server.get("/readyz").status == 200
        assert server.process.poll() is None
    database.control("start")
    for server in two:
        wait_until(lambda: say(server, "why?", case).status == 200, "the case goes on")  # noqa: B023


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "history", "said"),
    [
        ("postgresql://kb:SECRET@127.0.0.1:1/kb", True, "cannot keep conversations in PostgreSQL"),
        ("postgresql://kb:SEC/RET@127.0.0.1:1/kb", True, "signs of the password"),
        ("postgresql://kb:SEC@RET@127.0.0.1:1/kb", True, "signs of the password"),
        ("postgresql://kb:SECRET@127.0.0.1:x/kb", True, "cannot keep conversations in PostgreSQL"),
        ("mysql://kb:SECRET@127.0.0.1/kb", True, "KB_CASES_AT is no URL; begin it with postgres"),
        ("postgresql://kb:SECRET@127.0.0.1:1/kb", False, "`history = false` keeps no cases"),
    ],
)
def test_where_no_case_can_be_kept_nobody_is_served(
    small: Small, tmp_path: Path, url: str, history: bool, said: str
) -> None:
    (tmp_path / "config.toml").write_text(f"history = {str(history).lower()}\n")
    env = {"KB_CASES_AT": url, "KB_CONFIG": str(tmp_path / "config.toml")}
    run = small.kb("serve", "--port", "0", env=env)
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1), run.stderr
    assert said.encode() in run.stderr
    assert b"SEC" not in run.stderr
    assert b"RET" not in run.stderr


def test_without_the_extra_it_says_what_to_install(small: Small, tmp_path: Path) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('not here')")
    path = f"{tmp_path}{os.pathsep}{small.home}"
    run = small.kb("serve", env={"PYTHONPATH": path, "KB_CASES_AT": "postgresql://x/y"})
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)
    assert b"pip install 'incident-kb[postgres]'" in run.stderr
