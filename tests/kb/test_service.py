"""One service before all faces: it answers from the records as they are now, in order, and stops
when nobody needs the answer any more."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

import index.errors
import kb.errors
from kb.contribute.draft import save
from kb.conversation import begin
from kb.diagnosis import Diagnosis
from kb.incident import Kind
from kb.log import Log, Source
from kb.service.service import Service, SupersededError, result_of
from kb.settings import Settings
from kb.verdict import Verdict
from tests.conftest import copy_cache, environment

WAIT_SECONDS = 60
"""Nothing here takes a tenth of it; a test that waits for longer fails."""
SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"
SHM_RECORD = "nccl-shm-too-small-container"
XID = "NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus."
XID_RECORD = "xid79-gpu-fallen-off-bus"
PUMP = "RuntimeError: the flux capacitor of pump 7 is out of plutonium"

pytestmark = pytest.mark.xdist_group("service")


def test_a_signal_that_does_not_wake_the_wait_is_heard() -> None:
    """As one that comes just before it: here another thread takes it."""
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    thread = threading.Thread(
        target=lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
    )
    starter = threading.Timer(0.1, thread.start)
    starter.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            result_of(Future())
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.fixture(scope="module")
def module_cache(built_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of these tests alone, so that the index of the team is built once."""
    return copy_cache(built_cache, tmp_path_factory.mktemp("service") / "cache")


@pytest.fixture
def team(module_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty directory of a team, beside the shipped records."""
    monkeypatch.setenv("KB_CACHE", str(module_cache))
    directory = module_cache.parent / "team"
    directory.mkdir(exist_ok=True)
    for record in directory.iterdir():
        record.unlink()
    return directory


@pytest.fixture
def notices() -> list[str]:
    """What the service told."""
    return []


@pytest.fixture
def service(team: Path, notices: list[str]) -> Iterator[Service]:
    with Service(Settings(incidents=(str(team),)), notify=notices.append) as opened:
        opened.open().result(WAIT_SECONDS)
        yield opened


def asked(service: Service, text: str) -> Diagnosis:
    return service.diagnose(lambda: Log.from_text(text)).result(WAIT_SECONDS)


def first(diagnosis: Diagnosis) -> str | None:
    return diagnosis.matches[0].incident.id if diagnosis.matches else None


def write_record(path: Path, pattern: str, title: str = "The lamp of the pump is red") -> None:
    """By hand: a record of the package under another name, with a signature of its own."""
    source = next(Path("incidents").glob(f"*/{XID_RECORD}.md")).read_text()
    old_title = next(line for line in source.splitlines() if line.startswith("title:"))
    signature = f"signatures:\n- pattern: '{pattern}'\n  strength: strong\n"
    path.write_text(
        source.replace(f"id: {XID_RECORD}", f"id: {path.stem}")
        .replace(old_title, f"title: {title}")
        .replace("signatures:\n", signature, 1)
    )


def test_a_draft_that_is_saved_meanwhile_is_found_by_the_next_question(
    service: Service, team: Path
) -> None:
    diagnosis = asked(service, PUMP)
    assert diagnosis.verdict is Verdict.UNKNOWN
    save(service.draft(diagnosis).result(WAIT_SECONDS), team / "pump-is-empty.md")
    service.refresh()
    assert first(asked(service, PUMP)) == "pump-is-empty"


def test_a_record_is_followed_when_it_is_written_edited_and_removed(
    service: Service, team: Path
) -> None:
    record = team / "pump-is-empty.md"
    write_record(record, "flux capacitor of pump")
    service.refresh()
    assert first(asked(service, PUMP)) == "pump-is-empty"
    write_record(record, "flux capacitor of pump", title="Edited by the next shift")
    service.refresh()
    assert asked(service, PUMP).matches[0].incident.header.title == "Edited by the next shift"
    record.unlink()
    service.refresh()
    assert asked(service, PUMP).verdict is Verdict.UNKNOWN


def test_questions_without_a_pause_do_not_keep_a_new_record_out(
    service: Service, team: Path
) -> None:
    """A server is never idle; nobody tells it that a file was written."""
    asked(service, PUMP)
    write_record(team / "pump-is-empty.md", "flux capacitor of pump")
    ends = time.monotonic() + WAIT_SECONDS
    while first(asked(service, PUMP)) is None:
        assert time.monotonic() < ends, "the service never looked for changed records"


def test_an_index_that_another_process_wrote_is_taken_up(
    service: Service, team: Path, module_cache: Path
) -> None:
    assert asked(service, PUMP).verdict is Verdict.UNKNOWN
    write_record(team / "pump-is-empty.md", "flux capacitor of pump")
    command = [sys.executable, "-m", "kb", "index", "--incidents", str(team)]
    run = subprocess.run(command, check=True, capture_output=True, env=environment(module_cache))
    assert b"1 added" in run.stdout
    service.refresh()
    assert first(asked(service, PUMP)) == "pump-is-empty"


def test_a_broken_record_is_named_and_the_others_answer(
    service: Service, team: Path, notices: list[str]
) -> None:
    write_record(team / "pump-is-empty.md", "flux capacitor of pump")
    write_record(team / "half-written.md", "x")
    half = team / "half-written.md"
    half.write_text(half.read_text().replace("## Cause", "## Because"))
    service.refresh()
    assert first(asked(service, PUMP)) == "pump-is-empty"
    assert first(asked(service, SHM)) == SHM_RECORD
    (notice,) = notices
    assert "team/half-written.md" in notice
    assert "pump-is-empty" not in notice
    assert "run: kb lint" in notice


def test_an_index_that_is_damaged_meanwhile_is_rebuilt_once(
    service: Service, module_cache: Path, notices: list[str]
) -> None:
    for database in module_cache.glob("index-*/index.sqlite"):
        with database.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(4096)
            file.write(b"\xff" * (size - 4096))
    assert first(asked(service, SHM)) == SHM_RECORD
    assert first(asked(service, XID)) == XID_RECORD
    (notice,) = notices
    assert "damaged" in notice
    assert "rebuilding it" in notice


class Endless:
    """A log that never ends; tells when its reading began."""

    def __init__(self) -> None:
        self.reading = threading.Event()

    def read(self, _size: int = -1, /) -> bytes:
        self.reading.set()
        return b"step 1 loss 2.5\n" * 1000

    def open(self) -> Log:
        return Log([Source(None, lambda: nullcontext(self))])


def test_a_newer_diagnosis_stops_one_that_never_ends(service: Service) -> None:
    endless = Endless()
    older = service.diagnose(endless.open)
    assert endless.reading.wait(WAIT_SECONDS)
    assert first(asked(service, SHM)) == SHM_RECORD
    with pytest.raises(SupersededError):
        older.result(WAIT_SECONDS)


def test_a_pipe_is_let_go_when_a_newer_diagnosis_begins(service: Service, tmp_path: Path) -> None:
    pipe = tmp_path / "train.log"
    os.mkfifo(pipe)
    reading = threading.Event()

    def write_forever() -> None:
        with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
            while True:
                file.write(b"step 1 loss 2.5\n" * 1000)
                reading.set()

    writer = threading.Thread(target=write_forever)
    writer.start()
    older = service.diagnose(lambda: Log.from_paths([pipe]))
    assert reading.wait(WAIT_SECONDS)
    assert first(asked(service, SHM)) == SHM_RECORD
    with pytest.raises(SupersededError):
        older.result(WAIT_SECONDS)
    writer.join(WAIT_SECONDS)
    assert not writer.is_alive(), "the pipe is still open for reading"


def test_a_closed_service_answers_nobody_and_its_thread_ends(team: Path) -> None:
    before = set(threading.enumerate())
    service = Service(Settings(incidents=(str(team),)))
    service.open().result(WAIT_SECONDS)
    endless = Endless()
    reading = service.diagnose(endless.open)
    assert endless.reading.wait(WAIT_SECONDS)
    waiting = service.incidents()
    own = [thread for thread in set(threading.enumerate()) - before if "service" in thread.name]
    service.close()
    service.close()
    late: list[Future[object]] = [service.open(), service.incidents()]
    for request in (reading, waiting, *late, service.diagnose(lambda: Log.from_text(SHM))):
        with pytest.raises(SupersededError):
            request.result(WAIT_SECONDS)
    assert len(own) == 1
    own[0].join(WAIT_SECONDS)
    assert not own[0].is_alive()


def test_requests_of_several_threads_are_answered_in_order_and_rightly(service: Service) -> None:
    conversation = begin(asked(service, "NCCL hangs"))
    texts = {SHM: SHM_RECORD, XID: XID_RECORD}
    handing_over = threading.Lock()
    order: list[int] = []
    requests: list[tuple[str, Future[object]]] = []

    def ask(text: str) -> None:
        for _ in range(10):
            with handing_over:
                number = len(requests)
                request = service.reply(conversation, text)
                request.add_done_callback(lambda _done, number=number: order.append(number))
                requests.append((text, request))

    together(*(lambda text=text: ask(text) for text in [*texts] * 2))
    for text, request in requests:
        matches = request.result(WAIT_SECONDS).matches
        assert matches[0].incident.id == texts[text]
    service.incidents().result(WAIT_SECONDS)  # behind them: all their callbacks are done
    assert order == list(range(len(requests)))


def test_of_diagnoses_that_several_threads_begin_at_once_the_last_is_answered(
    service: Service,
) -> None:
    """The others are answered rightly or stopped, but none hangs."""
    texts = {SHM: SHM_RECORD, XID: XID_RECORD}
    requests: list[tuple[str, Future[Diagnosis]]] = []

    def ask(text: str) -> None:
        for _ in range(10):
            requests.append((text, service.diagnose(lambda: Log.from_text(text))))

    together(*(lambda text=text: ask(text) for text in [*texts] * 2))
    assert first(asked(service, SHM)) == SHM_RECORD
    for text, request in requests:
        with suppress(SupersededError):
            assert first(request.result(WAIT_SECONDS)) == texts[text]


def test_clients_do_not_stop_each_other_and_each_can_stop_its_own(service: Service) -> None:
    endless, stop = Endless(), threading.Event()
    unending = service.diagnose_for_one(endless.open, 5, stop)
    others = [
        service.diagnose_for_one(lambda text=text: Log.from_text(text), 5, threading.Event())
        for text in (SHM, XID)
    ]
    assert endless.reading.wait(WAIT_SECONDS)
    stop.set()
    with pytest.raises(SupersededError):
        unending.result(WAIT_SECONDS)
    assert [first(other.result(WAIT_SECONDS)) for other in others] == [SHM_RECORD, XID_RECORD]


def test_closing_stops_what_clients_asked_for(team: Path) -> None:
    service, endless = Service(Settings(incidents=(str(team),))), Endless()
    unending = service.diagnose_for_one(endless.open, 5, threading.Event())
    assert endless.reading.wait(WAIT_SECONDS)
    service.close()
    with pytest.raises(SupersededError):
        unending.result(WAIT_SECONDS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nccl shm too small in container", SHM_RECORD),
        ("df-shm", "df-shm"),
        ("训练卡住了", "hang-mid-training"),
    ],
)
def test_records_are_looked_up_by_words_meaning_and_id(
    service: Service, text: str, found: str
) -> None:
    all_kinds = service.search(text, list(Kind), 3).result(WAIT_SECONDS)
    assert found in [one.record.id for one in all_kinds]
    kind = next(one.record.kind for one in all_kinds if one.record.id == found)
    (first_of_kind,) = service.search(text, [kind], 1).result(WAIT_SECONDS)
    assert first_of_kind.record.id == found


def test_an_output_is_read_without_a_case_and_other_text_shows_nothing(service: Service) -> None:
    full = (
        "Filesystem      Size  Used Avail Use% Mounted on\n"
        "shm              64M   64M     0 100% /dev/shm\n"
    )
    seen = service.observations(full).result(WAIT_SECONDS)
    assert [(one.check, one.abnormal) for one in seen][:1] == [("df-shm", True)]
    assert service.observations("hello there").result(WAIT_SECONDS) == ()


def together(*tasks: Callable[[], None]) -> None:
    """Run each in a thread of its own, and wait for all."""
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


@pytest.mark.parametrize("module", [kb.errors, index.errors])
def test_all_errors_have_one_root(module: object) -> None:
    classes = [kind for _name, kind in inspect.getmembers(module, inspect.isclass)]
    errors = [kind for kind in classes if issubclass(kind, BaseException)]
    assert len(errors) > 4
    assert all(issubclass(kind, kb.errors.KbError) for kind in errors)
    assert kb.errors.KbError is index.errors.KbError
