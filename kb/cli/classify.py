"""`kb classify`: many logs."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path

import click

from kb.classify import (
    Journal,
    Outcome,
    Run,
    Unit,
    classify_here,
    find_units,
    run,
    suggest_jobs,
    summarize,
)
from kb.cli import NewFile, incidents_option
from kb.cli.exit_codes import ExitCode, of_check
from kb.cli.results import Format, check_output, kept, open_journal, write
from kb.cli.terminal import progress, say
from kb.cli.unit import unit_option
from kb.corpus.sync import prepare
from kb.errors import LogError, OutputError, short_name
from kb.settings import Settings, load_settings


class Engine(StrEnum):
    """Who does the work."""

    LOCAL = "local"
    RAY = "ray"


@click.command("classify")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@unit_option
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in Format]),
    default=Format.TABLE.value,
    callback=lambda _context, _option, value: Format(value),
    show_default=True,
    help="A table of counts, one JSON object or CSV row per unit, or one HTML page.",
)
@click.option(
    "-o",
    "--output",
    type=NewFile(or_stdout=True),
    metavar="FILE",
    help="Write to FILE; it must not exist yet. - is stdout.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of worker processes; default: one per core.",
)
@click.option(
    "--engine",
    type=click.Choice([engine.value for engine in Engine]),
    default=Engine.LOCAL.value,
    show_default=True,
    callback=lambda _context, _option, value: Engine(value),
    help="Run on this machine (local) or on a Ray cluster (ray).",
)
@click.option("--resume", is_flag=True, help="Continue a stopped run; needs -o FILE and jsonl.")
@incidents_option
def command(
    paths: tuple[str, ...],
    unit: Unit,
    form: Format,
    output: Path | None,
    jobs: int | None,
    engine: Engine,
    resume: bool,
    incidents: tuple[Path, ...],
) -> None:
    """Classify many logs.

    PATH is a file, a directory with all files below it, a quoted pattern such as 'logs/**/*.out',
    a URL that fsspec supports (s3://bucket/logs), or `-` for a list of paths on stdin. Files may be
    compressed with gzip, bzip2, xz or zstd. With --unit job, each PATH (and each hit of a pattern)
    is the directory of one job: 'jobs/*'.

    Exit code: 0 at least one unit matches, 1 all units are unknown or healthy, 2 usage error or
    no readable input.
    """
    check_output(output, form, resume)
    classify = _engine(engine)
    settings = load_settings(incidents)
    with ExitStack() as stack:
        journal = open_journal(stack, output, form, resume)
        units = [found for found in _units(paths, unit) if not _is(found, output)]
        if not units:
            why = (
                "no logs found; check the path or the pattern, and name files such as *.md by name"
            )
            raise LogError(" ".join(paths), why)
        if unit is Unit.FILE and (jobs_path := suggest_jobs(paths, units)):
            say(
                "several ranks write into one directory; for one result per job:"
                f" kb classify --unit job {shlex.quote(jobs_path)}"
            )
        with progress("Building the index") as report:
            prepare(settings, report, say)
        report = stack.enter_context(progress("Classifying"))
        finished = run(
            units,
            lambda left: classify(left, settings, jobs or _cores()),
            journal,
            report,
            say,
        )
        place = output
        if finished.results or not finished.stopped:
            with kept(finished.results, output, journal):
                summary = summarize(finished.results, finished.unreadable, say)
                place = write(summary, form, output, journal, settings)
    _tell(finished, output, journal)
    if place != output:
        raise OutputError(f"{output} appeared during the run; the results are in {place}")
    raise finished.stopped or click.exceptions.Exit(_exit_code(finished))


def _units(paths: tuple[str, ...], unit: Unit) -> list[str]:
    listed = os.fsdecode(sys.stdin.buffer.read()).splitlines() if "-" in paths else []
    return find_units((path for path in paths if path != "-"), unit, filter(None, listed))


def _is(unit: str, output: Path | None) -> bool:
    """Whether a unit is the output file, which must not be read."""
    return output is not None and Path(unit).absolute() == output.absolute()


def _engine(engine: Engine) -> Callable[[Iterable[str], Settings, int], Iterator[Outcome]]:
    if engine is Engine.LOCAL:
        return classify_here
    from kb.classify.ray_engine import classify_on_ray

    return classify_on_ray


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tell(finished: Run, output: Path | None, journal: Journal | None) -> None:
    """Report skipped inputs and, after a stop, how to continue."""
    unreadable = finished.unreadable
    if unreadable:
        names = ", ".join(sorted(short_name(unit.path) for unit in unreadable))
        inputs = "input" if len(unreadable) == 1 else "inputs"
        say(f"skipped {len(unreadable)} unreadable {inputs}: {names}")
    if finished.stopped:
        done = len(finished.results)
        way = (
            f"continue with: --resume -o {output}"
            if journal
            else "--resume needs -o FILE and --format jsonl"
        )
        say(f"stopped; kept {done} results; {way}")


def _exit_code(finished: Run) -> ExitCode:
    if not finished.results:
        return ExitCode.WRONG_USE
    return of_check(good=any(result.verdict.is_found for result in finished.results))
