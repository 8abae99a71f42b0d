"""What became of each claim: contained, not contained, or picked under another hash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec
from packaging.version import Version

from kb.contribute.verify.claims import Claim, ClaimKind, claims_of
from kb.contribute.verify.clone import Clone, Release
from kb.incident import Incident, VerifiedSource


class Standing(StrEnum):
    """What a clone says about a claim."""

    CONTAINED = "contained"
    PICKED = "picked"
    """The release has the change under another hash than the first branch that has it."""
    WRONG = "wrong"
    """Another release is the first with the change."""
    UNRELEASED = "unreleased"
    """The change is known, but no release in the clone has it."""
    GONE = "gone"
    """Releases had it, the newest has not."""
    NOT_FOUND = "not found"


class Finding(msgspec.Struct, frozen=True):
    """A claim of a record, and what a clone says about it."""

    record: str
    project: str
    claim: Claim
    standing: Standing
    first: str | None = None
    """The first release with it, of those that were looked at."""
    last: str | None = None
    file: str | None = None
    """A source file that holds it."""
    unchanged_since: str | None = None
    """The release of an earlier look: the file is the same since, so it was not read again."""


def verify(incidents: Sequence[Incident], clone: Clone) -> Iterator[Finding]:
    """Look for the claims of records in a clone; texts are looked for all together, release by
    release."""
    claims = {one.id: claims_of(one, clone.name) for one in incidents}
    known = {one.id: _known(one, clone) for one in incidents}
    texts = {
        claim.text
        for identifier, found in claims.items()
        for claim in found
        if claim.kind is not ClaimKind.CHANGE and claim.text not in known[identifier].files
    }
    holders = {
        release: clone.files_with(texts, release) for release in clone.minor_releases if texts
    }
    for identifier, found in claims.items():
        for claim in found:
            if claim.kind is ClaimKind.CHANGE:
                yield _of_change(identifier, claim, clone)
            elif file := known[identifier].files.get(claim.text):
                last = clone.releases[-1].version
                yield Finding(
                    identifier,
                    clone.name,
                    claim,
                    Standing.CONTAINED,
                    last=last,
                    file=file,
                    unchanged_since=known[identifier].release,
                )
            else:
                yield _of_text(identifier, claim, clone, holders)


class _Known(msgspec.Struct, frozen=True):
    release: str | None = None
    files: dict[str, str] = {}
    """By claim that is as it was: the file that holds it."""


def _known(incident: Incident, clone: Clone) -> _Known:
    """What an earlier look found, as far as its files did not change."""
    checked = incident.header.checked
    sources = checked.sources if checked else ()
    noted = next((one for one in sources if one.name == clone.name), None)
    before = next((r for r in clone.releases if noted and r.version == noted.release), None)
    if noted is None or before is None:
        return _Known()
    newest = clone.releases[-1]
    same = {
        text: file
        for text, file in noted.files.items()
        if not clone.changed([file], before, newest)
    }
    return _Known(noted.release, same)


def _of_change(identifier: str, claim: Claim, clone: Clone) -> Finding:
    commits = clone.commits_of(claim.text)
    first = clone.first_release_with(commits)
    version = first.version if first else None

    def finding(standing: Standing) -> Finding:
        return Finding(identifier, clone.name, claim, standing, first=version)

    if not commits:
        return finding(Standing.NOT_FOUND)
    if first is None:
        stated = any(_is_same(claim.version, release) for release in clone.releases)
        return finding(Standing.WRONG if stated else Standing.UNRELEASED)
    if not _is_same(claim.version, first):
        return finding(Standing.WRONG)
    picked = len(commits) > 1 and not all(clone.contains(first, commit) for commit in commits)
    return finding(Standing.PICKED if picked else Standing.CONTAINED)


def _is_same(version: str | None, release: Release) -> bool:
    """Whether a version names a release; 2.5 is 2.5.0."""
    return version is not None and Version(version) == Version(release.version)


def _of_text(
    identifier: str, claim: Claim, clone: Clone, holders: Mapping[Release, Mapping[str, str]]
) -> Finding:
    having = [release for release in holders if claim.text in holders[release]]
    if not having:
        return Finding(identifier, clone.name, claim, Standing.NOT_FOUND)
    is_there = having[-1] is clone.minor_releases[-1]
    return Finding(
        identifier,
        clone.name,
        claim,
        Standing.CONTAINED if is_there else Standing.GONE,
        first=having[0].version,
        last=having[-1].version,
        file=holders[having[-1]][claim.text],
    )


def sources_of(findings: Sequence[Finding], clone: Clone) -> VerifiedSource:
    """What is noted in a record about one clone."""
    files = {one.claim.text: one.file for one in findings if one.file}
    return VerifiedSource(clone.name, clone.releases[-1].version, files)
