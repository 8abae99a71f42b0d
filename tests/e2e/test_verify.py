"""`kb verify`: what records claim about a project is looked for in a clone of it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Run

CHANGE = "https://github.com/example/fabric/pull/{number}"
RECORD = """\
---
id: fabric-lane-hang
title: fabric hangs because a lane is closed twice
kind: incident
systems: [fabric]
environment:
  frameworks:
    fabric: any
  hardware: any
  topology: any
signatures:
- pattern: lane was closed twice by the proxy
  strength: strong
fixed_in:
- system: fabric
  version: '{version}'
  change: https://github.com/example/fabric/pull/{number}
references:
- https://github.com/example/fabric/issues/7
confidence: documented
aliases:
- fabric hangs
created: 2026-11-21
updated: 2026-11-21
---

## Symptom

It hangs.

## Environment

Any.

## Cause

The lane is closed twice.

## Fix

1. Set `FABRIC_LANE_GUARD=1`.

## Verify

It runs.

## Evidence

Source: own run

```text
lane was closed twice by the proxy
```
"""


class Project:
    """A clone with releases 1.0.0, 1.1.0 and 1.2.0; 1.0.1 has the guard picked under another
    hash."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit('warn("lane was closed twice by the proxy");', "Start")
        self.git("tag", "v1.0.0")
        self.commit("getenv FABRIC_LANE_GUARD", "Guard the lane (#12)", "guard.c")
        self.git("tag", "v1.1.0")
        self.git("checkout", "-q", "-b", "stable", "v1.0.0")
        self.commit("1.0.1", "Begin another release", "version.txt")
        self.git("cherry-pick", "main")
        self.git("tag", "v1.0.1")
        self.git("checkout", "-q", "main")
        self.commit("nothing", "Add a page (#13)", "page.txt")
        self.git("tag", "v1.2.0-rc1")
        self.git("tag", "fabric-tools-v0.1.0", "v1.0.0")
        self.git("tag", "v1.2.0")

    def git(self, *arguments: str) -> None:
        named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *named, *arguments], cwd=self.path, check=True, capture_output=True)

    def commit(self, text: str, message: str, file: str = "lane.c") -> None:
        (self.path / file).write_text(f"{text}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "fabric")


def verified(
    kb: Run, project: Project, team: Path, *options: str, code: int = 0
) -> dict[str, dict[str, Any]]:
    """The findings by the text of the claim."""
    source = f"fabric={project.path}"
    run = kb("verify", "--json", "--incidents", team, "--source", source, *options)
    assert run.returncode == code, run.stderr
    findings = map(json.loads, run.stdout.decode().splitlines())
    return {one["claim"]["text"]: one for one in findings if one["record"] == "fabric-lane-hang"}


def team_with(tmp_path: Path, version: str, number: int) -> Path:
    team = tmp_path / "team"
    team.mkdir()
    text = RECORD.format(version=version, number=number)
    (team / "fabric-lane-hang.md").write_text(text)
    return team


@pytest.mark.parametrize(
    ("version", "number", "standing", "code"),
    [
        ("1.0.1", 12, "picked", 0),
        ("1.1", 12, "wrong", 1),
        ("1.2.0", 13, "contained", 0),
        ("1.2.0", 99, "not found", 0),
    ],
)
def test_the_first_release_with_a_change_is_compared(
    kb: Run,
    tmp_path: Path,
    project: Project,
    version: str,
    number: int,
    standing: str,
    code: int,
) -> None:
    team = team_with(tmp_path, version, number)
    finding = verified(kb, project, team, code=code)[CHANGE.format(number=number)]
    assert finding["standing"] == standing
    people = kb("verify", "--incidents", team, "--source", f"fabric={project.path}")
    assert people.returncode == code
    assert ("the first release with it is 1.0.1" in people.stdout.decode()) == (code == 1)


def test_messages_and_options_are_found_with_their_files(
    kb: Run, tmp_path: Path, project: Project
) -> None:
    project.commit("warn(other)", "Say it in another way (#14)")
    project.git("tag", "v1.3.0")
    found = verified(kb, project, team_with(tmp_path, "1.2.0", 13))
    message, option = found["lane was closed twice by the proxy"], found["FABRIC_LANE_GUARD"]
    assert (message["standing"], message["last"], message["file"]) == ("gone", "1.2.0", "lane.c")
    assert (option["standing"], option["first"], option["file"]) == (
        "contained",
        "1.0.1",
        "guard.c",
    )


def test_a_second_look_reads_only_what_changed_since(
    kb: Run, tmp_path: Path, project: Project
) -> None:
    team = team_with(tmp_path, "1.2.0", 13)
    verified(kb, project, team, "--write")
    file = team / "fabric-lane-hang.md"
    header = yaml.safe_load(file.read_text().split("---\n")[1])
    [noted] = header["checked"]["sources"]
    assert (noted["name"], noted["release"]) == ("fabric", "1.2.0")
    assert noted["files"]["FABRIC_LANE_GUARD"] == "guard.c"
    project.commit("warn(other)", "Say it in another way (#14)")
    project.git("tag", "v1.3.0")
    found = verified(kb, project, team)
    assert found["FABRIC_LANE_GUARD"]["unchanged_since"] == "1.2.0"
    assert found["lane was closed twice by the proxy"]["standing"] == "gone"


def test_a_record_with_a_wrong_release_is_not_noted_as_verified(
    kb: Run, tmp_path: Path, project: Project
) -> None:
    team = team_with(tmp_path, "1.2.0", 12)
    before = (team / "fabric-lane-hang.md").read_text()
    verified(kb, project, team, "--write", code=1)
    assert (team / "fabric-lane-hang.md").read_text() == before


@pytest.mark.parametrize("source", ["fabric", "fabric=", "fabric=/nowhere", "=x"])
def test_what_is_no_clone_is_one_sentence(kb: Run, source: str) -> None:
    run = kb("verify", "--source", source)
    assert run.returncode == 2
    assert not re.search(rb"Traceback", run.stderr)
    assert run.stderr.count(b"Error") == 1
