"""Nothing leaves the machine: the whole command set without a network, watched for sockets, with a
home in which nobody else leaves anything either."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import copy_cache
from tests.e2e.conftest import QUESTION, Small

COMMANDS = (
    ["ask"],
    ["ask", "--json", "-f", "xid.log"],
    ["chat", "-f", "xid.log"],
    ["classify", "xid.log", "incidents", "--jobs", "2", "--format", "html"],
    ["show", "xid79-gpu-fallen-off-bus"],
    ["list"],
    ["collect"],
    ["new", "--from-log", "xid.log", "-o", "draft.md"],
    ["lint"],
    ["lint", "--fix", "draft.md"],
    ["diff", "HEAD"],
    ["eval", "reports.jsonl"],
    ["index", "--rebuild"],
    ["doctor"],
    ["--version"],
)

GIT_USER = ("-c", "user.name=on-call", "-c", "user.email=on-call@example.org")

WATCHER = """
import os, sys
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        os.write(2, f"NETWORK {event} {arguments}".encode())
        os._exit(97)
sys.addaudithook(watch)
"""
"""Sees what Python does; strace sees what native code does."""


@pytest.fixture
def watched(small_installation: Small, tmp_path: Path) -> Small:
    """An installation of its own whose Python stops at the first use of the network."""
    home = Path(shutil.copytree(small_installation.home, tmp_path / "home"))
    (home / "sitecustomize.py").write_text(WATCHER)
    (home / "incidents" / "checks").mkdir()
    shutil.copy("incidents/checks/free-h.md", home / "incidents" / "checks")  # for kb collect
    text = "NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus."
    (home / "xid.log").write_text(f"{text}\n")
    case = {"text": text, "relevant": ["xid79-gpu-fallen-off-bus"], "kind": "log"}
    (home / "reports.jsonl").write_text(json.dumps(case))
    for command in ("init", "add incidents", "commit -m records"):
        subprocess.run(["git", *GIT_USER, *command.split()], cwd=home, check=True)
    cache = copy_cache(small_installation.cache, tmp_path / "cache")
    return Small(home, cache)


def without_network() -> tuple[str, ...]:
    if shutil.which("unshare"):
        for form in (("unshare", "--user", "--map-root-user", "--net"), ("unshare", "--net")):
            if not subprocess.run([*form, "true"], capture_output=True).returncode:
                return form
    return ()


def traced(trace: Path) -> tuple[str, ...]:
    form = ("strace", "-f", "-qq", "-e", "trace=%network", "-o", str(trace))
    able = shutil.which("strace") and not subprocess.run([*form, "true"]).returncode
    return form if able else ()


def test_the_watcher_watches(watched: Small) -> None:
    code = "import socket; socket.getaddrinfo('localhost', 80)"
    run = watched.kb(program=(sys.executable, "-c", code))
    assert run.returncode == 97


@pytest.mark.slow
def test_no_command_opens_a_socket_or_leaves_anything_elsewhere(
    watched: Small, tmp_path: Path
) -> None:
    trace, owner = tmp_path / "trace", tmp_path / "owner"
    owner.mkdir()
    before = (*without_network(), *traced(trace))
    for command in COMMANDS:
        program = (*before, sys.executable, "-m", "kb", *command)
        said = b"why\nquit\n" if command[0] == "chat" else QUESTION
        env = {"HOME": str(owner), "XDG_CACHE_HOME": str(owner / "cache")}
        run = watched.kb(program=program, stdin=said, env=env)
        assert run.returncode in (0, 1), (command, run.stderr)
        assert b"NETWORK" not in run.stderr, command
        assert b"Traceback" not in run.stderr, command
        assert not list(owner.iterdir()), command
        if trace.exists():
            assert not re.findall(r"(?:connect|send\w+)\(.*AF_INET.*", trace.read_text()), command
            trace.unlink()


@pytest.mark.slow
def test_a_process_that_lives_on_stays_silent(watched: Small, tmp_path: Path) -> None:
    """Native libraries report in the background, some seconds after they were loaded."""
    trace = tmp_path / "trace"
    if not traced(trace):
        pytest.skip("this machine has no strace, or does not let it trace")
    code = (
        "import time\n"
        "from kb.diagnosis import diagnose\n"
        "from kb.corpus.base import KnowledgeBase\n"
        "from kb.log import Log\n"
        "from kb.settings import Settings\n"
        "with KnowledgeBase.open(Settings()) as knowledge:\n"
        "    diagnose(Log.from_text('NCCL hangs'), knowledge)\n"
        "    time.sleep(8)\n"
    )
    run = watched.kb(program=(*traced(trace), sys.executable, "-c", code))
    assert run.returncode == 0, run.stderr
    assert "AF_INET" not in trace.read_text()
