"""A secret in a log is in nothing that `kb` writes."""

from __future__ import annotations

import html
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.history import History, Search
from kb.log import Log
from kb.service.handoff import HandOff, NoteTurn, to_json
from kb.settings import Settings
from kb.views.handoff import to_markdown
from tests.e2e.conftest import Small

pytestmark = pytest.mark.slow


SECRETS = {
    "token": "hf_" + "aB3dE6" * 6,
    "password": "correct-horse-7",
    "bytes": "plum-7-bytes",
    "argument": "fig;7&argv",
    "chinese": "li-7-zhi",
    "sentence": "quince-7!",
    "hook": "0a1b2c3d-7777-4444-9999-0123456789ab",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJyb290In0." + "Xy7" * 14,
}
"""Made here: none is real."""
NOW = datetime(2026, 11, 21, 3, 10, tzinfo=UTC)

LOG = f"""\
2026-11-21 03:00:00 INFO login with {SECRETS["token"]} done
[rank3]: RuntimeError: cannot reach https://me:{SECRETS["password"]}@store.example.org/x
[rank3]: Authorization: Bearer {SECRETS["jwt"]}
[rank3]: ConnectionError: cannot log in with password=b'{SECRETS["bytes"]}'
[rank3]: CalledProcessError: Command '['mysql', '-uroot', '-p{SECRETS["argument"]}', '-e', 'x']'
[rank3]: 错误：登录失败，密码：{SECRETS["chinese"]}，请检查
[rank3]: RuntimeError: login failed, the password is {SECRETS["sentence"]}
[rank3]: RuntimeError: POST https://open.feishu.cn/open-apis/bot/v2/hook/{SECRETS["hook"]} failed
[rank3]: QuuxError: the flange of {SECRETS["token"]} is not grommeted
"""
XID = f"[rank3]: NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus. {SECRETS['token']}\n"


def assert_none(text: str) -> None:
    assert not [kind for kind, secret in SECRETS.items() if secret in text]
    assert "<secret: " in html.unescape(text)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "unknown.log").write_text(LOG)
    (folder / "xid.log").write_text(XID)
    return folder


@pytest.mark.parametrize("form", ["jsonl", "csv", "html", "table"])
def test_results_of_a_batch(small_installation: Small, logs: Path, form: str) -> None:
    file = logs.parent / "results"
    for output in ([], ["-o", file]):
        run = small_installation.kb("classify", logs, "--jobs", "1", "--format", form, *output)
        assert run.returncode == 0, run.stderr
        assert_none((file.read_bytes() if output else run.stdout).decode())


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_evaluation_of_reports(
    small_installation: Small, tmp_path: Path, form: tuple[str, ...]
) -> None:
    wanted = ["nccl-shm-too-small-container"]
    reports = (
        {"id": f"log {SECRETS['token']}", "text": LOG + XID, "relevant": wanted, "kind": "log"},
        {"text": XID, "relevant": [], "kind": "log"},
    )
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, reports)))
    run = small_installation.kb("eval", tmp_path / "set.jsonl", *form)
    assert run.returncode == 0, run.stderr
    assert_none((run.stdout + run.stderr).decode())


def test_an_evaluation_of_jobs(small_installation: Small, tmp_path: Path) -> None:
    truth = {
        "id": "one",
        "layout": "x",
        "kind": "exception",
        "failed": True,
        "culprit_ranks": [3],
        "culprit_hosts": [],
    }
    (tmp_path / "jobs" / "one").mkdir(parents=True)
    (tmp_path / "jobs" / "one" / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "jobs" / "one" / "logs").mkdir()
    said = {0: "step 1\nstep 2\n", 3: f"step 1\nQuuxError: no login with {SECRETS['token']}\n"}
    for rank, text in said.items():
        (tmp_path / "jobs" / "one" / "logs" / f"rank_{rank}.log").write_text(text)
    run = small_installation.kb("eval", "--jobs", tmp_path / "jobs", "--json")
    assert run.returncode == 0, run.stderr
    assert_none(run.stdout.decode())


def test_an_answer_for_programs(small_installation: Small, logs: Path) -> None:
    run = small_installation.kb("ask", "--json", "-f", logs / "xid.log")
    assert_none((run.stdout + run.stderr).decode())


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_wrong_with_a_record(small_installation: Small, tmp_path: Path, form: str) -> None:
    """Each rule quotes the line that it is about."""
    record = next(Path("incidents").rglob("xid79-gpu-fallen-off-bus.md")).read_text()
    (tmp_path / "bad.md").write_text(f"{record}\n## Login with {SECRETS['token']}\n")
    run = small_installation.kb("lint", "--format", form, tmp_path / "bad.md")
    assert run.returncode == 1
    assert_none((run.stdout + run.stderr).decode())


def test_a_comparison_of_records(small_installation: Small, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for directory in (before, after):
        directory.mkdir()
    record = next(Path("incidents").rglob("xid79-gpu-fallen-off-bus.md")).read_text()
    new = record.replace("id: xid79-gpu-fallen-off-bus", "id: new")
    assert "```text\n" in new
    (after / "new.md").write_text(new.replace("```text\n", f"```text\n{XID}", 1))
    run = small_installation.kb("diff", before, "--incidents", after)
    assert_none((run.stdout + run.stderr).decode())


def test_a_draft(small_installation: Small, logs: Path, tmp_path: Path) -> None:
    log = logs / "unknown.log"
    run = small_installation.kb("new", "--from-log", log, "-o", tmp_path / "the-flange.md")
    assert run.returncode == 0, run.stderr
    assert_none((tmp_path / "the-flange.md").read_text())


def test_what_is_handed_on_and_kept(
    knowledge: KnowledgeBase, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_STATE", str(tmp_path / "state"))
    for text in (LOG, XID):
        diagnosis = diagnose(Log.from_text(text), knowledge)
        note = HandOff.of(diagnosis, NOW, [str(logs)], conversation=[NoteTurn("you", text)])
        assert_none(to_markdown(note))
        assert_none(to_json(note))
        History(Settings(), pytest.fail).add(Search.of(diagnosis, text, (str(logs),)))
    assert_none((tmp_path / "state" / "history.json").read_text())


@pytest.mark.parametrize("command", [("classify",), ("ask", "-f")], ids=["classify", "ask"])
def test_a_message_about_an_address(small_installation: Small, command: tuple[str, ...]) -> None:
    run = small_installation.kb(*command, f"ftp://me:{SECRETS['password']}@127.0.0.1:9/x.log")
    assert run.returncode == 2
    assert_none(run.stderr.decode())
