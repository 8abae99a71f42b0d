"""The other commands, as a user calls them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kb import __version__
from kb.cli import COMMANDS
from tests.conftest import Run, environment
from tests.e2e.conftest import RECORDS, Small

FOUNDING = "gpt-fast-intra-node-comm-hang"


def test_version(kb: Run) -> None:
    assert kb("--version").stdout.decode() == f"kb {__version__}\n"


def test_help_names_every_command(kb: Run) -> None:
    text = kb("--help").stdout.decode()
    for command, does in COMMANDS.items():
        assert command in text
        assert does in text


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_has_help(kb: Run, command: str) -> None:
    run = kb(command, "--help")
    assert run.returncode == 0
    assert run.stdout.startswith(b"Usage: kb ")


def test_every_command_is_on_the_command_page() -> None:
    page = Path("docs/commands.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"`kb {command}" in page


def test_unknown_command_is_one_sentence(kb: Run) -> None:
    run = kb("aks")
    assert run.returncode == 2
    assert b"aks" in run.stderr


def test_show_in_a_pipe_is_the_file(kb: Run) -> None:
    file = next(Path("incidents").glob(f"*/{FOUNDING}.md"))
    assert kb("show", FOUNDING).stdout == file.read_bytes()


def test_show_of_an_unknown_id_suggests_near_ones(kb: Run) -> None:
    run = kb("show", "gpt-fast-intranode-comm-hang")
    assert run.returncode == 2
    assert FOUNDING.encode() in run.stderr


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "", "*"])
def test_show_cannot_leave_the_library(kb: Run, name: str) -> None:
    run = kb("show", name)
    assert (run.returncode, run.stdout) == (2, b"")


def test_list_in_a_pipe_has_a_line_an_incident(kb: Run) -> None:
    lines = kb("list").stdout.decode().splitlines()
    assert len(lines) == len(RECORDS)
    fields = next(line.split("\t") for line in lines if line.startswith(FOUNDING))
    assert fields[1] == "incident"
    assert "gpt-fast" in fields[2].split(",")


def test_doctor_finds_a_good_installation_good(kb: Run) -> None:
    run = kb("doctor")
    assert run.returncode == 0, run.stdout
    text = run.stdout.decode()
    assert "BAD" not in text
    for word in ("incidents", "encoder", "sqlite", "cache", "index"):
        assert word in text


def test_doctor_names_a_broken_incident(kb: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text("no front matter\n")
    run = kb("doctor", "--incidents", tmp_path)
    assert run.returncode == 1
    assert b"BAD" in run.stdout
    assert b"kb lint" in run.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(kb: Run, shell: str) -> None:
    assert b"_KB_COMPLETE" in kb("completion", shell).stdout


def test_completion_completes_commands(kb: Run) -> None:
    run = kb(
        env={"_KB_COMPLETE": "bash_complete", "COMP_WORDS": "kb sh", "COMP_CWORD": "1"},
    )
    assert run.stdout == b"plain,show\n"


def test_a_mark_at_the_beginning_of_a_file_is_no_part_of_it(kb: Run, tmp_path: Path) -> None:
    """Editors of Windows write one."""
    config, records = tmp_path / "config.toml", tmp_path / "records"
    records.mkdir()
    config.write_text(f"incidents = ['{records}']\n", encoding="utf-8-sig")
    source = next(Path("incidents").glob(f"*/{FOUNDING}.md")).read_text(encoding="utf-8")
    (records / "our-own.md").write_text(source.replace(FOUNDING, "our-own"), encoding="utf-8-sig")
    assert b"our-own\t" in kb("list", env={"KB_CONFIG": str(config)}).stdout


def test_wrong_configuration_is_one_sentence(kb: Run, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("incidnets = []\n")
    run = kb("ask", "x", env={"KB_CONFIG": str(config)})
    assert run.returncode == 2
    assert b"incidnets" in run.stderr
    assert b"Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("place", "said"), [("/dev/zero", b"it is not a regular file"), (".", b"Is a directory")]
)
def test_a_configuration_that_is_no_file_is_one_sentence(kb: Run, place: str, said: bytes) -> None:
    run = kb("ask", "x", env={"KB_CONFIG": place})
    assert run.returncode == 2
    assert run.stderr.endswith(said + b"\n")


def test_configuration_adds_directories(kb: Run, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    (tmp_path / "team").mkdir()
    source = next(Path("incidents").glob(f"*/{FOUNDING}.md")).read_text()
    (tmp_path / "team" / "our-own.md").write_text(source.replace(FOUNDING, "our-own"))
    config.write_text(f'incidents = ["{tmp_path / "team"}"]\n')
    assert b"our-own\t" in kb("list", env={"KB_CONFIG": str(config)}).stdout


WITHOUT_MODELS = """
import sys
from kb.__main__ import main
sys.modules["sentence_transformers"] = None
main()
"""


def test_other_model_without_the_extra_says_what_to_install(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_MODELS, "ask", "x"],
        capture_output=True,
        check=False,
        env=environment(tmp_path, KB_MODEL="no/such-model"),
    )
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)
    assert b"pip install 'incident-kb[models]'" in run.stderr


@pytest.mark.parametrize("model", [b"\xff", b"x\x1b]0;y\x07", "x\u202e".encode()])
def test_a_model_that_is_no_text_is_one_sentence(kb: Run, model: bytes) -> None:
    run = kb("ask", "x", env={"KB_MODEL": os.fsdecode(model)})
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)
    assert b"KB_MODEL" in run.stderr
    assert b"\x1b" not in run.stderr


def test_a_model_of_the_configuration_that_is_no_text_is_one_sentence(
    kb: Run, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text('model = "\\u0000"\n')
    run = kb("ask", "x", env={"KB_CONFIG": str(tmp_path / "config.toml")})
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)
    assert b"config.toml" in run.stderr


def test_records_in_a_directory_of_any_name_are_used(kb: Run, tmp_path: Path) -> None:
    team = tmp_path / os.fsdecode(b"team\xff")
    team.mkdir()
    source = next(Path("incidents").glob(f"*/{FOUNDING}.md")).read_text()
    (team / "our-own.md").write_text(source.replace(FOUNDING, "our-own"))
    run = kb("ask", "--incidents", team, "--json", "x")
    assert (run.returncode, run.stderr) == (1, b"")


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE"])
def test_a_pipe_gets_no_colour(kb: Run, variable: str) -> None:
    run = kb("ask", "NCCL WARN Error: failed to extend /dev/shm/nccl-Qx", env={variable: "1"})
    assert run.stdout
    assert b"\x1b" not in run.stdout + run.stderr


def test_closed_pipe_is_no_error(small_installation: Small) -> None:
    line = f"{sys.executable} -m kb list | head -n 1; exit ${{PIPESTATUS[0]}}"
    run = small_installation.kb(program=("bash", "-c", line))
    assert (run.stderr, run.stdout.count(b"\n")) == (b"", 1)
    assert run.returncode in (0, 128 + signal.SIGPIPE)
