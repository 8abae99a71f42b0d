"""Everything a diagnosis needs, opened: the tiers, the encoder, the scanners."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

import msgspec

from index.documents import Candidate, Query
from index.encoder import Encoder
from index.errors import StoreMissing
from index.progress import Notify, Report, silent_notify, silent_report
from index.signatures import Scanner
from kb.corpus.document import from_payload
from kb.corpus.guide_shelf import GuideShelf
from kb.corpus.sync import (
    IndexSync,
    answers_sync,
    curated_sync,
    guides_sync,
    load_in_background,
)
from kb.corpus.tier import Tier, TierName
from kb.evidence import Evidence
from kb.evidence.markers import MARKER_PATTERNS
from kb.incident import Incident
from kb.lead import Lead
from kb.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LeadFinder = Callable[[Evidence], tuple[Lead, ...]]
"""Looks into the user's own backlog. It must not raise: no lead is worth a diagnosis."""

NO_TIERS: Mapping[TierName, Tier] = MappingProxyType({})


class IndexState(msgspec.Struct, frozen=True):
    """A state of the records: two that are equal hold the same."""

    fingerprint: str
    """Of the files of every kind."""
    generation: int
    """Grows with each update of the index."""


class KnowledgeBase:
    """The curated records, ready to be asked, and further tiers beside them. Safe to use from one
    thread."""

    def __init__(
        self,
        curated: Tier,
        encoder: Callable[[], Encoder],
        others: Mapping[TierName, Tier] = NO_TIERS,
        sync: IndexSync | None = None,
        guides_sync: IndexSync | None = None,
        covered: float | None = None,
    ) -> None:
        """With `sync`, and `guides_sync` for the tier of guides among the `others`, `refresh` takes
        up changed files. `covered` is the setting."""
        self.covered = covered
        self._curated = curated
        self._others = dict(others)
        self._encoder = encoder
        self._sync = sync
        self._guides_sync = guides_sync
        self.find_leads: LeadFinder = lambda _evidence: ()
        """Set by the service: a run over many logs asks for none."""
        self._ahead = ThreadPoolExecutor(1, "encode ahead")
        self._load_scanners()

    def _load_scanners(self) -> None:
        self.signatures: Scanner = self._curated.snapshot.scanner()
        self.markers: Scanner = self._curated.snapshot.extra_scanner(MARKER_PATTERNS)

    @property
    def encoder(self) -> Encoder:
        """The encoder; waits until it is loaded."""
        return self._encoder()

    def encode_ahead(self, passages: Sequence[str]) -> None:
        """Begin to encode what will be searched for: the encoder needs no time of Python's."""
        self._ahead.submit(lambda: self._encoder().encode(passages))

    def search(self, query: Query, tier: TierName = TierName.CURATED) -> list[Candidate]:
        """Search the index of one tier; a tier that nobody has made gives no results."""
        if tier is TierName.CURATED:
            return self._curated.search(query)
        with suppress(StoreMissing):
            return self._others[tier].search(query) if tier in self._others else []
        return []

    def vectors(self, texts: Sequence[str], tier: TierName) -> NDArray[np.float32]:
        """One row of unit length per text: (n, dim). Passages of the tier are not encoded again."""
        return self._others[tier].vectors(texts)

    def incidents(self) -> list[Incident]:
        """All curated records, in order of their ids."""
        return [from_payload(payload).incident for payload in self._curated.payloads().values()]

    def incident(self, identifier: str) -> Incident | None:
        """One curated record; None where there is none."""
        payload = self._curated.read(lambda snapshot: snapshot.payload(identifier))
        return from_payload(payload).incident if payload else None

    def rarities(self, terms: Collection[str]) -> dict[str, float]:
        """How rare each token is among the curated records, from 0 to 1."""
        return self._curated.read(lambda snapshot: snapshot.rarities(terms))

    def ids(self) -> list[str]:
        """The ids of all curated records."""
        return list(self._curated.snapshot.digests())

    @cached_property
    def guides(self) -> GuideShelf:
        """The checks and playbooks."""
        return GuideShelf(self._others.get(TierName.GUIDES))

    @property
    def state(self) -> IndexState:
        """What it was made of, and when."""
        snapshot = self._curated.snapshot
        return IndexState(snapshot.fingerprint, snapshot.generation)

    def __len__(self) -> int:
        return len(self._curated.snapshot)

    def refresh(self) -> bool:
        """Go on with the records as they are on disk now; tell whether they had changed.

        Raises:
            KbError: with one sentence for the user; the records as they were stay in use.
        """
        if self._sync is None or self._sync.is_current(self._curated.snapshot):
            return False
        if self._guides_sync:
            self._refresh_guides(self._guides_sync)
        self._curated.replace(self._sync.open())
        self._load_scanners()
        return True

    def _refresh_guides(self, sync: IndexSync) -> None:
        tier = self._others[TierName.GUIDES]
        if tier.is_open:
            tier.replace(sync.open())
            self.__dict__.pop("guides", None)

    def close(self) -> None:
        """Release the indexes."""
        self._ahead.shutdown(wait=False, cancel_futures=True)
        for tier in (self._curated, *self._others.values()):
            tier.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def open(
        cls, settings: Settings, report: Report = silent_report, notify: Notify = silent_notify
    ) -> KnowledgeBase:
        """Open the curated tier as `IndexSync` does, while the encoder loads in a second thread.
        Other tiers are opened when they are first asked.

        Raises:
            KbError: with one sentence for the user.
        """
        encoder = load_in_background(settings.model)
        sync = curated_sync(settings, encoder, report, notify)
        snapshot = sync.open()
        curated = Tier(TierName.CURATED, lambda: snapshot, encoder, sync.open_again)
        of_guides = guides_sync(settings, encoder, report, notify)
        # A fingerprint covers the files of every kind, so one look at them is enough for both.
        open_guides = lambda: of_guides.open(curated.snapshot.fingerprint)  # noqa: E731
        guides = Tier(TierName.GUIDES, open_guides, encoder, of_guides.open_again)
        of_answers = answers_sync(settings, encoder, report, notify)
        answers = Tier(TierName.ANSWERS, of_answers.open, encoder, of_answers.open_again)
        others = {TierName.GUIDES: guides, TierName.ANSWERS: answers}
        return cls(curated, encoder, others, sync, of_guides, settings.covered)
