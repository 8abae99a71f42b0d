"""Every `kb` line of the README runs and ends as it should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import environment

README = Path("README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
EXAMPLES = [
    line
    for block in BLOCKS
    for line in block.splitlines()
    if re.match(r"kb |cat .*\| kb ", line) and line != "kb lint"  # it has a test of its own
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8


SLOW = {"kb list", "kb doctor"}
"""They read all incidents."""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=line, marks=[pytest.mark.slow] if line in SLOW else [])
        for line in EXAMPLES
    ],
)
def test_example_runs(built_cache: Path, line: str) -> None:
    names = "ask|classify|watch|show|list|doctor"
    command = re.sub(rf"\bkb (?={names})", f"{sys.executable} -m kb ", line)
    run = subprocess.run(
        ["bash", "-c", command], capture_output=True, env=environment(built_cache), timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout


def test_links_of_the_documentation_lead_somewhere() -> None:
    for page in [Path("README.md"), *Path("docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_targets_of_the_readme_exist_in_the_makefile() -> None:
    makefile = Path("Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([\w-]+)", "\n".join(BLOCKS), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
