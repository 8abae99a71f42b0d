"""Tokens, keys and passwords are masked in all that is kept or leaves the tool.

How secrets look is data: kb/rules/secrets.toml. Nothing is masked for being random alone: hashes,
digests and ids are what a log is searched for.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from kb.evidence import EvidenceLine
from kb.evidence.tables import Cell, cells_below
from kb.expression import Expression
from kb.log.clean import without_disguises, without_escapes
from kb.rules import read_rows
from kb.rules.rows import Column, Secret, Token

Value = TypeVar("Value")

_FIRST_MARK = 0x10F000
"""While a text is worked on, one character of this private area stands for each mask, so that no
pattern sees words of the tool. Texts do not hold these characters."""
_MAX_PASSES = 8
"""Passes over a text, each of which masks more than the one before. Two are the rule: the second
finds nothing. More are bounded, because only a text made for it needs them."""
_LONG_WORD = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))(?=[^\s\"'<>]{16})"
"""A token is a long word; in a quoted text, `\\n` stands before it."""
_REST_OF_WORD = re.compile(r"(?<=[A-Za-z0-9_-])[A-Za-z0-9_-]++")

_PLACEHOLDER = Expression(
    r"""\W{0,3}(?:[*•.]{3,}|(?:sk-|hf_)?[xX]{6,}|REDACTED|MASKED|HIDDEN|\{\{[^{}]*\}\}|\$\{[^{}]*\}"""
    r"""|<[^<>]*>|(?:var|local|data|module)\.[\w.]+)\W{0,3}"""
)
"""What stands where a secret was, or is to be put."""


class Detector(NamedTuple):
    """A row, ready to search with."""

    pattern: str
    """Each group that matches is a secret; where none does, the whole match is."""
    flags: re.RegexFlag
    labels: tuple[str, ...]
    """What is shown for each group, in their order; one alone, for all of them."""


class Found(NamedTuple):
    """A secret: its place in a text, and what is shown for it."""

    start: int
    end: int
    label: str


def mask_secrets(text: str) -> str:
    """Put `<secret: its kind>` in the place of every secret; the rest, and the number of lines,
    stay. Colours of a terminal and signs of no width may stand within a secret or beside it: where
    one is masked, they go, and wide blanks become plain ones. Takes linear time. Its own output it
    returns unchanged."""
    plain = without_disguises(without_escapes(text))
    masked = _masked(plain)
    return text if masked == plain else masked


def blank_secrets(text: str) -> str:
    """The same with `***`, for a text that is searched: the names of masks would be words of it."""
    return _marks().sub("***", mask_secrets(text))


def _masked(text: str) -> str:
    lines = _Lines(_marks().sub(lambda mask: _mark(mask[1]), text))
    for _ in range(_MAX_PASSES):
        masked = lines
        for find in (_find_over_lines, _find_in_tables, _find_tokens, _find_within_lines):
            masked = _hide(find, masked)
        if masked is lines:
            break
        lines = masked
    return lines.text.translate(_masks())


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
    mask = cache(mask_secrets)  # a job names the same files, hosts and times for all its ranks
    return cast("Value", _without(value, mask))


def _without(value: Any, mask: Callable[[str], str]) -> Any:
    if type(value) is str:
        return mask(value)
    if isinstance(value, dict):
        return {name: _named(name, inner, mask) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_without(inner, mask) for inner in value)
    if isinstance(value, msgspec.Struct):
        fields = {name: _without(getattr(value, name), mask) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    return value


def _named(name: Any, value: Any, mask: Callable[[str], str]) -> Any:
    """The value of a name, masked as a whole where the name says that it is a secret."""
    if type(value) is not str:
        return _without(value, mask)
    for said in _said_by(name):
        quoted = mask(f"{said}='{value.replace(chr(39), '_')}'")
        label = quoted[len(f"{said}='") : -1]
        if _marks().fullmatch(label):
            return label
    return mask(value)


def _said_by(name: Any) -> Iterator[Any]:
    """A name, and for one of a variable also what it begins with: `HF_TOKEN_OLD` is a token."""
    yield name
    if isinstance(name, str) and name.isupper():
        yield from accumulate(name.split("_")[:-1], "{}_{}".format)


def _find_over_lines(lines: _Lines) -> Iterator[Found]:
    """What goes over several lines: each row looks around the lines that hold one of its words."""
    for row in _rows():
        if row.reach and lines.may_hold(row):
            for start, end in lines.regions(row.signs, row.reach):
                yield from _find(row.detector, lines.text, start, end)


def _find_tokens(lines: _Lines) -> Iterator[Found]:
    return _find(_any_token(), lines.text, 0, len(lines.text))


def _find_within_lines(lines: _Lines) -> Iterator[Found]:
    """What lies within a line: each row looks only at lines that hold one of its words."""
    for row in _rows():
        if not row.reach and lines.may_hold(row):
            joined, shift = lines.joined(row.signs)
            for start, end, label in _find(row.detector, joined, 0, len(joined)):
                if "\n" not in joined[start:end]:
                    yield Found(start + shift(start), end + shift(start), label)


def _find_in_tables(lines: _Lines) -> Iterator[Found]:
    """The cells under the name of a secret that would be masked after that name."""
    text = lines.text
    for words, heading, label in _columns():
        cells: list[Cell] = []
        for number in lines.having(words):
            if not cells or cells[-1].end < lines.start(number):
                names = _compiled(heading, re.IGNORECASE)
                cells += cells_below(text, lines.start(number), names)
        said = "\n".join(f"{label}='{text[slice(*cell)].replace(chr(39), '_')}'" for cell in cells)
        masked = _hide(_find_within_lines, _Lines(said)).text.split("\n") if cells else []
        for cell, line in zip(cells, masked, strict=True):
            if line == f"{label}='{_mark(label)}'" and text[slice(*cell)].translate(_no_masks()):
                yield Found(*cell, label)


class _Lines:
    """The lines of a text, and which of them hold a word."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in re.finditer("\n", text)), len(text) + 1]
        self._lowered = "\n" + text.lower()
        self._ends = [found.start() for found in re.finditer("\n", self._lowered)]
        self._present = {word for word in _all_words() if word in self._lowered}
        self._known: dict[frozenset[str], list[int]] = {}
        self._known_of_one: dict[str, list[int]] = {}

    def start(self, number: int) -> int:
        return self._starts[number]

    def regions(self, words: frozenset[str], reach: int) -> list[tuple[int, int]]:
        """Where lines with one of the words lie, with so many lines before and after them."""
        regions: list[tuple[int, int]] = []
        for number in self.having(words):
            first, last = number - reach, number + reach
            if regions and first <= regions[-1][1]:
                first = regions.pop()[0]
            regions.append((first, last))
        return [self._region(first, last) for first, last in regions]

    def joined(self, words: frozenset[str]) -> tuple[str, Callable[[int], int]]:
        """The lines that hold one of the words, and how far a place in them lies from that place
        in the whole text."""
        chosen = self.having(words)
        parts = [self.text[self._starts[n] : self._starts[n + 1] - 1] for n in chosen]
        begins = [0, *accumulate(len(part) + 1 for part in parts)]

        def shift(place: int) -> int:
            nth = bisect_right(begins, place) - 1
            return self._starts[chosen[nth]] - begins[nth]

        return "\n".join(parts), shift

    def _region(self, first: int, last: int) -> tuple[int, int]:
        count = len(self._starts) - 1
        return self._starts[max(first, 0)], self._starts[min(last + 1, count)] - 1

    def may_hold(self, row: _Row) -> bool:
        """Whether a secret of the row may stand in the text."""
        return self._has(row.signs) and (not row.about or self._has(row.about))

    def _has(self, words: frozenset[str]) -> bool:
        return not words.isdisjoint(self._present)

    def having(self, words: frozenset[str]) -> list[int]:
        """The numbers of the lines that hold one of the words, in order."""
        if not self._has(words):
            return []
        if words not in self._known:
            self._known[words] = sorted(set().union(*map(self._with, words & self._present)))
        return self._known[words]

    def _with(self, word: str) -> list[int]:
        if word not in self._known_of_one:
            self._known_of_one[word] = list(self._find(word))
        return self._known_of_one[word]

    def _find(self, word: str) -> Iterator[int]:
        place = self._lowered.find(word)
        while place >= 0:
            line = bisect_right(self._ends, place) - 1
            yield line
            if line + 1 == len(self._ends):
                break
            place = self._lowered.find(word, self._ends[line + 1])


def _find(detector: Detector, text: str, first: int, last: int) -> Iterator[Found]:
    if first == last:
        return
    several = len(detector.labels) > 1
    for match in _compiled(detector.pattern, detector.flags).finditer(text, first, last):
        matched = [number for number, part in enumerate(match.groups(), start=1) if part]
        for group in matched or (0,):
            start, end = match.span(group)
            found = text[start:end].translate(_no_masks())
            if found and not _PLACEHOLDER.fullmatch(found):
                yield Found(
                    start, _end_of_word(text, end), detector.labels[group - 1 if several else 0]
                )


def _end_of_word(text: str, end: int) -> int:
    """Where the word ends in which a secret does: of a key that is longer than its vendor made them
    when the row was written, no end is left."""
    rest = _REST_OF_WORD.match(text, end)
    return rest.end() if rest else end


def _hide(find: Callable[[_Lines], Iterable[Found]], lines: _Lines) -> _Lines:
    """The lines with marks in the place of what is found; the same where that is nothing."""
    text, parts, end = lines.text, [], 0
    for secret in _joined(find(lines)):
        parts += [text[end : secret.start], _shown(secret, text)]
        end = secret.end
    return _Lines("".join([*parts, text[end:]])) if parts else lines


def _joined(found: Iterable[Found]) -> Iterator[Found]:
    """In the order of the text; what overlaps as one, with the label of the longest."""
    last: Found | None = None
    for secret in sorted(found, key=lambda found: (found.start, -found.end)):
        if last is None or secret.start >= last.end:
            if last:
                yield last
            last = secret
        elif secret.end > last.end:
            last = Found(last.start, secret.end, last.label)
    if last:
        yield last


def _shown(secret: Found, text: str) -> str:
    return "\n".join([_mark(secret.label)] * (text.count("\n", secret.start, secret.end) + 1))


def _mark(label: str) -> str:
    return chr(_FIRST_MARK + _labels().index(label))


@cache
def _labels() -> tuple[str, ...]:
    secrets = (row.shown or row.name for row in read_rows("secrets", "secret", Secret))
    tokens = (row.name for row in read_rows("secrets", "token", Token))
    return tuple(dict.fromkeys((*secrets, *tokens)))


@cache
def _marks() -> re.Pattern[str]:
    return re.compile(f"<secret: ({'|'.join(map(re.escape, _labels()))})>")


@cache
def _masks() -> dict[int, str]:
    return {ord(_mark(label)): f"<secret: {label}>" for label in _labels()}


@cache
def _no_masks() -> dict[int, None]:
    return dict.fromkeys(_masks())


class _Row(NamedTuple):
    """A row told by what stands around a secret."""

    signs: frozenset[str]
    """Words of which one stands in the line."""
    about: frozenset[str]
    """Words of which one stands in the text; where there are none, any text will do."""
    reach: int
    """How many lines it goes over."""
    detector: Detector


@cache
def _rows() -> tuple[_Row, ...]:
    return tuple(
        _Row(
            _words(row.sign),
            _words(row.about),
            row.lines,
            Detector(row.pattern, re.IGNORECASE | re.MULTILINE, (row.shown or row.name,)),
        )
        for row in read_rows("secrets", "secret", Secret)
    )


@cache
def _columns() -> tuple[tuple[frozenset[str], str, str], ...]:
    """The headings of secrets: words one of which stands there, the heading, and what is shown."""
    return tuple(
        (_words(row.sign), row.pattern, row.name) for row in read_rows("secrets", "column", Column)
    )


def _words(sign: str) -> frozenset[str]:
    plain = sign.replace("\\n", "\n").replace("\\t", "\t")
    return frozenset(plain.split("¦")) if sign else frozenset()


@cache
def _all_words() -> frozenset[str]:
    return frozenset().union(
        *(row.signs | row.about for row in _rows()),
        *(words for words, _heading, _label in _columns()),
    )


@cache
def _any_token() -> Detector:
    """All forms of tokens in one expression, each in a group. A long word is tried once."""
    rows = read_rows("secrets", "token", Token)
    forms = "|".join(f"({row.pattern})" for row in rows)
    pattern = f"{_LONG_WORD}(?:{forms})"
    return Detector(pattern, re.NOFLAG, tuple(row.name for row in rows))


@cache
def _compiled(pattern: str, flags: re.RegexFlag) -> re.Pattern[str]:
    """Compiled where it is first needed: most texts hold the words of a few rows alone, and to
    compile all of them takes longer than the rest of an answer."""
    return re.compile(pattern, flags)
