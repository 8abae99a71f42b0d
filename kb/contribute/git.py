"""Runs git on repositories of others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_GIT = (
    "git",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit"),
)
"""Runs no program that the configuration of a repository names, and fetches nothing; a repository
that lies among the files of another one does not count."""


def run_git(where: Path | Sequence[str], *arguments: str, given: bytes = b"") -> bytes:
    """What git prints in a directory, or with such options; nothing when it fails or is not
    there."""
    place = ["-C", str(where)] if isinstance(where, Path) else where
    try:
        run = subprocess.run(  # noqa: S603  arguments are never read as options
            [*_GIT, *place, *arguments], input=given, capture_output=True, check=False
        )
    except OSError:
        return b""
    return run.stdout if run.returncode == 0 else b""


def git_line(where: Path | Sequence[str], *arguments: str) -> str:
    """The same as text, without the last newline."""
    return os.fsdecode(run_git(where, *arguments)).removesuffix("\n")
