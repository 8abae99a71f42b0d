"""Tokens, keys and passwords are masked in all that is kept or leaves the tool.

A detector is a row: what it finds, and how that looks. Tokens that can be told by their form come
first, from kb/rules/secrets.toml; then what is told by its name, such as `HF_TOKEN=` or
`"password":`. Nothing is masked for being random alone: hashes, digests and ids are what a log is
searched for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, TypeVar, cast

import msgspec

from kb.evidence import EvidenceLine

Value = TypeVar("Value")


class Detector(msgspec.Struct, frozen=True):
    """How secrets look. The named group that matches is masked, or without one the whole."""

    pattern: re.Pattern[str]
    name: str | None = None
    """What is found; where it is None, the group's name says it."""


class TokenForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of kb/rules/secrets.toml: how tokens of one kind look."""

    name: str
    """The kind, with underscores; may stand in several rows."""
    pattern: str
    example: tuple[str, ...]
    """A token that the pattern matches, in parts."""
    source: str | None = None
    """Where the pattern comes from, if not from this project."""


_WORD = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
"""Where a word begins; in a quoted text `\\n` stands before it."""

_VALUE = (
    r"(?!(?:none|null|nil|true|false|empty|undefined|\*+|\.+|…)(?:[\\\"'\s,;)}\]]|$))"
    r"(?!(?:~|\.{1,2})?/(?:[\w.@-]+/)*[\w.@-]*(?:[\\\"'\s,;)}\]]|$))"
)
"""Values after a name that are not secrets: an empty value, or a path."""
_QUOTED = (
    rf"\\?\"{_VALUE}(?P<double>[^\"\\\n<$][^\"\\\n]*)|\\?'{_VALUE}(?P<single>[^'\\\n<$][^'\\\n]*)"
)
_BARE = r"[^\s\"'\\<>$,;&(){}\[\]|]"
_NAME = (
    r"(?=[acdempsx_])(?:(?:api|auth|access|account|secret|private|client|signing|encryption|master"
    r"|service)[ _-]?key(?:[_-]?id|[_-]data)?|pass(?:word|wd|phrase)|(?<![a-z])pwd|secret|db_?pass"
    r"|credentials?|x-amz-(?:signature|security-token)|_jwt|auth_?token)\d?"
)
_CLOSED = r"(?:\\?[\"'])?\]?[ \t]{0,4}"

_BEGIN, _END = (
    rf"-----{word} [A-Z0-9 ]{{0,30}}PRIVATE KEY(?: BLOCK)?-----" for word in ("BEGIN", "END")
)
_KEYS = (
    rf"{_BEGIN}(?:[^-]|-(?!----))*+{_END}",
    rf"{_BEGIN}(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{{16,}})*",  # its end was cut off
    r"Private-Lines: \d+(?P<secret>(?:\s+[A-Za-z0-9+/=]{16,})+)",
    rf"{_WORD}(?:MII[A-Za-z]|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{{40,}}={{0,2}}",  # one line of it
)

_NAMED = {
    "aws secret key": (r"secret_?(?:access_?)?key\W{1,6}(?P<secret>[A-Za-z0-9/+]{40})(?![\w/+])",),
    "wandb key": (
        r"wandb[ :]+login\b[^\n]{0,60}?(?P<secret>\b[0-9a-f]{40}\b)",
        r"api key\b[^\n]{0,80}?(?P<secret>\b[0-9a-f]{40}\b)",
    ),
    "authorization": (
        r"\bauthorization\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?(?:basic|token|negotiate|digest)"
        r" (?P<secret>[^\s\"'\\<]+)",
        r"\bbearer[ :=]{1,3}(?P<secret>(?=[^\s\"'\\<]{0,200}\d)[\w.~+/=-]{8,})",
        r"\"auth\\?\"[ \t]{0,4}:[ \t]{0,4}\\?\"(?P<secret>[A-Za-z0-9+/=_-]{8,})",
    ),
    "credentials in a url": (
        r"://(?P<secret>[^\s/:@?#\[\]\"'<>]{0,200}:[^\s/@\"'<>]{1,200})@(?!sha256:)",
        r"://(?P<secret>[^\s/:@?#\[\]\"'<>]{16,200})@",
    ),
    "signature": (r"[?&;](?:x-amz-signature|sig|signature)=(?P<secret>[\w%+/=-]{16,})",),
    "token": (
        rf"(?-i:_TOKEN){_CLOSED}[=:]=?[ \t]{{0,4}}"
        rf"(?:{_QUOTED}|{_VALUE}(?P<bare>(?!\d+\b){_BARE}{{4,}}))",
        rf"token{_CLOSED}[=:]=?[ \t]{{0,4}}\\?[\"']?{_VALUE}"
        rf"(?P<bare>(?!\d+\b)(?={_BARE}{{0,200}}\d){_BARE}{{12,}})",
    ),
    "password": (
        # Text after a colon that continues with more words is a sentence.
        rf"{_NAME}{_CLOSED}(?:(=>|:?={{1,2}})|:)[ \t]{{0,4}}(?:{_QUOTED}"
        rf"|{_VALUE}(?P<bare>{_BARE}++)(?(1)|(?=[ \t\r]*(?:$|[,;}}&\])]))))",
        rf"(?<![\w-])--(?:[\w-]{{0,40}}-)?(?:token|password|passwd|secret|api-key)[ =]{{1,4}}"
        rf"{_VALUE}(?P<bare>(?!\d+\b|-){_BARE}+)",
        rf"\blogin \S{{1,200}}\s{{1,8}}password (?P<bare>{_BARE}+)",
        rf"\bsshpass -p ?[\"']?(?P<bare>{_BARE}+)",
        rf"\bcurl\b[^\n]{{0,200}}? (?:-u|--user)[ =][\"']?(?P<bare>[\w.@-]{{1,100}}:{_BARE}+)",
    ),
}


def mask_secrets(text: str) -> str:
    """Put `<secret: its kind>` in the place of every secret; the rest, and the number of lines,
    stay. Takes linear time. Its own output it returns unchanged."""
    for detector in _detectors():
        text = detector.pattern.sub(partial(_hidden, detector.name), text)
    return text


def mask_lines(lines: Sequence[EvidenceLine]) -> tuple[EvidenceLine, ...]:
    """Lines of a log with secrets masked in their text. A private key has many lines that cannot be
    told from other text alone, so they are masked together, in the order of the log."""
    order = sorted(range(len(lines)), key=lambda n: (lines[n].file or "", lines[n].number))
    masked = mask_secrets("\n".join(lines[place].text for place in order)).split("\n")
    texts = dict(zip(order, masked, strict=True)) if order else {}
    return tuple(
        msgspec.structs.replace(line, text=texts[place]) for place, line in enumerate(lines)
    )


def without_secrets(value: Value) -> Value:
    """The same value with secrets masked in every text of it, however deep. Of a mapping, the name
    tells as well: `{"HF_TOKEN": "..."}`."""
    return cast("Value", _without(value))


def _without(value: Any) -> Any:
    if type(value) is str:
        return mask_secrets(value)
    if isinstance(value, dict):
        return {name: _named(name, inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_without, value))
    if isinstance(value, msgspec.Struct):
        fields = {name: _without(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    return value


def _named(name: Any, value: Any) -> Any:
    if type(value) is not str:
        return _without(value)
    return mask_secrets(f"{name}={value}").removeprefix(f"{name}=")


def _hidden(name: str | None, match: re.Match[str]) -> str:
    group = match.lastgroup or 0
    label = f"<secret: {name or str(group).replace('_', ' ')}>"
    secret = "\n".join([label] * (match[group].count("\n") + 1))
    before = match.string[match.start() : match.start(group)]
    return before + secret + match.string[match.end(group) : match.end()]


@cache
def _detectors() -> tuple[Detector, ...]:
    """All of them, in order. A key of several lines holds lines that look like other secrets."""
    keys = [Detector(re.compile(form), "private key") for form in _KEYS]
    named = [
        Detector(re.compile(form, re.IGNORECASE | re.MULTILINE), name)
        for name, forms in _NAMED.items()
        for form in forms
    ]
    return (*keys, Detector(_any_token()), *named)


@cache
def token_forms() -> tuple[TokenForm, ...]:
    """The rows of kb/rules/secrets.toml."""
    data = files("kb").joinpath("rules/secrets.toml").read_bytes()
    return msgspec.toml.decode(data, type=dict[str, tuple[TokenForm, ...]])["token"]


def _any_token() -> re.Pattern[str]:
    """All forms in one expression, each kind in a group of its name. A long word is tried once."""
    patterns: dict[str, list[str]] = {}
    for form in token_forms():
        patterns.setdefault(form.name, []).append(f"(?:{form.pattern})")
    groups = (f"(?P<{name}>{'|'.join(some)})" for name, some in patterns.items())
    return re.compile(f"{_WORD}(?:{'|'.join(groups)})")
