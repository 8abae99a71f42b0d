"""All imports of the user, searched together."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np

from index import postings
from index.codes import CodeIndex, cosines
from index.dense import Vectors
from index.documents import Query
from index.encoder import Encoder
from index.postings import Numbers, Postings
from index.progress import Notify, silent_notify
from index.tokens import is_pair, tokenize
from kb.backlog.model import Report
from kb.backlog.store import BacklogStore, Filed
from kb.errors import KbError
from kb.paths import BACKLOG_SUFFIX, backlog_directory, backlogs

_FIT, _COSINE, _RARE_WORDS, _CONSTANT = 6.39, 3.71, 0.51, -3.73
"""Logistic weights of what a report shares with the question, fitted on 198 questions about reports
of 13 public collections, mostly in other words, so that the right report comes first. Scaled with
22 questions more about something else so that the score of the first lead is the share of such
leads that were the right report."""
_REMEDY = 0.17
"""What a remedy adds: of two reports that fit alike, the one that tells its end helps more."""

_FOREIGN, _FAMILIAR = 6.0, 0.55
"""What speaks against a report that holds less than a share of the words that were asked: most
likely it only comes from the same field. Chosen on 35 questions about reports of 13 further
collections and 43 about something else. Of 36 others, whose totals were seen meanwhile, one more is
among the first three and one fewer is shown; of 8 about something else one is shown, not two."""

_USUAL_COSINE, _USUAL_SLOPE = 0.25, 0.4
"""The cosine that a report usually has, by the share of the words that it holds."""

_STRADDLING = 0.5
"""How much a pair of Chinese characters that no report holds counts: often it is the end of a word
and the beginning of the next one."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

NEAREST_CODES = 120
"""Compared byte by byte with the question, of those nearest bit by bit."""
_MAX_WORDS = 160
"""Of a question; its most telling lines come first."""
_CANDIDATES = 60
"""Kept of each way to find reports."""


class Asked(msgspec.Struct, frozen=True):
    """A question as all imports see it."""

    frequencies: dict[str, int]
    """In how many reports each of its words occurs."""
    rarities: dict[str, float]
    """How much each of its words tells."""
    passages: Vectors
    """What it means: a row a passage."""
    model: str
    """What encoded it."""

    is_chinese: bool
    """Whether it has Chinese words, some of which no report holds but in the same translation."""

    most: float
    """What all its words weigh together."""
    rarest: float
    """What a word weighs that a single report holds."""


class Hit(msgspec.Struct, frozen=True):
    """What brought a report up."""

    coverage: float
    """The share of the question's words that it holds, each by how rare it is; 0 to 1."""
    fit: float
    """BM25 as a share of the most that any report could have; 0 to 1."""
    cosine: float | None
    """How near its meaning is; None where it was not encoded."""
    rare_words: float
    """What the words that it holds weigh together, where one that a single report holds weighs 1: a
    short question tells little."""
    foreign: float = 0.0
    """The share of the question's words that it lacks and a report of the same case would have."""

    @property
    def evidence(self) -> float:
        """How much speaks for the question's case, as the logarithm of the odds."""
        near = _USUAL_COSINE + _USUAL_SLOPE * self.coverage if self.cosine is None else self.cosine
        words = _FIT * self.fit + _RARE_WORDS * math.log1p(self.rare_words)
        return _CONSTANT + words + _COSINE * max(near, 0.0) - _FOREIGN * self.foreign


class Found(msgspec.Struct, frozen=True):
    """A report that a question brought up."""

    store: BacklogStore
    number: int
    hit: Hit
    filed: Filed

    @property
    def report(self) -> Report:
        """The report itself."""
        return self.filed.report

    @property
    def score(self) -> float:
        """How likely it is to be the right report; 0 to 1."""
        remedy = _REMEDY if self.report.resolution else 0.0
        return 1 / (1 + math.exp(-self.hit.evidence - remedy))


def path_of(name: str) -> Path:
    """The file of an import, whether it exists or not.

    Raises:
        KbError: the name cannot be that of a file.
    """
    if not _NAME.fullmatch(name):
        raise KbError(
            f"`{name[:64]}` is no name for an import; use up to 64 letters, digits, `.`, `_`, `-`"
        )
    return backlog_directory() / f"{name}{BACKLOG_SUFFIX}"


class Backlog:
    """The imports as they are on disk, opened when they are first searched. Safe to use from one
    thread. An import that cannot be read is told once and left out."""

    def __init__(self, notify: Notify = silent_notify) -> None:
        self._notify = notify
        self._open: dict[Path, BacklogStore] = {}
        self._codes: dict[Path, tuple[int, Numbers, CodeIndex | None]] = {}
        self._told: set[str] = set()

    def search(self, query: Query, encoder: Encoder) -> tuple[Asked, list[Found]]:
        """The reports of all imports that words or meaning bring up, best first."""
        stores = list(self._stores())
        asked = self._asked(query, encoder, stores)
        hits = []
        for store in stores:
            with self._telling():
                hits += [(hit, store, number) for number, hit in self._search(store, asked).items()]
        hits.sort(key=lambda one: (-one[0].evidence, one[1].path, one[2]))
        found = self._read(hits[:_CANDIDATES])
        return asked, sorted(found, key=lambda one: one.score, reverse=True)

    def _read(self, hits: Iterable[tuple[Hit, BacklogStore, int]]) -> Iterator[Found]:
        for hit, store, number in hits:
            with self._telling():
                if filed := store.filed(number):
                    yield Found(store, number, hit, filed)

    def _asked(self, query: Query, encoder: Encoder, stores: Sequence[BacklogStore]) -> Asked:
        told = dict.fromkeys(word for line in query.lines for word in tokenize(line))
        words = list(told)[:_MAX_WORDS]
        counts: Counter[str] = Counter()
        total = 0
        for store in stores:
            with self._telling(), store.reading() as connection:
                counts.update(postings.frequencies(connection, words))
                total += store.highest()  # those that gave way still count among the words
        chinese = any(map(is_pair, words))
        # An English word that no report holds may be a bad gloss of a Chinese question.
        known = [word for word in words if counts[word] or is_pair(word) or not chinese]
        rarities = {
            word: postings.rarity(counts[word], total, pair=is_pair(word))
            * (_STRADDLING if is_pair(word) and not counts[word] else 1.0)
            for word in known
        }
        passages = (
            encoder.encode(query.passages) if total else np.zeros((0, encoder.dim), np.float32)
        )
        most = sum(rarities.values()) or 1.0
        rarest = postings.rarity(1, total)
        return Asked(counts, rarities, passages, encoder.name, chinese, most, rarest)

    def report(self, identifier: str) -> Report | None:
        """The report of this id, of whichever import."""
        for store in self._stores():
            with self._telling():
                if report := store.report(identifier):
                    return report
        return None

    def close(self) -> None:
        """Release the files."""
        for store in self._open.values():
            store.close()
        self._open.clear()
        self._codes.clear()

    def _stores(self) -> Iterator[BacklogStore]:
        paths = backlogs()
        for lost in self._open.keys() - set(paths):
            self._open.pop(lost).close()
            self._codes.pop(lost, None)
        for path in paths:
            with self._telling():
                if path not in self._open:
                    self._open[path] = BacklogStore.open(path)
                yield self._open[path]

    def _search(self, store: BacklogStore, asked: Asked) -> dict[int, Hit]:
        """What brings up reports of one import, by their numbers."""
        with store.reading() as connection:
            read = list(postings.read(connection, postings.affordable(asked.frequencies)))
        scores = postings.score(read, asked.rarities, store.highest())
        scores[store.gone()] = 0
        best = _best(scores)
        near = self._near(store, asked, best)
        held = _held(read, asked.rarities, list(dict.fromkeys([*best, *near])))
        return {
            number: Hit(
                held[number] / asked.most,
                float(scores[number]) / asked.most,
                near.get(number),
                held[number] / asked.rarest,
                0.0 if asked.is_chinese else max(0.0, _FAMILIAR - held[number] / asked.most),
            )
            for number in held
        }

    def _near(self, store: BacklogStore, asked: Asked, also: Sequence[int]) -> dict[int, float]:
        """The cosines of the reports nearest in meaning, and of others that were found."""
        numbers, index = self._index(store, asked)
        if index is None or not len(asked.passages):
            return {}
        nearest = (index.nearest(row, NEAREST_CODES) for row in asked.passages)
        near = {int(numbers[place]) for places in nearest for place in places}
        known, small = store.vectors(sorted(near.union(also)), asked.passages.shape[1])
        best = np.max([cosines(row, small) for row in asked.passages], axis=0)
        cosine = dict(zip(known, best.tolist(), strict=True))
        kept = sorted(near & cosine.keys(), key=cosine.__getitem__, reverse=True)[:_CANDIDATES]
        return {number: cosine[number] for number in (*also, *kept) if number in cosine}

    def _index(self, store: BacklogStore, asked: Asked) -> tuple[Numbers, CodeIndex | None]:
        """The codes of an import, read again where some were added."""
        blocks = store.blocks()
        known = self._codes.get(store.path)
        if known is None or known[0] != blocks:
            numbers, codes = store.codes(asked.passages.shape[1])
            usable = len(codes) > 0 and store.encoder() == asked.model
            known = blocks, numbers, CodeIndex(codes) if usable else None
            self._codes[store.path] = known
        return known[1:]

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Tell an error of one import, once, and go on with the others."""
        try:
            yield
        except KbError as error:
            sentence = f"{error}; no lead of it is shown"
            if sentence not in self._told:
                self._told.add(sentence)
                self._notify(sentence)


def _best(scores: Vectors) -> list[int]:
    """The numbers of the reports with the highest scores above 0."""
    count = min(_CANDIDATES, len(scores))
    top = np.argpartition(scores, -count)[-count:]
    return [int(number) for number in top if scores[number] > 0]


def _held(
    read: Sequence[Postings], rarities: Mapping[str, float], numbers: Sequence[int]
) -> dict[int, float]:
    """How much the words that each report holds weigh together."""
    asked = np.array(numbers, np.uint32)
    sums = np.zeros(len(asked))
    for one in read:
        places = np.minimum(np.searchsorted(one.numbers, asked), len(one.numbers) - 1)
        sums += np.where(one.numbers[places] == asked, rarities[one.word], 0.0)
    return dict(zip(numbers, sums.tolist(), strict=True))
