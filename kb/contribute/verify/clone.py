"""A local clone of a project: its releases, what they contain, and which of them have a change."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path

import msgspec
from packaging.version import InvalidVersion, Version

from kb.contribute.git import git_line, run_git
from kb.errors import CorpusError

_TAG = re.compile(
    r"(?P<series>[a-z0-9_-]*?)v?(?P<version>\d+(?:\.\d+)+(?:\.?post\d+)?)(?:-\d+)?", re.IGNORECASE
)
"""Of a release; what comes before one (`v2.5.0-rc1`) has a longer name."""
_NUMBERED = re.compile(r"https?://[^/]+/[^/]+/[^/]+/(?:pull|issues|merge_requests)/(\d+)")
_HASHED = re.compile(r"https?://[^/]+/[^/]+/[^/]+/commit/([0-9a-f]{7,40})")


class Release(msgspec.Struct, frozen=True):
    """A tag of a release."""

    tag: str
    version: str


class Clone:
    """What git knows of a project.

    Raises:
        CorpusError: the directory is no clone, or has no tags of releases.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        inner = path / ".git"
        self._git = (f"--git-dir={inner if inner.exists() else path}",)
        if not git_line(self._git, "rev-parse", "--git-dir"):
            raise CorpusError(f"{path} is no git repository; clone {name} and pass its directory")
        if not self.releases:
            raise CorpusError(f"{path} has no tags of releases; run there: git fetch --tags")

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """From the oldest to the newest, of the series with the most: some projects release a
        second thing from the same repository."""
        by_series: dict[str, dict[Version, Release]] = {}
        for tag in git_line(self._git, "tag").split("\n"):
            match = _TAG.fullmatch(tag)
            version = _read(match["version"]) if match else None
            if match and version:
                series = by_series.setdefault(match["series"], {})
                series[version] = Release(tag, match["version"])
        found = max(by_series.values(), key=len, default={})
        return tuple(found[version] for version in sorted(found))

    @cached_property
    def minor_releases(self) -> tuple[Release, ...]:
        """The last release of each line such as 2.27."""
        last = {Version(one.version).release[:2]: one for one in self.releases}
        return tuple(last.values())

    def commits_of(self, change: str) -> tuple[str, ...]:
        """The commits of a change by its link, on all branches: one that was picked has several."""
        if match := _HASHED.match(change):
            whole = git_line(
                self._git, "rev-parse", "--verify", "--quiet", f"{match[1]}^{{commit}}"
            )
            return (whole,) if whole else ()
        if match := _NUMBERED.match(change):
            return self._commits_by_number.get(int(match[1]), ())
        return ()

    @cached_property
    def _commits_by_number(self) -> Mapping[int, tuple[str, ...]]:
        """One walk over the history serves all numbers that records name."""
        found: dict[int, list[str]] = {}
        for line in os.fsdecode(run_git(self._git, "log", "--all", "--format=%H %s")).split("\n"):
            commit, _space, subject = line.partition(" ")
            numbers = re.findall(r"\(#(\d+)\)|^Merge pull request #(\d+) ", subject)
            for number in {int(one or other) for one, other in numbers[-1:]}:
                found.setdefault(number, []).append(commit)
        return {number: tuple(commits) for number, commits in found.items()}

    def first_release_with(self, commits: Iterable[str]) -> Release | None:
        """The first release that contains one of the commits."""
        tags = {
            tag
            for commit in commits
            for tag in git_line(self._git, "tag", "--contains", commit).split("\n")
        }
        return next((one for one in self.releases if one.tag in tags), None)

    def contains(self, release: Release, commit: str) -> bool:
        """Whether a release was made from a state with this commit."""
        tags = git_line(self._git, "tag", "--contains", commit).split("\n")
        return release.tag in tags

    def files_with(self, texts: Collection[str], release: Release) -> dict[str, str]:
        """By text, of those that a release contains: a source file with it."""
        given = "".join(f"{text}\n" for text in texts).encode()
        arguments = ("grep", "-I", "-o", "-F", "--full-name", "-f", "-", release.tag)
        found: dict[str, str] = {}
        for line in os.fsdecode(run_git(self._git, *arguments, given=given)).split("\n"):
            _tag, _colon, rest = line.partition(":")
            file, _colon, text = rest.partition(":")
            found.setdefault(text, file)
        for text in texts:
            # Of two texts on one line, git prints the one that begins first.
            if text not in found and any(text in other for other in found):
                found[text] = next(file for other, file in found.items() if text in other)
        return {text: found[text] for text in texts if text in found}

    def changed(self, files: Iterable[str], since: Release, until: Release) -> bool:
        """Whether one of the files differs between two releases."""
        range_ = (since.tag, until.tag)
        return bool(git_line(self._git, "diff", "--name-only", *range_, "--", *files))


def _read(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
