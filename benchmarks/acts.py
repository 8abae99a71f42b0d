"""How often the act of a sentence is seen: `python -m benchmarks.acts FILE...`.

Each line of the files is an object of JSON: `text`, `act` (a value of `Act`; `other` is a near
miss, which has the words of an act and is none) and `lang` (`en` or `zh`). A sentence is right when
all that is done in it is this act. Prints tables in Markdown: by language, by act, and what acts
are taken for.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from kb.conversation.acts import Act, acts_of
from kb.conversation.language import Language

_MOST_CONFUSED = 12
"""Rows of the table of what acts are taken for."""


class Sentence(msgspec.Struct, frozen=True):
    """A line of a file."""

    text: str
    act: Act
    lang: Language


class Seen(msgspec.Struct, frozen=True):
    """A sentence, the acts that were seen in it, in their order, and the time that took."""

    sentence: Sentence
    acts: tuple[Act, ...]
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether the act is the only one seen."""
        return set(self.acts) == {self.sentence.act}

    @property
    def is_near_miss(self) -> bool:
        """Whether there is no act to see."""
        return self.sentence.act is Act.OTHER


def read_sentences(paths: Sequence[Path]) -> list[Sentence]:
    """The sentences of some files.

    Raises:
        msgspec.ValidationError: a line is not one.
    """
    lines = (line for path in paths for line in path.read_bytes().splitlines())
    return [msgspec.json.decode(line, type=Sentence) for line in lines if line.strip()]


def look(sentences: Sequence[Sentence]) -> Iterator[Seen]:
    """What is seen in each sentence."""
    acts_of("to load the classifier")
    for sentence in sentences:
        started = time.perf_counter()
        acts = tuple(acted.act for acted in acts_of(sentence.text))
        yield Seen(sentence, acts, time.perf_counter() - started)


def report(seen: Sequence[Seen]) -> str:
    """The tables, in Markdown."""
    milliseconds = np.array([one.seconds for one in seen]) * 1000
    half, most = np.percentile(milliseconds, (50, 95))
    return (
        "| | acts | near misses |\n| --- | --: | --: |\n"
        + "".join(_row(name, _of(seen, name)) for name in ("all", *Language))
        + f"\np50 {half:.1f} ms, p95 {most:.1f} ms a sentence.\n"
        + "\n| act | seen |\n| --- | --: |\n"
        + "".join(f"| {act} | {_share(_with(seen, act))} |\n" for act in Act if _with(seen, act))
        + "\n| act | taken for | times |\n| --- | --- | --: |\n"
        + "".join(f"| {act} | {other} | {times} |\n" for (act, other), times in _confused(seen))
    )


def _of(seen: Sequence[Seen], language: str) -> list[Seen]:
    return [one for one in seen if language in ("all", one.sentence.lang)]


def _with(seen: Sequence[Seen], act: Act) -> list[Seen]:
    return [one for one in seen if one.sentence.act is act]


def _row(name: str, seen: Sequence[Seen]) -> str:
    near = [one for one in seen if one.is_near_miss]
    acts = [one for one in seen if not one.is_near_miss]
    return f"| {name} | {_share(acts)} | {_share(near)} |\n"


def _share(seen: Sequence[Seen]) -> str:
    """How many are right, such as `81 of 90 (90.0%)`."""
    right = sum(one.is_right for one in seen)
    return f"{right} of {len(seen)} ({right / len(seen):.1%})" if seen else ""


def _confused(seen: Sequence[Seen]) -> list[tuple[tuple[str, str], int]]:
    pairs = ((one.sentence.act, " + ".join(one.acts)) for one in seen if not one.is_right)
    return Counter(pairs).most_common(_MOST_CONFUSED)


def main() -> None:
    """Read the files, look, print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.acts")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    options = parser.parse_args()
    print(report(list(look(read_sentences(options.files)))))


if __name__ == "__main__":
    main()
