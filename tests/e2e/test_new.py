"""`kb new`: a draft tells what the log tells, marks the rest, and becomes a record."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kb.contribute.draft import draft_record, save
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.incident import Incident
from kb.log import Log
from kb.markdown import read
from tests.conftest import Run
from tests.e2e.conftest import Small

JOB = Path("benchmarks/jobs/tts-vocoder/logs")
TOKEN = "hf_" + "a1B2c3" * 6
LOG = f"""\
2026-11-21 03:01:22,415 trainer.py:88 INFO starting on dgx-a17.corp.example.com, world_size=16
HF_TOKEN={TOKEN} NCCL_DEBUG=INFO torchrun train.py
dgx-a17:311:402 [3] NCCL INFO Using network Socket 10.41.7.93:50112
PyTorch version 2.4.1
2026-11-21 03:02:10,007 loader.py:41 ERROR fetch of /mnt/acme/shards/7.tar with token={TOKEN} failed
Traceback (most recent call last):
  File "/home/jdoe/train/loader.py", line 41, in fetch
quuxstore.FrobnicatorError: lease of shard 7 expired while reading from 10.41.7.93
"""


def finish(path: Path) -> None:
    """Write what a person would, in the place of every mark."""
    text = path.read_text()
    text = text.replace("https://TODO:where-the-facts-come-from", "https://example.org/thread")
    text = text.replace("systems: [todo]", "systems: [linux]")
    path.write_text(re.sub(r"TODO: ([^'\n]*)", r"the word on \1", text))


def drafted(log: Path, knowledge: KnowledgeBase) -> Incident:
    return draft_record(diagnose(Log.from_paths([log]), knowledge), knowledge)


def codes(report: bytes) -> set[str]:
    return set(re.findall(r"\[([A-Z]+\d+)\]", report.decode()))


@pytest.mark.slow
@pytest.mark.parametrize("job", ["tts-vocoder", "poro-fe"])
def test_finished_draft_is_accepted_and_found_first(
    shipped_kb: Run, tmp_path: Path, job: str
) -> None:
    logs = Path("benchmarks/jobs", job, "logs")
    run = shipped_kb("new", "--from-log", logs, "--incidents", tmp_path)
    path = Path(run.stdout.decode().strip())
    assert (run.returncode, path.parent) == (0, tmp_path), run.stderr
    assert codes(shipped_kb("lint", path).stdout) == {"DFT501"}
    finish(path)
    lint = shipped_kb("lint", path)
    assert lint.returncode == 0, lint.stdout.decode()
    cache = tmp_path / "cache"
    answer = shipped_kb(
        "ask", "-f", logs, "--json", "--incidents", tmp_path, cache=cache
    ).stdout.decode()
    assert f'"id": "{path.stem}"' in answer.split('"fix"')[0]


@pytest.mark.slow
def test_what_is_left_is_named_with_its_line(kb: Run, tmp_path: Path) -> None:
    run = kb("new", "--from-log", JOB, "-o", tmp_path / "prefetch-stops.md")
    lines = (tmp_path / "prefetch-stops.md").read_text().split("\n")
    assert "id: prefetch-stops" in lines
    named = re.findall(r"line (\d+): ([\w ]+):", run.stderr.decode())
    assert " ".join(where for _line, where in named) == (
        "title hardware references aliases Symptom Environment Cause Fix Verify"
    )
    assert all("TODO:" in lines[int(line) - 1] for line, _where in named)
    report = kb("lint", tmp_path / "prefetch-stops.md").stdout.decode()
    for line, where in named:
        assert f"error[DFT501]: `{where}` still has a TODO" in report
        assert f"prefetch-stops.md:{line}\n" in report


def test_secrets_hosts_addresses_and_people_stay_here(kb: Run, tmp_path: Path) -> None:
    run = kb("new", "--from-log", "-", "-o", tmp_path / "draft.md", stdin=LOG.encode())
    assert run.returncode == 0, run.stderr
    text = (tmp_path / "draft.md").read_text()
    for private in (TOKEN, "dgx-a17", "10.41.7.93", "jdoe", "acme", "corp.example"):
        assert private not in text
    assert "token=<secret: hugging face token> failed" in text
    assert (
        "quuxstore.FrobnicatorError: lease of shard 7 expired while reading from 10.0.0.1" in text
    )
    assert "pytorch: any" in text
    assert "Seen with pytorch 2.4.1" in text
    assert "`NCCL_DEBUG=INFO`" in text
    assert "'quuxstore.FrobnicatorError: lease of shard'\n  strength: strong" in text


@pytest.mark.slow
def test_two_drafts_are_no_duplicates(shipped_kb: Run, tmp_path: Path) -> None:
    for name, line in (("a", "AbacusError: bead 7 is stuck"), ("b", "LoomError: thread is torn")):
        log = f"step 1 loss 2.0\nTraceback (most recent call last):\n{line}\n".encode()
        path = tmp_path / f"{name}.md"
        assert shipped_kb("new", "--from-log", "-", "-o", path, stdin=log).returncode == 0
    assert codes(shipped_kb("lint", tmp_path).stdout) == {"DFT501"}


def test_nothing_is_overwritten(kb: Run, tmp_path: Path) -> None:
    first = tmp_path / "first.md"
    assert kb("new", "--from-log", JOB, "-o", first).returncode == 0
    before = first.read_bytes()
    run = kb("new", "--from-log", JOB, "-o", first)
    assert (run.returncode, first.read_bytes()) == (2, before)
    assert b"exists" in run.stderr


def test_file_of_the_next_free_name_has_its_id(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    record = drafted(JOB, knowledge)
    path = tmp_path / f"{record.id}.md"
    first, second = (save(record, path) for _time in range(2))
    assert second.stem == f"{first.stem}-2"
    assert [read(file).id for file in (first, second)] == [first.stem, second.stem]


def test_draft_of_a_known_incident_steals_nothing(knowledge: KnowledgeBase) -> None:
    record = drafted(Path("benchmarks/samples/nccl-shm.log"), knowledge)
    assert record.header.signatures == ()


@pytest.mark.slow
def test_signatures_are_literal_and_silent_on_healthy_jobs(knowledge: KnowledgeBase) -> None:
    jobs = [file.parent for file in sorted(Path("benchmarks/jobs").glob("*/truth.json"))]
    failed = {job: json.loads((job / "truth.json").read_text())["failed"] for job in jobs}
    calm = "".join(
        file.read_text(errors="replace")
        for job in jobs
        if not failed[job]
        for file in sorted(job.glob("logs/**/*"))
        if file.is_file()
    )
    proposed = 0
    for job in [job for job in jobs if failed[job]][::4]:
        record = drafted(job / "logs", knowledge)
        for signature in record.header.signatures:
            proposed += 1
            assert signature.pattern in record.body.evidence_text
            assert not re.search(r"\d|/|node-", signature.pattern)
            assert signature.pattern not in calm
    assert proposed > 5


def test_known_incident_is_pointed_out(kb: Run, tmp_path: Path) -> None:
    log = "benchmarks/samples/nccl-shm.log"
    run = kb("new", "--from-log", log, "-o", tmp_path / "x.md")
    assert b"matches `nccl-shm-too-small-container`" in run.stderr


def test_unknown_cluster_becomes_a_draft(kb: Run, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.log").write_text(f"step {number}\nFATAL quux {number} is frobbed\n")
    results = tmp_path / "night.jsonl"
    kb("classify", tmp_path / "1.log", tmp_path / "2.log", "--format", "jsonl", "-o", results)
    cluster = re.findall(r'"cluster":"(\w+)"', results.read_text())[0]
    options = ("--results", results, "-o", tmp_path / "quux.md")
    assert kb("new", "--from-cluster", cluster, *options).returncode == 0
    assert "FATAL quux 1 is frobbed" in (tmp_path / "quux.md").read_text()
    wrong = kb("new", "--from-cluster", "nonsense", "--results", results)
    assert wrong.returncode == 2
    assert cluster.encode() in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), b"--from-log"),
        (("--from-log", "missing.log"), b"missing.log"),
        (("--from-log", "-"), b"no text"),
        (("--from-cluster", "abc"), b"--results"),
    ],
)
def test_wrong_use_is_one_sentence(kb: Run, arguments: tuple[str, ...], reason: bytes) -> None:
    run = kb("new", *arguments)
    assert run.returncode == 2
    assert reason in run.stderr
    assert b"Traceback" not in run.stderr


def test_five_answers_on_a_terminal_open_the_editor(
    small_installation: Small, tmp_path: Path
) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\necho "edited $1" > "$1.seen"\n')
    editor.chmod(0o755)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kb", "new", "-o", str(tmp_path / "switch-off.md")],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=small_installation.home,
        env=small_installation.environment(VISUAL=str(editor)),
    )
    answers = ["A job hangs: the switch is off", "Nothing moves", "", "Turn it on", "nccl, slurm"]
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    printed, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    assert printed.decode().strip() == str(tmp_path / "switch-off.md")
    text = (tmp_path / "switch-off.md").read_text()
    assert "title: 'A job hangs: the switch is off'" in text
    assert "systems: [nccl, slurm]" in text
    assert "1. Turn it on" in text
    assert "TODO: the mechanism" in text
    assert (tmp_path / "switch-off.md.seen").exists()
    assert b": Cause: the mechanism" in told
    assert b"Nothing moves" not in told


def test_an_editor_that_cannot_be_read_is_one_sentence_and_the_draft_is_there(
    small_installation: Small, tmp_path: Path
) -> None:
    ours, theirs = pty.openpty()
    draft = tmp_path / "switch-off.md"
    process = subprocess.Popen(
        [sys.executable, "-m", "kb", "new", "-o", str(draft)],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=small_installation.home,
        env=small_installation.environment(VISUAL='editor "x'),
    )
    os.write(ours, b"The switch is off\nNothing moves\n\nTurn it on\nnccl\n")
    _printed, told = process.communicate(timeout=120)
    assert process.returncode == 2
    assert f"the draft is {draft}" in told.decode()
    assert b"Traceback" not in told
    assert draft.exists()
