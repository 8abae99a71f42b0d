"""Read-only commands of records are run as they are written, or not at all."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from pathlib import Path

import pytest

from kb.check import Check, Command, Place, Risk
from kb.corpus.base import KnowledgeBase
from kb.errors import IncidentError, RunError
from kb.incident import Incident, Step
from kb.markdown import read, render
from kb.paths import packaged_incidents
from kb.run import MAX_BYTES, Plan, Program, execute, plan_check, plan_step, why_off
from kb.settings import Settings

PYTHON = shlex.quote(sys.executable)


def step(command: str, *, read_only: bool = True, language: str = "sh") -> Step:
    """A step with a command."""
    return Step("Look.", command, language, read_only=read_only)


def python(code: str) -> Plan:
    """A plan that runs Python code."""
    return Plan(((Program((sys.executable, "-c", code)),),))


def run(plan: Plan, seconds: float = 20) -> str:
    """What a plan prints, without the line of its command."""
    return execute(plan, threading.Event(), seconds).text.partition("\n")[2]


def test_a_command_is_run_with_its_arguments_and_shown_as_executed() -> None:
    plan = plan_step(step("df -h /"))
    assert plan.lines == ((Program(("df", "-h", "/")),),)
    output = execute(plan, threading.Event())
    assert output.text.startswith("$ df -h /\n")
    assert "Filesystem" in output.text
    assert output.notes == ()


def test_lines_are_run_one_after_the_other() -> None:
    command = "echo one; echo 'a;b' ;\n\necho \\\n  'two;  $HOME'"
    output = execute(plan_step(step(command)), threading.Event())
    assert output.text == ("$ echo one\none\n$ echo 'a;b'\na;b\n$ echo 'two;  $HOME'\ntwo;  $HOME")


def test_programs_are_piped_into_each_other() -> None:
    command = r"printf '%s\n' b 'a|c' d | sort | head -2"
    assert run(plan_step(step(command))) == "a|c\nb"
    assert str(plan_step(step(command))) == command


def test_who_prints_without_end_into_a_pipe_ends_with_its_reader() -> None:
    output = execute(plan_step(step("yes | head -2")), threading.Event())
    assert output.text == "$ yes | head -2\ny\ny"
    assert output.notes == ()


def test_errors_are_shown_dropped_or_piped_as_the_record_says() -> None:
    gone = "cat /does/not/exist"
    assert "No such file" in run(plan_step(step(f"{gone} | sort")))
    assert run(plan_step(step(f"{gone} 2>/dev/null | sort"))) == ""
    assert run(plan_step(step(f"{gone} 2>&1 | grep -c 'No such file'"))) == "1"
    assert run(plan_step(step("echo '2>/dev/null'"))) == "2>/dev/null"


def test_all_programs_of_a_pipe_are_ended(tmp_path: Path) -> None:
    left = tmp_path / "pids"
    code = (
        "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()} ');"
        "print('begun', flush=True); time.sleep(600)"
    )
    program = f"{PYTHON} -c {shlex.quote(code)} {left}"
    output = execute(plan_step(step(f"{program} | {program}")), threading.Event(), 3)
    assert output.notes == ("stopped because it took too long",)
    assert all(is_gone(int(pid)) for pid in left.read_text().split())
    assert len(left.read_text().split()) == 2


@pytest.mark.parametrize(
    "command",
    [
        "df || rm x", "df && rm x", "df & rm x", "df > x", "df < x", "echo $(id)",
        "df | | head", "| df", "df |", "df |& head", "df 2>x", "df 2>/dev/nullx", "df 3>/dev/null",
        "df >/dev/null 2>&1", "df | xargs rm", "df | sudo tee x", "df; bash x", "df | X=1 head",
        "echo `id`", "echo $HOME", 'echo "$HOME"', 'echo "`id`"', "ls *", "ls ?", "ls [a]",
        "ls {a,b}", "cat ~/x", "# df", "X=1 df", "bash -c df", "/bin/sh -c df", "sudo df",
        "env df", "ssh node df", "srun df", "kubectl exec POD -- df", "docker run image",
        "echo 'a' $'b'", "echo \\$HOME", "echo 'open", "df\nrm x > y",
        "timeout 5 bash -c df", "nice sh -c df", "stdbuf -o0 env df", "strace -f /bin/sh -c df",
        "script -c df", "systemd-run df", "flock x df", "command df",
    ],
)  # fmt: skip
def test_what_needs_a_shell_or_runs_other_commands_is_refused(command: str) -> None:
    with pytest.raises(RunError):
        plan_step(step(command))


def test_what_its_record_does_not_mark_is_refused() -> None:
    with pytest.raises(RunError, match="does not mark this command as read-only"):
        plan_step(step("df", read_only=False))
    with pytest.raises(RunError, match="no command"):
        plan_step(Step("Look."))
    with pytest.raises(RunError, match="python"):
        plan_step(step("print(1)", language="python"))


def test_the_mark_stands_behind_the_language_and_is_written_again(tmp_path: Path) -> None:
    text = Path("tests/tui/incidents/shm-too-small.md").read_text()
    record = read(Path("tests/tui/incidents/shm-too-small.md"))
    assert isinstance(record, Incident)
    assert [one.read_only for one in record.body.fix] == [True, False, False]
    assert [one.language for one in record.body.fix][:2] == ["sh", "sh"]
    assert "```sh read-only\n" in render(record)
    wrong = tmp_path / "shm-too-small.md"
    wrong.write_text(text.replace("sh read-only", "sh harmless"))
    with pytest.raises(IncidentError, match="marked as 'harmless'"):
        read(wrong)


@pytest.mark.slow
def test_of_the_shipped_checks_only_read_only_ones_are_run(knowledge: KnowledgeBase) -> None:
    runnable = []
    for check in knowledge.guides.by_id.values():
        if not isinstance(check, Check):
            continue
        try:
            plan_check(check, check.command(Place.BARE))
        except RunError:
            continue
        runnable.append(check)
    assert len(runnable) >= 30
    assert all(check.header.cost.risk is Risk.READ_ONLY for check in runnable)


@pytest.mark.slow
def test_each_shipped_step_that_is_marked_can_be_planned(knowledge: KnowledgeBase) -> None:
    steps = [one for record in knowledge.incidents() for one in record.body.fix]
    marked = [one for one in steps if one.read_only]
    assert len(marked) > 50
    for one in marked:
        assert plan_step(one).lines


def test_placeholders_are_filled_as_one_argument() -> None:
    plan = plan_step(step("ps -o pid,stat -p PID /proc/PID/status --node=NODE -d ECC,POWER"))
    assert plan.placeholders == ("PID", "NODE")
    filled = plan.filled({"PID": "12; rm x", "NODE": ""})
    assert filled.lines[0][0].words[3:] == (
        "-p", "12; rm x", "/proc/12; rm x/status", "--node=NODE", "-d", "ECC,POWER",
    )  # fmt: skip


@pytest.mark.parametrize("value", ["-delete", "a\nb", "\x1b[31m"])
def test_a_value_that_is_an_option_or_no_text_is_refused(value: str) -> None:
    with pytest.raises(RunError, match="PID cannot be"):
        plan_step(step("ps -p PID")).filled({"PID": value})


def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    left = tmp_path / "pid"
    code = (
        "import subprocess, sys, time;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        f"open({str(left)!r}, 'w').write(str(child.pid)); print('begun', flush=True);"
        "time.sleep(600)"
    )
    output = execute(python(code), threading.Event(), 3)
    assert output.text.endswith("begun")
    assert output.notes == ("stopped because it took too long",)
    assert is_gone(int(left.read_text()))


def test_what_is_left_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    left = tmp_path / "pid"
    code = (
        "import subprocess, sys;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        f"open({str(left)!r}, 'w').write(str(child.pid)); print('done', flush=True)"
    )
    output = execute(python(code), threading.Event())
    assert output.text.endswith("done")
    assert output.notes == ()
    assert is_gone(int(left.read_text()))


def is_gone(pid: int) -> bool:
    """Whether a process has ended. Whoever takes over orphans reaps it a moment later."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_endless_output_is_cut() -> None:
    output = execute(python("while True: print('x' * 1000)"), threading.Event())
    assert len(output.text) <= MAX_BYTES + 1_000
    assert output.notes == (f"stopped after {MAX_BYTES:,} bytes of output",)


def test_control_characters_are_taken_out() -> None:
    printed = run(python(r"print('\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J bell\x07')"))
    assert "red" in printed
    assert not [character for character in printed if not character.isprintable()]


def test_there_is_no_input_and_no_terminal() -> None:
    code = "import sys; print(repr(sys.stdin.read())); open('/dev/tty')"
    printed = run(python(code))
    assert printed.startswith("''")
    assert "OSError" in printed


def test_what_a_program_says_of_its_failure_is_output_too() -> None:
    assert "No such file" in run(plan_step(step("cat /does/not/exist")))


def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(RunError, match="cannot run no-such-program here: No such file"):
        run(plan_step(step("no-such-program")))
    with pytest.raises(RunError, match="cannot run no-such-program here: No such file"):
        run(plan_step(step("yes | no-such-program | head")))


def test_a_run_can_be_stopped() -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(RunError, match="stopped"):
        execute(python("import time; time.sleep(600)"), stop)


def test_commands_are_only_run_at_a_terminal_and_if_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert "at a terminal" in why_off(Settings())
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert why_off(Settings()) == ""
        assert "run = false" in why_off(Settings(run=False))
    os.close(ours)


def test_the_command_of_a_check_is_the_one_that_is_told() -> None:
    check = read(packaged_incidents() / "checks" / "nvidia-smi-nvlink-e.md")
    assert isinstance(check, Check)
    told = "nvidia-smi nvlink -e | head"
    assert str(plan_check(check, Command(Place.BARE, told))) == told
    with pytest.raises(RunError, match="copy"):
        plan_check(check, Command(Place.BARE, "nvidia-smi nvlink -e > errors"))
