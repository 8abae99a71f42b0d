"""The object that all faces call. One thread owns the knowledge, so that no face blocks.

Every method returns a future: the command line waits for it, the screen and a server await it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Self, TypeVar

from index.progress import Notify, Report, silent_notify, silent_report
from kb.errors import CorpusError, KbError, short_name, unknown
from kb.paths import backlogs

if TYPE_CHECKING:
    from kb.backlog import Backlog
    from kb.backlog.gaps import Gap
    from kb.backlog.store import BacklogStore
    from kb.checks import Observation
    from kb.contribute.draft import Answers
    from kb.conversation import Conversation
    from kb.conversation.next_step import Task
    from kb.corpus.base import IndexState, KnowledgeBase
    from kb.diagnosis import Diagnosis, NextCheck
    from kb.diagnosis.find import FoundRecord
    from kb.diagnosis.scan import RangeScan
    from kb.evidence import Evidence
    from kb.evidence.survey import Survey
    from kb.guides import Guide, Record
    from kb.incident import Incident, Kind
    from kb.lead import Lead
    from kb.log import Block, Log
    from kb.log.ranges import Range
    from kb.settings import Settings

Result = TypeVar("Result")

REFRESH_SECONDS = 1.0
"""Minimum interval between checks of all incident files for changes; a check takes 10 ms."""

DEFAULT_MATCHES = 5
"""Number of matches of an answer unless the user asks for another; as many as fit on a screen."""


SIGNAL_SECONDS = 0.5
"""How long a signal may stay unheard that came when a wait was about to begin: Python looks for
signals between its own steps, and a wait is one step."""


def result_of(future: Future[Result]) -> Result:
    """Wait for the result, and hear Ctrl-C meanwhile."""
    while not wait([future], SIGNAL_SECONDS).done:
        pass
    return future.result()


class SupersededError(BaseException):
    """The result is no longer needed: a newer diagnosis began, or the service is closed. Not an
    Exception, like asyncio's CancelledError: no input failed."""


class Service:
    """Answers one request after the other; a newer diagnosis stops an older one.

    It answers from the incidents as they are on disk: what was added, changed or removed since the
    last request is taken up by the next one. The modules that search are imported in its thread:
    they take as long as all else.
    """

    def __init__(
        self,
        settings: Settings,
        report: Report = silent_report,
        notify: Notify = silent_notify,
        *,
        leads: bool = True,
    ) -> None:
        """`report` and `notify` are called in the thread of the service. Without `leads` nobody
        looks into the user's backlog: not for each of thousands of logs."""
        self._leads = leads
        self._settings = settings
        self._report = report
        self._notify = notify
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="service")
        self._knowledge: KnowledgeBase | None = None
        self._backlog: Backlog | None = None
        self._told: set[str] = set()
        """What was wrong with the backlogs: it is told once."""
        self._looked_at = -REFRESH_SECONDS
        self._closed = False
        self._stop = threading.Event()
        # Held while a request is handed over, so that threads that ask at once do it in turn.
        self._door = threading.Lock()

    def open(self) -> Future[int]:
        """Load the index, after building it where it is missing; give the number of incidents.
        Without it the first request does the same.

        Raises (in the future):
            KbError: with one sentence for the user.
        """
        return self._ask(len)

    def diagnose(
        self,
        open_log: Callable[[], Log],
        top: int = DEFAULT_MATCHES,
        ranges: Iterable[RangeScan] | None = None,
    ) -> Future[Diagnosis]:
        """Say what is known about a log, which is opened and read in the thread. All `ranges` of a
        log of one file may come from `scan`, of other processes.

        Raises (in the future):
            LogError: it cannot be read.
            KbError: a range was scanned for other incidents.
            SupersededError: another diagnosis began.
        """
        return self._diagnose(open_log, top, self._stop_older(), ranges)

    def scan(self, part: Range) -> Future[RangeScan]:
        """Scan a range of a large file, for its diagnosis in another process.

        Raises (in the future):
            LogError: the file was changed.
            OSError: it cannot be read.
        """

        def look(knowledge: KnowledgeBase) -> RangeScan:
            from kb.diagnosis.scan import scan_range

            return scan_range(part, knowledge.signatures, knowledge.markers)

        return self._ask(look)

    def diagnose_for_one(
        self, open_log: Callable[[], Log], top: int, stop: threading.Event
    ) -> Future[Diagnosis]:
        """The same for one client of several: it stops no other, and ends when `stop` is set.

        Raises (in the future):
            LogError: it cannot be read.
            SupersededError: it was stopped.
        """
        return self._diagnose(open_log, top, stop)

    def _diagnose(
        self,
        open_log: Callable[[], Log],
        top: int,
        stop: threading.Event,
        ranges: Iterable[RangeScan] | None = None,
    ) -> Future[Diagnosis]:
        def check() -> None:
            if stop.is_set() or self._closed:
                raise SupersededError

        def search(knowledge: KnowledgeBase) -> Diagnosis:
            from kb.diagnosis import diagnose
            from kb.log import Log

            check()
            watched = Log(source.watched(check) for source in open_log().sources)
            return diagnose(watched, knowledge, top, ranges)

        return self._ask(search)

    def observations(self, text: str) -> Future[tuple[Observation, ...]]:
        """What a text shows that may hold outputs of checks; empty where it holds none, or where
        they show nothing."""

        def read(knowledge: KnowledgeBase) -> tuple[Observation, ...]:
            from kb.diagnosis import read_text

            return read_text(text, None, knowledge).observations

        return self._ask(read)

    def search(self, text: str, kinds: Collection[Kind], most: int) -> Future[list[FoundRecord]]:
        """The records of some kinds that are nearest to a text, best first."""

        def find(knowledge: KnowledgeBase) -> list[FoundRecord]:
            from kb.diagnosis.find import find_records

            return find_records(text, kinds, knowledge)[:most]

        return self._ask(find)

    def survey(self, blocks: Sequence[Block]) -> Future[tuple[Survey, ...]]:
        """Which lines of each block are worth a diagnosis; an older diagnosis goes on."""

        def look(knowledge: KnowledgeBase) -> tuple[Survey, ...]:
            from kb.evidence.survey import survey

            return tuple(survey(block, knowledge.signatures, knowledge.markers) for block in blocks)

        return self._ask(look)

    def reply(self, conversation: Conversation, text: str) -> Future[Conversation]:
        """Take in what the user says. If that fails unforeseen, the conversation goes on without
        it, and says so."""

        def answer(knowledge: KnowledgeBase) -> Conversation:
            from kb.containment import contained
            from kb.conversation import leave_out, reply

            losses: list[str] = []
            with contained("This message could not be read, so nothing changes", losses.append):
                return reply(conversation, text, knowledge)
            return leave_out(conversation, text, f"{losses[0]}.")

        return self._ask(answer)

    def next_check(self, conversation: Conversation) -> Future[NextCheck | None]:
        """The check to run now; None for a match, whose fix comes next, for what is solved, and
        where no outcome would change what to do."""

        def find(knowledge: KnowledgeBase) -> NextCheck | None:
            from kb.conversation.next_step import check_to_run

            return check_to_run(conversation, knowledge)

        return self._ask(find)

    def task(self, conversation: Conversation) -> Future[Task | None]:
        """What to do now: a check to run, or a step of a fix."""

        def find(knowledge: KnowledgeBase) -> Task | None:
            from kb.conversation.next_step import task_of

            return task_of(conversation, knowledge)

        return self._ask(find)

    def draft(self, diagnosis: Diagnosis) -> Future[Incident]:
        """A new record of this case, for a person to complete; secrets are masked."""

        def write(knowledge: KnowledgeBase) -> Incident:
            from kb.contribute.draft import draft_record

            return draft_record(diagnosis, knowledge)

        return self._ask(write)

    def draft_of_report(self, identifier: str) -> Future[Incident]:
        """A new record made of an imported report, for a person to complete.

        Raises (in the future):
            KbError: no import has such a report.
        """

        def write(knowledge: KnowledgeBase) -> Incident:
            from kb.backlog import Backlog
            from kb.backlog.draft import draft_of

            self._backlog = self._backlog or Backlog(self._notify)
            report = self._backlog.report(identifier)
            if report is None:
                raise KbError(
                    f"no imported report has the id `{identifier}`; kb ask --json shows ids"
                )
            return draft_of(report, knowledge)

        return self._ask(write)

    def gaps(self, store: BacklogStore) -> Future[list[Gap]]:
        """The cases of an import that no record matches, most frequent first."""

        def find(knowledge: KnowledgeBase) -> list[Gap]:
            from kb.backlog.gaps import find_gaps

            return list(find_gaps(store, knowledge))

        return self._ask(find)

    def blank(self, answers: Answers) -> Future[Incident]:
        """A new record made of what a person answered."""

        def write(knowledge: KnowledgeBase) -> Incident:
            from kb.contribute.draft import blank_record

            return blank_record(answers, knowledge)

        return self._ask(write)

    def leads(self, text: str) -> Future[tuple[Lead, ...]]:
        """The reports of the user's own backlog that are near to a text; nobody reviewed them."""

        def find(knowledge: KnowledgeBase) -> tuple[Lead, ...]:
            from kb.diagnosis.find import evidence_in

            return knowledge.find_leads(evidence_in(text, knowledge))

        return self._ask(find)

    def record(self, identifier: str) -> Future[Record]:
        """One record of any kind.

        Raises (in the future):
            CorpusError: there is none; says which ids are close.
        """

        def find(knowledge: KnowledgeBase) -> Record:
            guides = knowledge.guides.by_id
            record = knowledge.incident(identifier) or guides.get(identifier)
            if record is None:
                known = [*knowledge.ids(), *guides]
                raise CorpusError(unknown("record", short_name(identifier), known, "search for it"))
            return record

        return self._ask(find)

    def incidents(self) -> Future[list[Incident]]:
        """All records, in order of their ids."""
        return self._ask(lambda knowledge: knowledge.incidents())

    def guides(self) -> Future[list[Guide]]:
        """All checks and playbooks, in order of their ids."""
        return self._ask(lambda knowledge: list(knowledge.guides.by_id.values()))

    def state(self) -> Future[IndexState]:
        """The index from which it answers now."""
        return self._ask(lambda knowledge: knowledge.state)

    def markers(self) -> Future[bytes]:
        """The compiled signs of failure, for `Scanner.cached`: a scanner serves one thread."""
        return self._ask(lambda knowledge: knowledge.markers.dump())

    def refresh(self) -> None:
        """Look for changed incidents before the next request, however soon it comes."""
        self._looked_at = -REFRESH_SECONDS

    def close(self) -> None:
        """Stop reading and release the index; does not wait. Requests without an answer so far, and
        all later ones, raise SupersededError."""
        with self._door:
            if not self._closed:
                self._closed = True
                self._stop.set()
                self._pool.submit(self._release)
                self._pool.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, question: Callable[[KnowledgeBase], Result]) -> Future[Result]:
        with self._door:
            if not self._closed:
                return self._pool.submit(lambda: question(self._current()))
        refused: Future[Result] = Future()
        refused.set_exception(SupersededError())
        return refused

    def _stop_older(self) -> threading.Event:
        """Stop the diagnosis that was asked for before; return what stops the new one."""
        with self._door:
            self._stop.set()
            self._stop = threading.Event()
            return self._stop

    def _current(self) -> KnowledgeBase:
        """The knowledge as it is on disk now."""
        if self._closed:
            raise SupersededError
        now = time.monotonic()
        due = now - self._looked_at >= REFRESH_SECONDS
        if due:
            self._looked_at = now  # before looking: what changes meanwhile may ask for another look
        if self._knowledge is None:
            self._knowledge = self._opened()
        elif due:
            self._refresh(self._knowledge)
        return self._knowledge

    def _opened(self) -> KnowledgeBase:
        from kb.corpus.base import KnowledgeBase

        knowledge = KnowledgeBase.open(self._settings, self._reported, self._notify)
        if self._leads:
            knowledge.find_leads = self._find_leads
        return knowledge

    def _refresh(self, knowledge: KnowledgeBase) -> None:
        try:
            knowledge.refresh()
        except KbError as error:
            self._notify(f"{error}; kb continues with the previous incidents")

    def _reported(self, done: int, total: int) -> None:
        if self._closed:
            raise SupersededError
        self._report(done, total)

    def _find_leads(self, evidence: Evidence) -> tuple[Lead, ...]:
        """What the user's own backlog holds about some evidence. Whatever is wrong with it is told,
        and disturbs no diagnosis."""
        if self._knowledge is None or not self._has_backlogs():
            return ()
        from kb.backlog import Backlog, find_leads
        from kb.containment import contained

        self._backlog = self._backlog or Backlog(self._notify)
        with contained("no leads are shown", self._notify):
            return find_leads(evidence, self._backlog, self._knowledge.encoder)
        return ()

    def _has_backlogs(self) -> bool:
        try:
            return bool(backlogs())
        except KbError as error:
            if str(error) not in self._told:
                self._told.add(str(error))
                self._notify(f"{error}; no leads are shown")
            return False

    def _release(self) -> None:
        if self._backlog is not None:
            self._backlog.close()
        if self._knowledge is not None:
            self._knowledge.close()
            self._knowledge = None
