"""Hides people, private machines and secrets in what people wrote. What a remedy is made of stays:
versions, public addresses, names of packages."""

from __future__ import annotations

import re

import msgspec

from kb.evidence.secrets import mask_secrets
from kb.log.clean import drop_controls, without_disguises, without_escapes


class _Hidden(msgspec.Struct, frozen=True):
    """One kind of name, and what stands in its place."""

    pattern: re.Pattern[str]
    shown: str


_PRIVATE = r"(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))"
_HIDDEN = (
    _Hidden(re.compile(r"\b[\w.+-]{1,64}@(?=[\w-]+\.)[\w.-]{1,250}\w"), "user@example.org"),
    _Hidden(
        re.compile(
            r"\[@[A-Za-z0-9][\w-]{0,38}\]\([^()\s]*\)|(?<![\w/.@`:])@[A-Za-z0-9][\w-]{0,38}(?![\w/.(-]|\.\w)"
        ),
        "@someone",
    ),
    _Hidden(re.compile(r"(?<=https://github\.com/)[\w-]{1,39}(?=[\s)\]>,]|$)"), "someone"),
    _Hidden(re.compile(r"(?<=/home/)(?!user\b)[\w.@-]{1,64}|(?<=/Users/)[\w.@-]{1,64}"), "user"),
    _Hidden(re.compile(r"(?<=:\\Users\\)[\w.@ -]{1,64}(?=\\)", re.IGNORECASE), "user"),
    _Hidden(
        re.compile(
            r"(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){0,6}\.(?:local|internal|lan|corp|intranet|intra|localdomain)"
            r"(?![\w-]|\.\w)",
            re.IGNORECASE,
        ),
        "host.internal",
    ),
    _Hidden(
        re.compile(rf"(?<![\w.])(?!127\.0\.0\.1){_PRIVATE}(?:\.\d{{1,3}}){{2,3}}(?![\w.]\d)"),
        "10.0.0.1",
    ),
    _Hidden(
        re.compile(r"(?<![\w.=-])(?!127\.|0\.)(?:\d{1,3}\.){3}\d{1,3}(?=:\d{2,5}\b)"), "10.0.0.1"
    ),
    _Hidden(re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"), "02:00:00:00:00:01"),
    _Hidden(re.compile(r"\bU[A-Z0-9]{8,10}\b(?=\|)"), "someone"),
)
_GREETED = re.compile(
    r"^(?P<greeting>[ \t]*(?:hi|hello|hey|dear|hallo|thanks|thank you|many thanks|cheers))"
    r"[ ,]+(?!(?:there|for|to|a|so|again|all|everyone|in|this|that|the|it|i|you|we|very|and|but)\b)"
    r"[A-Z][\w.-]{1,30}(?: [A-Z][\w.-]{1,30})?(?=[ ]?[,!.:\n]|$)",
    re.IGNORECASE | re.MULTILINE,
)
_SIGNED = re.compile(
    r"\n-- ?\n.*\Z|\n[ \t]*(?:(?:best|kind|warm|many)?[ ]?(?:regards|wishes)|best|cheers|sincerely"
    r"|thanks(?: (?:in advance|again|a lot|so much))?|thank you|br|vg)[ ,.!]{0,3}\n+[ \t]*"
    r"(?:[A-Z][\w.-]{1,30}[ ]?){1,3}[ \t]*\Z",
    re.IGNORECASE | re.DOTALL,
)
_MAX_CHARACTERS = 200_000
"""Of a text: more is data, and nobody reads it."""


def without_signature(text: str) -> str:
    """A post without the name below it."""
    return (
        _SIGNED.sub("", text[-1000:])
        if len(text) <= 1000
        else text[:-1000] + _SIGNED.sub("", text[-1000:])
    )


def hidden(text: str) -> str:
    """A text as it may be kept: without people, private machines, secrets and controls."""
    plain = drop_controls(without_disguises(without_escapes(text[:_MAX_CHARACTERS])))
    plain = _GREETED.sub(lambda found: found["greeting"], plain)
    for kind in _HIDDEN:
        plain = kind.pattern.sub(kind.shown, plain)
    return mask_secrets(plain)
