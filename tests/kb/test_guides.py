"""Checks and playbooks survive the way from Markdown and back, and never mix with incidents."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from index.documents import Query
from index.signatures import Scanner
from kb.check import Check
from kb.contribute.lint import lint
from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import (
    GuideDirectories,
    IncidentDirectories,
    RecordDirectories,
    RecordFile,
)
from kb.corpus.guide_document import declared_by
from kb.corpus.tier import TierName
from kb.errors import IncidentError
from kb.markdown import parse, render
from kb.markdown.blocks import code_span, read_spans
from kb.playbook import Playbook
from kb.settings import Settings

SHIPPED = GuideDirectories().files()

CHECK = """\
---
id: made-up-check
title: The state of the made-up switch
kind: check
area: host
systems: [linux]
question: Is the switch on?
where: on every node
cost:
  seconds: 1
  risk: read-only
needs_job: any
recognise:
- '(?m)^switch: (on|off)$'
references:
- https://example.org/switch
---

## Commands

### bare

```sh
switch --show
```

## Normal

```text
switch: on
```

## Findings

### off

The switch is off.

- pattern: `(?m)^switch: off$`
- suggests: somebody turned it off
- then: Turn it on.

```text
switch: off
```

## Cannot see

- It does not see the lamp. <https://example.org/lamp>
"""

PLAYBOOK = """\
---
id: made-up-darkness
title: It is dark
kind: playbook
names:
  en:
  - no light
  zh:
  - 没有光
lines:
- pattern: lamp reports darkness
references:
- https://example.org/lamp
---

## Secure

- the position of the switch

## Safe to wait

No.

## Ask

### Is it night?

- yes: `lamp`
- no

## Checks

### made-up-check

Shows the switch.

- off: `cause:lamp`

## Causes

### lamp

The lamp is broken.

- share: often
- tell: the switch is on
- remedy: Replace the lamp

## Tonight

- light a candle
  - cost: a candle
  - risk: fire
"""


@pytest.fixture(autouse=True)
def index(built_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The linter compares with the shipped guides as they are indexed."""
    monkeypatch.setenv("KB_CACHE", str(built_cache))


@pytest.mark.slow
@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.path.stem)
def test_round_trip_loses_nothing(file: RecordFile) -> None:
    text = file.source().decode()
    record = parse(text, file.name, file.path.stem)
    assert render(record) == text  # so to parse it again gives the record again


@pytest.mark.slow
def test_a_healthy_log_is_no_output_unless_the_check_reads_logs(
    knowledge: KnowledgeBase,
) -> None:
    log = files("kb.contribute.lint").joinpath("ordinary.log").read_bytes()
    for guide in knowledge.guides.by_id.values():
        if not (isinstance(guide, Check) and guide.header.in_log):
            assert Scanner(declared_by(guide)).scan(log) == [], guide.id


def test_every_check_of_a_playbook_and_every_cause_can_be_reached(
    knowledge: KnowledgeBase,
) -> None:
    guides = knowledge.guides.by_id
    for guide in guides.values():
        if isinstance(guide, Playbook):
            assert all(isinstance(guides[step.check], Check) for step in guide.body.checks)
            assert guide.header.names.zh, guide.id


def test_small_records_are_read() -> None:
    check, playbook = parse(CHECK), parse(PLAYBOOK)
    assert isinstance(check, Check)
    assert isinstance(playbook, Playbook)
    assert render(check) == CHECK
    assert render(playbook) == PLAYBOOK
    assert check.body.cannot_see[0].source == "https://example.org/lamp"
    assert playbook.body.ask[0].answers[0].favours == ("lamp",)
    assert playbook.body.tonight[0].risk == "fire"


@pytest.mark.parametrize(
    ("written", "instead", "code"),
    [
        ("### off\n", "", "SHP118"),
        ("```sh\nswitch --show\n```\n", "switch --show\n", "SHP118"),
        ("`(?m)^switch: off$`", "(?m)^switch: off$", "SHP119"),
        ("- suggests:", "- hints:", "SHP119"),
        ("kind: check", '"kind": check', "SHP120"),
        ("`(?m)^switch: off$`", "`(?=off)`", "SIG201"),
        ("(?m)^switch: (on|off)$", "switch (on", "SIG201"),
        ("risk: read-only", "risk: some", "SHP105"),
        ("### bare", "### moon", "SHP105"),
        ("## Normal\n", "## Usual\n", "SHP106"),
    ],
)
def test_a_wrong_check_is_told_by_its_rule(written: str, instead: str, code: str) -> None:
    assert written in CHECK
    with pytest.raises(IncidentError) as caught:
        parse(CHECK.replace(written, instead))
    assert code in {problem.code for problem in caught.value.problems}


def problems_of(text: str, tmp_path: Path) -> set[str]:
    path = tmp_path / "made-up-check.md"
    path.write_text(text)
    return {problem.code for problem in lint([path], IncidentDirectories())[1]}


@pytest.mark.parametrize(
    ("written", "instead", "code"),
    [
        ("```text\nswitch: off\n", "```text\nthe switch is off\n", "CHK901"),
        ("`(?m)^switch: off$`", "`(?m)^switch: never$`", "CHK902"),
        ("`(?m)^switch: off$`", "`(?m)^switch: o`", "CHK903"),
        ("'(?m)^switch: (on|off)$'", "'(?m)^[a-z]+'", "CHK904"),
        ("- then: Turn it on.", "- next: `no-such-check`", "IDS406"),
        ("- then: Turn it on.", "- points to: `no-such-incident`", "IDS406"),
        ("- then: Turn it on.", "- points to: `straggler:no-such-cause`", "IDS406"),
        ("The switch is off.", "TODO: say it.", "DFT501"),
    ],
)
def test_the_linter_finds_what_is_wrong(
    written: str, instead: str, code: str, tmp_path: Path
) -> None:
    assert written in CHECK
    assert problems_of(CHECK, tmp_path) == set()
    assert code in problems_of(CHECK.replace(written, instead), tmp_path)


def test_an_id_of_an_incident_is_taken(tmp_path: Path) -> None:
    taken = IncidentDirectories().ids()[0]
    path = tmp_path / f"{taken}.md"
    path.write_text(CHECK.replace("made-up-check", taken))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / path.name).write_text(path.read_text())
    codes = {problem.code for problem in lint([tmp_path], IncidentDirectories())[1]}
    assert "IDS407" in codes


@pytest.mark.parametrize("text", ["a", "`", "a``b`", " a ", "``", "a`b``c", "(?m)^`x`$"])
def test_code_spans_hold_any_line(text: str) -> None:
    assert read_spans(f"{code_span(text)}, {code_span('b')}") == (text, "b")


@pytest.mark.slow
def test_a_team_puts_guides_where_it_likes(tmp_path: Path) -> None:
    (tmp_path / "made-up-check.md").write_text(CHECK)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "df-shm.md").write_text(CHECK.replace("made-up-check", "df-shm"))
    guides = GuideDirectories([tmp_path])
    assert "made-up-check" in guides.ids()
    assert "made-up-check" not in IncidentDirectories([tmp_path]).ids()
    replaced = next(guide for guide in guides.load()[0] if guide.id == "df-shm")
    assert replaced.title == "The state of the made-up switch"
    incidents = IncidentDirectories([tmp_path]).ids()
    assert sorted([*guides.ids(), *incidents]) == RecordDirectories([tmp_path]).ids()


def test_guides_are_found_and_never_among_the_incidents(knowledge: KnowledgeBase) -> None:
    ids = {file.path.stem for file in SHIPPED}
    assert set(knowledge.guides.by_id) == ids
    assert ids.isdisjoint(knowledge.ids())
    query = Query(("training hangs",), ("training hangs",))
    found = knowledge.search(query, TierName.GUIDES)
    assert max(found, key=lambda candidate: candidate.cosine).id == "hang-mid-training"
    assert ids.isdisjoint(candidate.id for candidate in knowledge.search(query))


def test_a_pasted_output_leads_to_its_check(knowledge: KnowledgeBase) -> None:
    scanner = knowledge.guides.patterns
    paste = b"shm              64M     0   64M   0% /dev/shm\n"
    owners = {
        owner
        for number, _end in scanner.scan(paste)
        for owner in knowledge.guides.owners[scanner.patterns[number]]
    }
    assert owners == {"df-shm"}


def test_the_lines_of_a_symptom_are_not_looked_for_in_a_whole_log(knowledge: KnowledgeBase) -> None:
    """They are many and general, and would slow down the scan of a large log."""
    line = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x4 and 3x8)\n"
    assert knowledge.guides.patterns.scan(line.encode()) == []
    seen = knowledge.guides.symptom_lines(line)
    assert [name for name, patterns in seen.items() if patterns] == ["tensor-mismatch"]


def test_a_changed_guide_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = tmp_path / "team"
    team.mkdir()
    monkeypatch.setenv("KB_CACHE", str(tmp_path / "cache"))
    with KnowledgeBase.open(Settings(incidents=(str(team),))) as knowledge:
        assert "made-up-check" not in knowledge.guides.by_id
        assert not knowledge.refresh()
        (team / "made-up-check.md").write_text(CHECK)
        assert knowledge.refresh()
        assert knowledge.guides.by_id["made-up-check"].title == "The state of the made-up switch"
        assert "made-up-check" not in knowledge.ids()
