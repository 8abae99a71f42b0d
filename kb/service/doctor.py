"""Checks that everything a diagnosis needs works, by using it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from index.encoder import load_encoder
from index.errors import StoreDamaged, StoreError
from index.signatures import Scanner
from index.store import Store
from kb.backlog.store import BacklogStore
from kb.containment import contained
from kb.corpus.directories import IncidentDirectories
from kb.corpus.sync import index_path
from kb.errors import KbError
from kb.evidence.markers import MARKER_PATTERNS
from kb.paths import backlogs
from kb.sessions import Sessions, cases_directory
from kb.settings import Settings


class Check(msgspec.Struct, frozen=True):
    """One line of the report."""

    name: str
    good: bool
    detail: str
    advice: str = ""


def run_checks(settings: Settings) -> Iterator[Check]:
    """Yield one check after the other; a failing one does not keep the next from running."""
    checks: tuple[tuple[str, Callable[[Settings], Check]], ...] = (
        ("incidents", _incidents),
        ("encoder", _encoder),
        ("scanner", _scanner),
        ("sqlite", _sqlite),
        ("cache", _cache),
        ("index", _index),
        ("imports", _imports),
        ("cases", _cases),
    )
    for name, check in checks:
        failures: list[str] = []
        try:
            with contained("this check failed", failures.append):
                yield check(settings)
        except KbError as error:
            failures.append(str(error))
        yield from (Check(name, False, failure) for failure in failures)


def _incidents(settings: Settings) -> Check:
    library = IncidentDirectories(settings.incidents)
    incidents, problems = library.load()
    where = ", ".join(str(directory) for directory in library.directories)
    if problems:
        return Check("incidents", False, f"{len(problems)} problems in {where}", "run: kb lint")
    return Check("incidents", bool(incidents), f"{len(incidents)} in {where}")


def _encoder(settings: Settings) -> Check:
    started = time.perf_counter()
    encoder = load_encoder(settings.model)
    loaded = time.perf_counter()
    vectors = encoder.encode(["NCCL watchdog timeout"])
    done = time.perf_counter()
    return Check(
        "encoder",
        vectors.shape == (1, encoder.dim),
        f"{encoder.name}, loaded in {1000 * (loaded - started):.0f} ms,"
        f" first encoding {1000 * (done - loaded):.0f} ms",
    )


def _scanner(_settings: Settings) -> Check:
    hits = Scanner(MARKER_PATTERNS).scan(b"RuntimeError: NCCL error")
    return Check("scanner", bool(hits), "Hyperscan finds a test pattern")


def _sqlite(_settings: Settings) -> Check:
    with sqlite3.connect(":memory:") as connection:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    good = "ENABLE_FTS5" in options
    return Check(
        "sqlite",
        good,
        f"{sqlite3.sqlite_version}, full-text search {'on' if good else 'missing'}",
        "" if good else "install a Python whose sqlite3 module includes FTS5",
    )


def _cache(settings: Settings) -> Check:
    directory = index_path(settings)
    existing = next(path for path in [directory, *directory.parents] if path.exists())
    good = os.access(existing, os.W_OK)
    advice = "" if good else "each start rebuilds the index in memory; set KB_CACHE to another path"
    return Check("cache", good, f"{directory} is {'' if good else 'not '}writable", advice)


def _imports(_settings: Settings) -> Check:
    found = "; ".join(map(_import, backlogs()))
    return Check("imports", True, found or "none; to make your backlog searchable: kb import")


def _import(path: Path) -> str:
    with BacklogStore.open(path) as store:
        store.check()
        return f"{store.name}: {store.size():,} reports, {store.bytes_on_disk() / 1e6:.0f} MB"


def _index(settings: Settings) -> Check:
    directory: Path = index_path(settings)
    try:
        with Store(directory).open() as snapshot:
            fresh = snapshot.fingerprint == IncidentDirectories(settings.incidents).fingerprint()
            state = "up to date" if fresh else "out of date; the next kb ask updates it"
            snapshot.check()
            return Check("index", True, f"{len(snapshot)} incidents, {state}")
    except StoreDamaged as error:
        return Check("index", False, str(error), "run: kb index --rebuild")
    except StoreError as error:
        return Check("index", True, str(error), "the first kb ask also builds it")


def _cases(settings: Settings) -> Check:
    notices: list[str] = []
    sessions = Sessions(settings, notices.append)
    count = len(sessions.all())
    if not sessions.is_kept:
        return Check("cases", True, "not kept: the configuration has `history = false`")
    where = f"{count} in {cases_directory()}, each for {settings.keep_days} days"
    return Check("cases", not notices, notices[0] if notices else where)
