"""Versions that a record names: those that it happens in, and the one that holds the fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from kb.incident import FixedIn, Incident

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

_MAX_CHARACTERS = 400
"""Of a version, or of the limits of a record; Python reads no number of thousands of digits."""


def first_release(incident: Incident) -> FixedIn | None:
    """The first release that ends the incident, where the record names one."""
    return next((fix for fix in incident.header.fixed_in if fix.version), None)


def fits(incident: Incident, versions: Mapping[str, str]) -> bool | None:
    """Whether the incident happens in these versions, by system; None where it does not say."""
    verdicts = list(_verdicts(incident, versions))
    return all(verdicts) if verdicts else None


def read_specifier(text: str) -> SpecifierSet | None:
    """The versions that a record names; None where they are told in words, for people to read."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(text, prereleases=True)
    except InvalidSpecifier:
        return None


def _verdicts(incident: Incident, versions: Mapping[str, str]) -> Iterator[bool]:
    # A fix with conditions is for people to read: who runs that version may not meet them.
    stated = [
        (fix.system, f"<{fix.version}")
        for fix in incident.header.fixed_in
        if fix.version and not fix.note
    ]
    for name, text in (*stated, *incident.header.environment.frameworks.items()):
        verdict = _is_in(versions[name], text) if name in versions else None
        if verdict is not None:
            yield verdict


@lru_cache(512)
def _is_in(running: str, text: str) -> bool | None:
    """None where one of the two cannot be read, or the version is only the first part of a limit:
    2.26 may be 2.26.2."""
    if max(len(running), len(text)) > _MAX_CHARACTERS:
        return None
    allowed, version = read_specifier(text), _read_version(running)
    if not allowed or version is None:
        return None
    limits = (_read_version(one.version.removesuffix(".*")) for one in allowed)
    if any(limit and _begins(limit.release, version.release) for limit in limits):
        return None
    return allowed.contains(version)


def _begins(whole: tuple[int, ...], start: tuple[int, ...]) -> bool:
    return len(start) < len(whole) and whole[: len(start)] == start


def _read_version(text: str) -> Version | None:
    """Of a build before the release, the release: containers carry such builds for years."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(Version(text).base_version)
    except InvalidVersion:
        return None
