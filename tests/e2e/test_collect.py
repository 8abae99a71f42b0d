"""The script of `kb collect` runs for real in several shells, and `kb ask` reads what it leaves."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kb.collect import choose, to_script
from kb.corpus.directories import GuideDirectories
from kb.playbook import Playbook
from tests.conftest import Run
from tests.e2e.conftest import processes, wait_until

SHELLS = [
    shell for shell in (("dash",), ("bash",), ("busybox", "sh"), ("sh",)) if shutil.which(shell[0])
]

HANGS = """#!/bin/sh
sleep 1000 &
timeout 1000 sleep 1001
"""
"""A tool that never ends, with children in its group and in another one."""

SMALL_SHM = """---
id: {id}
title: A check of a test
kind: check
area: host
systems: [linux]
question: What does it print?
where: here
cost:
  seconds: 1
  risk: {risk}
needs_job: running
lost_by: [exit, restart]
alike: {alike}
recognise:
- never printed by anything
references:
- https://example.org
---

## Commands

### bare

```sh
{command}
```

## Normal

```text
never printed by anything
```

## Findings

### {id}-found

It says so.

- pattern: `(?m)^broken \\w+`

```text
never printed by anything, broken x
```
"""


class Nodes:
    """A directory of records and one of programs, and hosts that run the script."""

    def __init__(self, root: Path, kb: Run) -> None:
        self.root, self.kb = root, kb
        self.records = root / "records"
        self.programs = root / "programs"
        self.left = root / "left"
        for directory in (self.records, self.programs, self.left):
            directory.mkdir()

    def check(
        self, name: str, command: str, *, risk: str = "read-only", alike: bool = False
    ) -> None:
        text = SMALL_SHM.format(id=name, command=command, risk=risk, alike=str(alike).lower())
        (self.records / f"{name}.md").write_text(text)

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    def script(self, name: str | None = None) -> bytes:
        """For one of the checks here, or for all of them."""
        guides, problems = GuideDirectories(first=self.records).load()
        assert not problems
        record = next((guide for guide in guides if guide.id == name), None)
        return to_script(choose(guides, record), "a test").encode()

    def run(
        self,
        script: bytes,
        host: str = "node1",
        shell: tuple[str, ...] = ("sh",),
        env: Mapping[str, str] | None = None,
        **options: object,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run it as a host of this name; the archive stays in `left`."""
        self.program("hostname", f"#!/bin/sh\necho {host}\n")
        path = self.root / "collect.sh"
        path.write_bytes(script)
        return subprocess.run(
            [*shell, str(path)],
            cwd=self.left,
            capture_output=True,
            timeout=120,
            env={"PATH": f"{self.programs}:{os.environ['PATH']}", "HOME": "/", **(env or {})},
            **options,  # type: ignore[call-overload]
        )

    def archive(self, host: str = "node1") -> Path:
        (found,) = self.left.glob(f"kb-{host}-*")
        return found

    def texts(self, host: str = "node1") -> dict[str, str]:
        """What is in the archive of a host, by the last part of its name."""
        with tarfile.open(self.archive(host)) as archive:
            files = ((member.name, archive.extractfile(member)) for member in archive)
            return {Path(name).name: file.read().decode() for name, file in files if file}

    def ask(self, *arguments: str | Path) -> dict[str, object]:
        run = self.kb("ask", "--json", "--incidents", self.records, *arguments)
        assert run.returncode in (0, 1), run.stderr
        answer: dict[str, object] = json.loads(run.stdout)
        return answer


@pytest.fixture
def nodes(tmp_path: Path, shipped_kb: Run) -> Nodes:
    return Nodes(tmp_path, shipped_kb)


def running(words: str) -> list[str]:
    """The processes with these words in their command line."""
    texts = (
        text.replace(b"\0", b" ").decode(errors="replace") for _pid, text in processes("cmdline")
    )
    return [text for text in texts if words in text]


@pytest.fixture
def script(nodes: Nodes) -> bytes:
    """The one of the check `plain-check`."""
    nodes.check("plain-check", "echo broken thing; echo HF_TOKEN=hf_abcdefghijklmnop1234")
    return nodes.script("plain-check")


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_script_runs_in_each_shell(nodes: Nodes, script: bytes, shell: tuple[str, ...]) -> None:
    run = nodes.run(script, shell=shell)
    assert run.returncode == 0, run.stderr
    assert b"kb ask -f kb-*.tar.gz" in run.stdout
    assert nodes.texts()["plain-check.txt"].startswith("broken thing\n")
    assert nodes.archive().stat().st_mode & 0o077 == 0
    assert list(nodes.left.iterdir()) == [nodes.archive()]


def test_the_script_is_clean_for_a_plain_shell(shipped_kb: Run, tmp_path: Path) -> None:
    path = tmp_path / "collect.sh"
    path.write_bytes(shipped_kb("collect", "--for", "hang-mid-training").stdout)
    subprocess.run(["sh", "-n", str(path)], check=True)
    if shutil.which("shellcheck"):
        template = Path("kb/collect/collect.sh").read_text()
        path.write_text(template.replace("@CHECKS@", "    check x 1 - - </dev/null"))
        subprocess.run(["shellcheck", "-s", "sh", str(path)], check=True)


def test_the_script_may_come_by_standard_input(nodes: Nodes, script: bytes) -> None:
    nodes.program("hostname", "#!/bin/sh\necho node1\n")
    environment = {"PATH": f"{nodes.programs}:{os.environ['PATH']}", "KB_COLLECT_DIR": "."}
    subprocess.run(["sh", "-s"], input=script, cwd=nodes.left, env=environment, check=True)
    assert nodes.texts()["plain-check.txt"].startswith("broken thing\n")


def test_half_a_script_does_nothing(nodes: Nodes, script: bytes) -> None:
    run = nodes.run(script[: len(script) // 2])
    assert b"kb ask" not in run.stdout
    assert list(nodes.left.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_tool_that_hangs_is_ended_with_its_children_and_named(
    nodes: Nodes, shell: tuple[str, ...]
) -> None:
    nodes.program("hangs", HANGS.replace("100", str(os.getpid())))
    nodes.check("a-hanging-check", "echo before; hangs")
    nodes.check("b-same-tool", "hangs")
    nodes.check("c-other-tool", "echo broken thing")
    run = nodes.run(nodes.script(), shell=shell, env={"KB_COLLECT_LIMIT": "1"})
    assert run.returncode == 0, run.stderr
    texts = nodes.texts()
    assert texts["a-hanging-check.txt"] == "before\n"
    assert "stopped\ta-hanging-check\tdid not end within 1 s" in texts["collected"]
    assert "skipped\tb-same-tool\thangs did not end before" in texts["collected"]
    assert texts["c-other-tool.txt"] == "broken thing\n"
    assert not running(f"sleep {os.getpid()}")
    seen = nodes.ask("-f", nodes.archive())["observations"]
    assert isinstance(seen, list)
    assert any(
        one["check"] == "a-hanging-check" and "did not end within 1 s" in one["text"]
        for one in seen
    )


def test_what_is_left_out_is_said_with_its_reason(nodes: Nodes) -> None:
    nodes.check("needs-value", "echo PEER_IP")
    nodes.check("needs-tool", "no-such-tool-anywhere")
    nodes.check("starts-anew", "echo", risk="restarts")
    playbook = Path("incidents/playbooks/hang-mid-training.md").read_text()
    first, rest = playbook.split("## Checks\n", 1)
    steps = "".join(
        f"\n### {name}\n\nBecause.\n" for name in ("needs-value", "needs-tool", "starts-anew")
    )
    text = f"{first}## Checks\n{steps}\n## Causes\n{rest.split('## Causes')[1]}"
    (nodes.records / "hang-mid-training.md").write_text(text)
    written = nodes.kb("collect", "--incidents", nodes.records, "--for", "hang-mid-training")
    run = nodes.run(written.stdout)
    for reason in (
        b"needs-value: no PEER_IP is known here; KB_COLLECT_PEER_IP=... gives one",
        b"needs-tool: no-such-tool-anywhere is not on this host",
        b"starts-anew: it needs a new run; kb show starts-anew",
    ):
        assert reason in run.stderr
        name, why = reason.decode().split(": ", 1)
        assert f"skipped\t{name}\t{why}\n" in nodes.texts()["collected"]


def test_values_that_the_user_gives_are_filled_in_and_odd_ones_refused(nodes: Nodes) -> None:
    nodes.check("needs-value", "echo to PEER_IP")
    script = nodes.script("needs-value")
    nodes.run(script, "node1", env={"KB_COLLECT_PEER_IP": "10.0.0.7"})
    assert nodes.texts("node1")["needs-value.txt"] == "to 10.0.0.7\n"
    nodes.run(script, "node2", env={"KB_COLLECT_PEER_IP": "$(touch /tmp/odd)"})
    assert "KB_COLLECT_PEER_IP is odd" in nodes.texts("node2")["collected"]


def test_processes_of_python_are_found_with_their_rank(nodes: Nodes) -> None:
    nodes.check("of-process", "echo process PID")
    training = nodes.root / "my_training.py"
    training.write_text("import time\ntime.sleep(600)\n")
    process = subprocess.Popen([sys.executable, str(training)], env={**os.environ, "RANK": "7"})
    try:
        only_this = {"KB_COLLECT_PID": str(process.pid)}
        nodes.run(nodes.script("of-process"), env=only_this)
        nodes.run(nodes.script("of-process"), "node2")
    finally:
        process.kill()
        process.wait()
    name = f"of-process.rank-7.PID-{process.pid}.txt"
    assert nodes.texts("node1")[name] == f"process {process.pid}\n"
    assert any(one.startswith("of-process.") for one in nodes.texts("node2"))


@pytest.mark.slow
def test_an_output_without_an_end_is_cut(nodes: Nodes) -> None:
    nodes.check(
        "endless-check", "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"
    )
    run = nodes.run(nodes.script("endless-check"), env={"KB_COLLECT_LIMIT": "8"})
    assert run.returncode == 0, run.stderr
    texts = nodes.texts()
    assert len(texts["endless-check.txt"]) <= 524_288
    assert "cut\tendless-check" in texts["collected"]


SECRETS = (
    ("HF_TOKEN=hf_notARealToken0000001", "notARealToken"),
    ("WANDB_API_KEY=0123456789abcdef", "0123456789abcdef"),
    ('"password": "correct horse"', "correct horse"),
    ("AWS_SECRET_ACCESS_KEY: wJalrXUt", "wJalrXUt"),
    ("python train.py --token abcdefgh1234", "abcdefgh1234"),
    ("git clone https://me:hunter2@example.org/x", "hunter2"),
    ("Authorization: Basic bWU6aHVudGVyMg==", "bWU6"),
    ("curl -H 'authorization: Bearer eyJhbGciOi.x.y'", "eyJhbGciOi"),
)


def test_secrets_are_masked_before_they_are_kept(nodes: Nodes) -> None:
    text = "\n".join([*(line for line, _secret in SECRETS), "max_total_num_tokens: 451123"])
    nodes.check("tells-secrets", f"cat <<'EOT'\n{text}\nEOT")
    nodes.run(nodes.script("tells-secrets"))
    kept = nodes.texts()["tells-secrets.txt"]
    for _line, secret in SECRETS:
        assert secret not in kept
    assert "max_total_num_tokens: 451123" in kept
    assert len(kept.splitlines()) == len(SECRETS) + 1


def test_a_full_disk_is_one_sentence_and_leaves_nothing(nodes: Nodes, script: bytes) -> None:
    def no_space() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    run = nodes.run(script, preexec_fn=no_space)
    assert run.returncode == 1
    assert run.stderr.count(b"\n") == 1
    assert b"perhaps the disk is full" in run.stderr
    assert list(nodes.left.iterdir()) == []


@pytest.mark.parametrize("size", ["8k", "400k"])
def test_a_disk_that_fills_up_is_one_sentence_and_leaves_nothing(
    nodes: Nodes, tmp_path: Path, size: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        nodes.check("fills-disk", "head -c 500000 /dev/zero | tr '\\0' 'x'")
        run = nodes.run(nodes.script("fills-disk"), env={"KB_COLLECT_DIR": str(disk)})
        assert run.returncode == 1
        assert b"perhaps the disk is full" in run.stderr
        assert run.stderr.count(b"\n") == 1
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_directory_that_is_not_there_is_one_sentence(nodes: Nodes, script: bytes) -> None:
    run = nodes.run(script, env={"KB_COLLECT_DIR": "/no/such/dir"})
    assert (run.returncode, run.stderr.count(b"\n")) == (1, 1)
    assert b"/no/such/dir is not a directory" in run.stderr


def test_without_root_what_needs_it_is_left_out(nodes: Nodes) -> None:
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("only root can become nobody")
    nodes.check("plain-check", "echo broken thing")
    text = (nodes.records / "plain-check.md").read_text()
    rooted = text.replace("plain-check", "root-check").replace("cost:", "needs: [root]\ncost:")
    (nodes.records / "root-check.md").write_text(rooted)
    (nodes.records / "sudo-check.md").write_text(
        text.replace("plain-check", "sudo-check").replace("echo broken", "sudo echo broken")
    )
    script = nodes.script()
    for directory in (nodes.left, *nodes.left.parents):
        if directory.stat().st_uid == os.geteuid() and directory.is_relative_to("/tmp/"):
            directory.chmod(0o777)
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh")
    only = {"KB_COLLECT_PID": "1"}
    run = nodes.run(script, shell=nobody, env=only)
    assert run.returncode == 0, run.stderr
    texts = nodes.texts()
    assert "skipped\troot-check\tit needs root" in texts["collected"]
    assert texts["sudo-check.txt"] == "broken thing\n"


def test_stopped_by_a_signal_it_leaves_nothing(nodes: Nodes) -> None:
    nodes.program("hangs", HANGS.replace("100", f"{os.getpid()}2"))
    nodes.check("hanging-check", "hangs")
    path = nodes.root / "collect.sh"
    path.write_bytes(nodes.script("hanging-check"))
    environment = {"PATH": f"{nodes.programs}:{os.environ['PATH']}"}
    process = subprocess.Popen(["sh", str(path)], cwd=nodes.left, env=environment)
    wait_until(lambda: running(f"sleep {os.getpid()}2"), "the tool runs")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 1
    assert list(nodes.left.iterdir()) == []
    assert not running(f"sleep {os.getpid()}2")


def test_two_at_once_on_one_host_leave_two_archives(nodes: Nodes, script: bytes) -> None:
    nodes.program("hostname", "#!/bin/sh\necho node1\n")
    nodes.program("date", "#!/bin/sh\ncase $* in *T*) echo 20250101T000000Z;; *) echo 1;; esac\n")
    path = nodes.root / "collect.sh"
    path.write_bytes(script)
    environment = {"PATH": f"{nodes.programs}:{os.environ['PATH']}"}
    started = [
        subprocess.Popen(["sh", str(path)], cwd=nodes.left, env=environment) for _ in range(4)
    ]
    assert [process.wait(timeout=60) for process in started] == [0] * 4
    assert len(list(nodes.left.glob("kb-node1-20250101T000000Z*.tar.gz"))) == 4


@pytest.mark.slow
def test_the_host_that_differs_is_said_first(nodes: Nodes) -> None:
    nodes.check("a-same-check", "echo broken everywhere")
    nodes.check("b-other-check", "[ $(hostname) = node3 ] && echo broken alone; echo fine")
    nodes.check(
        "c-alike-check", "echo speed: $(hostname | tr -d node | tr 12345 44424)", alike=True
    )
    script = nodes.script()
    for number in range(1, 6):
        run = nodes.run(script, f"node{number}", env={"KB_COLLECT_PID": "1"})
        assert run.returncode == 0, run.stderr
    answer = nodes.ask("-f", *sorted(nodes.left.iterdir()))
    seen = [one for one in answer["observations"] if one["check"].endswith("-check")]  # type: ignore[attr-defined]
    texts = {one["check"]: one["text"] for one in seen}
    assert texts["b-other-check"].startswith("node3 (1 of 5 hosts): It says so: broken alone")
    assert texts["c-alike-check"].startswith(
        "node4 (1 of 5 hosts) has `speed: 2`, where the others have `speed: 4`"
    )
    assert texts["a-same-check"].startswith("All 5 hosts: It says so: broken everywhere")
    assert [one["check"] for one in seen][-1] == "a-same-check"
    assert seen[0]["file"].startswith("node")
    by_directory = nodes.ask("-f", nodes.left)
    assert by_directory["observations"] == answer["observations"]
    assert answer["verdict"] != "healthy"
    shown = nodes.kb("ask", "--incidents", nodes.records, "-f", nodes.left).stdout.decode()
    assert shown.lstrip().startswith("What differs between hosts or processes")


def tar_of(members: Mapping[str, bytes | tarfile.TarInfo]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def link_to(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


LIST = b"collection\t1\nhost\tnode1\n"
TOP = "kb-node1-20250101T000000Z"
SMALL = b"Filesystem Size Used Avail Use% Mounted on\ntmpfs 64M 0 64M 0% /dev/shm\n"


def hostile_archives() -> Iterator[tuple[str, bytes, bool]]:
    """Their names, their bytes, and whether the check in them is still read."""
    good = {f"{TOP}/collected": LIST, f"{TOP}/df-shm.txt": SMALL}
    yield "plain", tar_of(good), True
    packed = gzip.compress(tar_of(good))
    yield "cut", packed[: len(packed) * 2 // 3], False
    whole = tar_of(good)
    yield "cut behind an output", whole[: 512 * 4 + 100], True
    yield "flipped", packed[:60] + b"\xff\xff" + packed[62:], False
    yield (
        "names that lead out",
        tar_of(
            {
                **good,
                "../../etc/df-disk-inodes.txt": b"x",
                f"{TOP}/../../free-h.txt": b"x",
                "/etc/ulimit.txt": b"x",
            }
        ),
        True,
    )
    yield (
        "links",
        tar_of(
            {
                **good,
                "a": link_to(f"{TOP}/free-h.txt", "/etc/passwd", tarfile.SYMTYPE),
                "b": link_to(f"{TOP}/ulimit.txt", "/etc/passwd", tarfile.LNKTYPE),
                "c": link_to(f"{TOP}/ip-addr.txt", "", tarfile.FIFOTYPE),
            }
        ),
        True,
    )
    bomb = tarfile.TarInfo(f"{TOP}/free-h.txt")
    bomb.size = 1 << 40
    yield "a size that is a lie", tar_of({f"{TOP}/collected": LIST})[:1536] + bomb.tobuf(), False
    yield "grows", gzip.compress(tar_of({**good, f"{TOP}/free-h.txt": bytes(1 << 27)})), True
    odd = LIST.replace(b"node1", b"\x1b]0;x\x07<b>") + b"skipped\t\x1b[31m\tx\nstopped\n\t\t\n"
    yield "control characters", tar_of({**good, f"{TOP}/collected": odd}), True
    yield "an unknown check", tar_of({**good, f"{TOP}/no-such-check.txt": b"x"}), True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("packed", "read"),
    [pytest.param(packed, read, id=name) for name, packed, read in hostile_archives()],
)
def test_hostile_archives_are_read_as_far_as_they_go(
    shipped_kb: Run, tmp_path: Path, packed: bytes, read: bool
) -> None:
    bad, good = tmp_path / "kb-bad.tar.gz", tmp_path / "kb-good.tar"
    bad.write_bytes(packed)
    good.write_bytes(tar_of({f"{TOP}/collected": LIST, f"{TOP}/df-shm.txt": SMALL}))
    alone = shipped_kb("ask", "--json", "-f", bad)
    assert alone.returncode in ((0, 1) if read else (2,))
    assert b"Traceback" not in alone.stderr
    assert b"\x1b" not in alone.stderr + alone.stdout
    assert (b'"df-shm"' in alone.stdout) == read
    assert b"root:" not in alone.stdout
    both = shipped_kb("ask", "--json", "-f", bad, "-f", good)
    assert b'"df-shm"' in both.stdout
    if not read:
        assert b"kb-bad.tar.gz" in both.stderr


def archives_told() -> Iterator[tuple[str, bytes, str]]:
    """Their names, their bytes, and what is said of them."""
    good = {f"{TOP}/collected": LIST + b"skipped\tdmesg\tno root\n", f"{TOP}/df-shm.txt": SMALL}
    whole = tar_of(good)
    large = {**good, f"{TOP}/free-h.txt": bytes(1 << 27)}
    damaged = "kb-x.tar.gz is damaged; read up to there: "
    yield (
        "too large",
        gzip.compress(tar_of(large), 1),
        ("kb-x.tar.gz has more than 64 MB unpacked; only its beginning was read"),
    )
    header = 2 * 512  # behind the list and its header
    assert whole[header:].startswith(f"{TOP}/df-shm.txt".encode())
    yield "a damaged header", whole[:header] + b"\xff" * 9 + whole[header + 9 :], damaged
    yield "cut off", gzip.compress(whole[: header + 512 + 20]), damaged
    yield "damaged data", gzip.compress(whole)[:-40], "kb-x.tar.gz is damaged"


@pytest.mark.parametrize(
    ("packed", "says"),
    [pytest.param(packed, says, id=name) for name, packed, says in archives_told()],
)
def test_what_is_wrong_with_an_archive_is_said(
    shipped_kb: Run, tmp_path: Path, packed: bytes, says: str
) -> None:
    (tmp_path / "kb-x.tar.gz").write_bytes(packed)
    run = shipped_kb("ask", "-f", tmp_path / "kb-x.tar.gz")
    said = run.stderr.decode()
    assert says in said
    assert ("is damaged" in said) == ("is damaged" in says)


def test_files_behind_the_option_are_files_too(shipped_kb: Run, tmp_path: Path) -> None:
    for number in (1, 2):
        text = "x\n" if number == 1 else "NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off\n"
        (tmp_path / f"{number}.log").write_text(text)
    run = shipped_kb("ask", "-f", tmp_path / "1.log", tmp_path / "2.log")
    assert b"xid79-gpu-fallen-off-bus" in run.stdout
    assert b"2.log:1" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--for", "nccl-tests"), "`nccl-tests` is left to you, because it loads the network"),
        (("--for", "faulthandler-dump"), "SIGUSR1 ends a process that has no handler for it"),
        (("--for", "hang-mid-trainin"), "did you mean `hang-mid-training`"),
    ],
)
def test_what_cannot_be_collected_is_one_sentence(
    shipped_kb: Run, arguments: tuple[str, ...], sentence: str
) -> None:
    run = shipped_kb("collect", *arguments)
    assert run.returncode == 2
    assert run.stdout == b""
    assert sentence in run.stderr.decode()


def test_a_script_is_written_to_a_file_that_is_not_there_yet(
    shipped_kb: Run, tmp_path: Path
) -> None:
    file = tmp_path / "collect.sh"
    assert shipped_kb("collect", "-o", file).returncode == 0
    assert file.read_bytes().endswith(b"\nmain\n")
    again = shipped_kb("collect", "-o", file)
    assert again.returncode == 2
    assert b"exists" in again.stderr


def test_what_dies_first_is_taken_first(shipped_kb: Run) -> None:
    script = shipped_kb("collect", "--for", "hang-mid-training").stdout.decode()
    calls = [line.split()[1] for line in script.splitlines() if line.startswith("    check ")]
    assert calls.index("py-spy-dump") < calls.index("kernel-log")


def test_an_incident_leads_to_the_checks_of_its_playbook(shipped_kb: Run) -> None:
    run = shipped_kb("collect", "--for", "rank-blocked-on-file-lock")
    assert b"    check py-spy-dump " in run.stdout


@pytest.mark.slow
def test_there_is_a_script_for_each_playbook() -> None:
    guides, _problems = GuideDirectories().load()
    playbooks = [guide for guide in guides if isinstance(guide, Playbook)]
    assert playbooks
    assert all(choose(guides, playbook).taken for playbook in playbooks)


def test_the_answer_names_the_script_of_its_playbook(shipped_kb: Run) -> None:
    run = shipped_kb("ask", "training hangs")
    assert b"kb collect --for hang-mid-training > collect.sh" in run.stdout
