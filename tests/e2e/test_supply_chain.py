"""What is installed, and what a workflow runs, is what somebody has looked at."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT: dict[str, Any] = tomllib.loads(Path("pyproject.toml").read_text())
LOCKS = sorted(Path("locks").glob("*.txt"))
WITHOUT_HASH = {"torch"}


def declared(*extras: str) -> list[Requirement]:
    optional = PROJECT["project"]["optional-dependencies"]
    chosen = [Requirement(text) for extra in extras for text in optional[extra]]
    own = [one for one in chosen if one.name == PROJECT["project"]["name"]]
    others = [one for one in chosen if one not in own]
    needed = [other for one in own for other in declared(*one.extras)]
    return [*map(Requirement, PROJECT["project"]["dependencies"]), *others, *needed]


def locked(path: Path) -> dict[str, tuple[str, int]]:
    """By name: the version, and how many files of it have a hash."""
    entries = path.read_text().replace("\\\n", " ").splitlines()
    return {
        canonicalize_name(entry.partition("==")[0]): (
            entry.partition("==")[2].split()[0],
            len(re.findall(r" --hash=sha256:[0-9a-f]{64}\b", entry)),
        )
        for entry in entries
    }


def constraints() -> dict[str, str]:
    lines = (line.split("==") for line in Path("constraints.txt").read_text().splitlines())
    return {canonicalize_name(name): version for name, version in lines}


def test_no_dependency_is_taken_in_a_later_major_version() -> None:
    build = [Requirement(text) for text in PROJECT["build-system"]["requires"]]
    for requirement in [*build, *declared(*PROJECT["project"]["optional-dependencies"])]:
        operators = {specifier.operator for specifier in requirement.specifier}
        assert operators & {"<", "=="}, requirement


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_each_package_is_locked_with_hashes_and_the_version_of_the_constraints(path: Path) -> None:
    exact = constraints()
    for name, (version, hashes) in locked(path).items():
        assert hashes, name
        assert exact.get(name, version) == version, name
    assert "://" not in path.read_text()


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("run", ()), *((name, (name,)) for name in ("test", "fuzz", "ray", "models"))],
)
def test_all_that_is_declared_is_locked(lock: str, extras: tuple[str, ...]) -> None:
    found = locked(Path(f"locks/{lock}.txt"))
    for requirement in declared(*extras):
        name = canonicalize_name(requirement.name)
        assert name in found.keys() | WITHOUT_HASH
        if name in found:
            assert found[name][0] in requirement.specifier


def test_what_builds_packages_is_locked() -> None:
    found = locked(Path("locks/build.txt"))
    assert {"hatchling", "editables", "setuptools"} <= found.keys()
    assert found["hatchling"][0] == constraints()["hatchling"]


@pytest.mark.parametrize("target", ["installed", "test", "fuzz", "ray", "models"])
def test_make_installs_from_the_index_by_hash_alone(tmp_path: Path, target: str) -> None:
    goal = f"{tmp_path}/.{target}"
    commands = subprocess.run(
        ["make", "--dry-run", f"VENV={tmp_path}", goal], capture_output=True, check=True, text=True
    ).stdout.splitlines()
    installs = [command for command in commands if "pip install" in command]
    assert installs
    for command in installs:
        from_here = command.endswith("--no-deps --no-build-isolation -e .")
        without = "grep ^torch== constraints.txt" in command
        assert from_here or without or "--require-hashes --no-deps" in command, command


def test_actions_of_the_workflow_are_commits_with_their_version() -> None:
    path = Path("docs/examples/incidents.yml")
    steps = yaml.safe_load(path.read_text())["jobs"]["check"]["steps"]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)
        assert re.search(rf"uses: {action}  # v\d+\.\d+\.\d+$", path.read_text(), re.MULTILINE)
