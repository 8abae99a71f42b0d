"""Replaces names of hosts, addresses and people by neutral ones in text that others will read.

The lines keep their form, and equal names get equal replacements, so that the evidence of a record
stays as consistent as the original log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from kb.job.hostlists import missing_hosts
from kb.log.prefixes import split_prefix
from kb.rules import host_pattern

_NAME = host_pattern("host_name")
_HOSTS = re.compile(
    rf"\b(?:host(?:name)?|node(?:name)?|peer|ssh|master_addr|from|to):?[ =:]+['\"]?({_NAME})"
    r"(?![\w/.(=])"
    rf"|(?<![\w./-])({host_pattern('short_host')})(?=:\d{{2,5}}(?:\D|$))"
    rf"|(?<![\w.@/-])({_NAME}\.(?:com|org|edu|gov|cn|local|internal|lan|corp))(?![\w-]|\.\w)",
    re.IGNORECASE,
)
"""Where a host is named: behind a word, in front of a port, or with its domain."""

_MAX_NAME_CHARACTERS = 253
"""Of a host with its domain (RFC 1035)."""
_WORD = re.compile(rf"(?<![\w.-])[\w.-]{{1,{_MAX_NAME_CHARACTERS}}}(?![\w.-])")
_NUMBERED = re.compile(r"[A-Za-z].*\d")
_NO_HOST = re.compile(rf"{host_pattern('numbered_part')}|node-\d+", re.IGNORECASE)
"""... and the names that replace others, which stay when a text is made neutral twice."""
_PUBLIC = re.compile(
    r"(?:.*\.)?(?:github|nvidia|huggingface|python|pytorch|docker|example|kernel|amd)\.(?:com|org|co)"
)
_SYSTEM_ROOTS = frozenset(
    ("bin", "boot", "dev", "etc", "lib", "lib64", "opt", "proc", "run", "sys", "tmp", "usr", "var")
)


class Replacement(msgspec.Struct, frozen=True):
    """One kind of name, and the replacement of the n-th name of this kind."""

    pattern: re.Pattern[str]
    neutral: Callable[[str, int], str]


def _path(path: str, _number: int) -> str:
    """Directories of the system and of packages stay; of all others only the file's name does."""
    root = path.split("/")[1]
    if root in _SYSTEM_ROOTS:
        return path
    if "/lib/python" in path:
        return "/opt/venv" + path[path.index("/lib/python") :]
    return f"/{'home/user' if root in ('home', 'Users') else 'data'}/{path.rpartition('/')[2]}"


_REPLACEMENTS = (
    Replacement(
        re.compile(r"\b[\w.+-]{1,64}@[\w-]+\.[\w.-]*\w"), lambda _name, _n: "user@example.org"
    ),
    Replacement(
        re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"),
        lambda _name, number: f"00000000-0000-0000-0000-{number:012}",
    ),
    Replacement(
        re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b"), lambda _name, n: f"02:00:00:00:00:{n:02}"
    ),
    Replacement(
        re.compile(
            r"(?<![\w.])(?!127\.|0\.0\.0\.0|169\.254\.|255\.)(?:\d{1,3}\.){3}\d{1,3}(?![\w.]\d)"
        ),
        lambda _name, number: f"10.0.{number // 256}.{number % 256}",
    ),
    Replacement(
        re.compile(r"(?<![\w:])(?!fe80)(?:[0-9a-f]{1,4}:){3,7}:?[0-9a-f]{1,4}(?![\w:])"),
        lambda _name, number: f"fd00::{number:x}",
    ),
    Replacement(
        re.compile(r"(?<=://)(?<=s3://|gs://|az://)[^\s'\",)]+"), lambda _name, _n: "bucket/path"
    ),
    Replacement(re.compile(r"(?<![\w.:/~-])(?:/[\w.@+~-]+){2,}"), _path),
)
"""Applied in this order. Loopback and link-local addresses stay, because their kind is a clue."""


def neutral(text: str, hosts: Collection[str] = ()) -> str:
    """The text with neutral names; `hosts` are those that are known from elsewhere."""
    named = {host for host in (*hosts, *_named_hosts(text)) if is_host(host)}
    spoken_of = {name for word in _WORD.findall(text) for name in _names_in(word)}
    named |= spoken_of.intersection(missing_hosts(named, text.split("\n")))
    ordered = sorted(named, key=lambda name: (-len(name), name))
    text = _renamed(text, {host: f"node-{number}" for number, host in enumerate(ordered, 1)})
    for replacement in _REPLACEMENTS:
        text = _replaced(text, replacement)
    return text


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with each name replaced where it stands as a whole, or in front of a dot."""

    def new(word: re.Match[str]) -> str:
        known = next((name for name in _names_in(word[0]) if name in names), None)
        return word[0] if known is None else names[known] + word[0][len(known) :]

    for name in names:
        if ":" in name:  # an address: no word
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", names[name], text)
    return _WORD.sub(new, text)


def _names_in(word: str) -> Iterator[str]:
    """A word, and what stands in front of each of its dots, longest first."""
    while word:
        yield word
        word = word.rpartition(".")[0]


def _named_hosts(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield split_prefix(line).host or ""
        for match in _HOSTS.finditer(line):
            yield match[match.lastindex or 0]


def is_host(name: str) -> bool:
    """Whether a name can be that of a host: it holds a number, or a domain that is not
    everybody's."""
    if len(name) > _MAX_NAME_CHARACTERS or name.startswith("localhost"):
        return False
    if _NO_HOST.fullmatch(name) or is_public(name):
        return False
    return bool(_NUMBERED.match(name)) or "." in name


def is_public(name: str) -> bool:
    """Whether a name belongs to everybody's servers, such as those of a project."""
    return _PUBLIC.fullmatch(name) is not None


def _replaced(text: str, replacement: Replacement) -> str:
    seen: dict[str, str] = {}

    def new(match: re.Match[str]) -> str:
        return seen.setdefault(match[0], replacement.neutral(match[0], len(seen) + 1))

    return replacement.pattern.sub(new, text)
