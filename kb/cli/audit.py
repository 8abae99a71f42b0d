"""`kb audit`: how reliable the answers are on a team's own closed cases."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from kb.audit import Grade, Graded, Grades, reliability
from kb.classify import Unit, find_units
from kb.classify.inputs import open_log
from kb.cli import incidents_option
from kb.cli.case import diagnosed, open_service
from kb.cli.terminal import put, put_json, say, show
from kb.cli.unit import unit_option
from kb.errors import LogError
from kb.service.service import DEFAULT_MATCHES
from kb.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from kb.diagnosis import Diagnosis

CASES_DRAWN = 20
"""Grading one takes a minute or two."""

_KEYS = {
    "r": Grade.RIGHT,
    "s": Grade.SHORT,
    "a": Grade.AREA,
    "w": Grade.WRONG,
}
_SKIP, _QUIT = "k", "q"
_GRADES = """\
Say how good the first answer to each case was:
  r  right: it names the cause and what helped; or nothing is known, and it says so
  s  one step short: it names the cause, a step is missing
  a  right area, wrong diagnosis
  w  wrong; or it knows nothing although a record holds the cause
  k  skip this case
  q  quit; the grades so far are kept"""


@click.command("audit")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--draw",
    type=click.IntRange(min=1),
    default=CASES_DRAWN,
    show_default=True,
    metavar="N",
    help="How many cases to draw at random.",
)
@unit_option
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@incidents_option
def command(
    paths: tuple[str, ...], draw: int, unit: Unit, as_json: bool, incidents: tuple[Path, ...]
) -> None:
    """Grade the answers to closed cases of your own, and see how far to trust the tool.

    PATH are logs of cases whose cause you know. Some of them that have no grade yet are drawn at
    random, diagnosed and shown, and you grade each answer. Without PATH, only the figures are
    printed. Grades stay on this machine.
    """
    from kb.views.audit import lines, to_json

    grades = Grades(say)
    if paths:
        known = {one.case for one in grades.load()}
        cases = [case for case in find_units(paths, unit) if case not in known]
        chosen = random.SystemRandom().sample(cases, min(draw, len(cases)))
        say(f"{len(cases)} cases without a grade, {len(chosen)} drawn.\n{_GRADES}")
        _grade(chosen, grades, incidents)
    figures = reliability(grades.load())
    if as_json:
        put_json(to_json(figures))
    else:
        put("\n".join(lines(figures)))


def _grade(cases: list[str], grades: Grades, incidents: tuple[Path, ...]) -> None:
    for case, diagnosis in _answers(cases, incidents):
        key = _asked()
        if key == _QUIT:
            return
        if key != _SKIP:
            grades.add(_graded(case, diagnosis, _KEYS[key]))


def _answers(cases: Iterable[str], incidents: tuple[Path, ...]) -> Iterator[tuple[str, Diagnosis]]:
    """Each case with its diagnosis, which is shown. A case that cannot be read is named and left
    out."""
    from kb.views.text import render

    with open_service(load_settings(incidents)) as service:
        for number, case in enumerate(cases, 1):
            try:
                found = diagnosed(open_log(case), service, DEFAULT_MATCHES)
            except LogError as error:
                say(f"{case} is left out: {error}")
                continue
            say(f"\nCase {number}: {case}")
            show(render(found), paged=False)
            yield case, found


def _asked() -> str:
    """The key pressed; the end of the input quits."""
    choices = click.Choice([*_KEYS, _SKIP, _QUIT])
    try:
        key: str = click.prompt("Grade", type=choices, err=True)
    except click.Abort:
        return _QUIT
    return key


def _graded(case: str, diagnosis: Diagnosis, grade: Grade) -> Graded:
    best = next(iter(diagnosis.matches), None)
    return Graded(
        datetime.now(UTC),
        case,
        diagnosis.verdict,
        best.incident.id if best else "",
        best.confidence if best else 0.0,
        grade,
    )
