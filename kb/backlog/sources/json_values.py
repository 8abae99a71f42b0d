"""Values of JSON, one by one: lines, arrays, arrays behind arrays, or one object around all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from kb.backlog.sources.model import UnreadableError, Why
from kb.backlog.sources.text import MAX_VALUE_CHARACTERS
from kb.log.clean import replace_surrogates

_BETWEEN = re.compile(r"[\s,\[\]\x1e]*")
"""What stands between values: of an array and of its items the items alone count. RFC 7464 begins
each text with 0x1e."""
_JSON = re.compile(r"\s*(?:\[\s*(?:[\[{\]]|$)|\{\s*(?:[\"}]|$)|\x1e)")


_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a pair, which no file can hold where its other half is missing."""


def is_json(head: str) -> bool:
    """Whether a file that begins so holds objects as JSON."""
    return _JSON.match(head) is not None


def are_lines(head: str) -> bool:
    """Whether each line of it is an object."""
    line = head.lstrip().partition("\n")[0]
    return line.startswith("{") and isinstance(_or_none(line), dict)


def values_of_lines(lines: Iterable[str]) -> Iterator[object]:
    """The value of each line, None for a broken one."""
    return (_or_none(line) for line in lines if line.strip())


def values_in(chunks: Iterable[str]) -> Iterator[object]:
    """The values of a text, and the items of its arrays, one by one.

    Raises:
        UnreadableError: it is no JSON from here on, ends early, or one value is too large.
    """
    text, place, source = "", 0, iter(chunks)
    while True:
        place = _end_of_gap(text, place)
        found = _decoded(text, place)
        if found:
            value, place = found
            yield value
            continue
        rest = text[place:]
        more = _as_much_again(source, len(rest))
        if not more:
            if rest:
                raise UnreadableError(Why.BROKEN, "it ends early, or is no JSON")
            return
        if len(rest) > MAX_VALUE_CHARACTERS:
            raise UnreadableError(
                Why.TOO_LARGE, "one value has more than 32 million characters, or is no JSON"
            )
        text, place = rest + more, 0


def _end_of_gap(text: str, place: int) -> int:
    gap = _BETWEEN.match(text, place)
    return gap.end() if gap else place


def _decoded(text: str, place: int) -> tuple[object, int] | None:
    """The value here and where it ends; None where it does not end yet."""
    if place == len(text):
        return None
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, place)
        return (_without_halves(value) if _HALF.search(text, place, end) else value), end
    except json.JSONDecodeError:
        return None
    except (RecursionError, ValueError) as error:  # ... or a number of 5,000 digits
        raise UnreadableError(Why.BROKEN, "it is nested too deeply, or no JSON") from error


def _as_much_again(source: Iterator[str], length: int) -> str:
    """Twice the text costs twice the time; one piece more each time would cost its square."""
    parts, read = [], 0
    for chunk in source:
        parts.append(chunk)
        read += len(chunk)
        if read >= length:
            break
    return "".join(parts)


def _or_none(line: str) -> object:
    try:
        value = json.loads(line, strict=False)
        return _without_halves(value) if _HALF.search(line) else value
    except (ValueError, RecursionError):
        return None


def _without_halves(value: object) -> object:
    """The same value in texts that a file can hold."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_without_halves(one) for one in value]
    if isinstance(value, dict):
        return {replace_surrogates(name): _without_halves(one) for name, one in value.items()}
    return value
