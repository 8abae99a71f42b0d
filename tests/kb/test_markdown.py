"""A record survives the way from Markdown and back; a wrong one is told where and why."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from kb.corpus.directories import IncidentDirectories
from kb.errors import IncidentError
from kb.incident import Kind, Strength, Topology
from kb.markdown import MAX_BYTES, parse, read, render
from kb.markdown.rules import SHAPE_RULES, Unforeseen

SHIPPED = IncidentDirectories().files()
load_shipped = cache(IncidentDirectories().load)
"""ScannedLog all of them takes seconds."""

RECORD = """\
---
id: made-up-hang
title: 'A made-up job hangs: the switch is off'
kind: incident
systems: [nccl]
environment:
  frameworks:
    nccl: any
  hardware: any
  topology: multi-node
signatures:
- pattern: switch (\\w+) is off
  strength: strong
  regex: true
references:
- https://example.org/thread
confidence: documented
created: 2026-11-21
updated: 2026-11-21
---

## Symptom

Nothing moves.

## Environment

Any.

## Cause

The switch is off.

## Fix

1. Turn the switch on.

   ```sh
   switch --on
   ```

   It clicks.

2. Wait.

## Verify

The lamp is green.

## Distinguish

- `other-hang`: Is the lamp red?

## Evidence

```text
switch s1 is off
```
"""


MISTAKES = (
    ("---\nid", "id", "SHP101", 1),
    ("title: 'A", "title: {A", "SHP102", 4),
    ("hardware: any", "hardware: &a any", "SHP103", 9),
    ("hardware: any", "hardware: *a", "SHP103", 9),
    ("hardware: any", "hardware: !!python/name:os.system x", "SHP103", 9),
    ("hardware: any", f"hardware: {'[' * 5000}{']' * 5000}", "SHP103", 9),
    ("kind: incident", "kind: incident\nkind: incident", "SHP104", 5),
    ("kind: incident", "kind: accident", "SHP105", 4),
    ("strength: strong", "strength: huge", "SHP105", 13),
    ("regex: true", "regexp: true", "SHP105", 14),
    ("https://example.org/thread", "javascript:alert(1)", "SHP105", 16),
    ("id: made-up-hang", "id: ../../etc/passwd", "SHP105", 2),
    ("switch (\\w+) is off\n  str", "(abc\n  str", "SIG201", 12),
    ("## Cause", "## Because", "SHP106", 30),
    ("## Verify", "## Cause", "SHP106", 46),
    ("\nThe switch is off.\n", "", "SHP107", 30),
    ("1. Turn the switch on.", "Turn the switch on.", "SHP108", 34),
    ("Turn the switch on.\n\n   ", "", "SHP109", 36),
    ("It clicks.", "```sh\n   switch\n   ```", "SHP109", 36),
    ("- `other-hang`: Is", "- Is", "SHP110", 52),
    ("```text\nswitch s1 is off\n```", "switch s1 is off", "SHP111", 56),
    ("Nothing moves.", "Nothing \x1b[31mmoves.", "SHP116", 24),
)
"""What is replaced in the record, by what, and the rule and line that are reported."""


@pytest.mark.slow
@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.path.stem)
def test_shipped_record_is_written_back_as_it_was_read(file) -> None:
    text = file.path.read_text(encoding="utf-8")
    assert render(parse(text, file.name)) == text


def test_record_is_read_into_one_value_per_idea() -> None:
    incident = parse(RECORD)
    assert incident.kind is Kind.INCIDENT
    assert incident.header.environment.topology is Topology.MULTI_NODE
    assert incident.header.signatures[0].strength is Strength.STRONG
    first, second = incident.body.fix
    assert (first.command, first.why) == ("switch --on", "It clicks.")
    assert (second.text, second.command) == ("Wait.", None)
    assert incident.body.distinguish[0].other == "other-hang"
    assert incident.body.evidence_text == "switch s1 is off"


def test_evidence_that_holds_a_fence_survives() -> None:
    text = RECORD.replace("```text\nswitch s1 is off\n```", "````text\n```\nswitch s1 is off\n````")
    incident = parse(text)
    assert incident.body.evidence_text == "```\nswitch s1 is off"
    assert parse(render(incident)) == incident


@pytest.mark.parametrize(("old", "new", "code", "line"), MISTAKES)
def test_mistake_is_reported_with_its_line_and_rule(
    old: str, new: str, code: str, line: int
) -> None:
    assert old in RECORD
    with pytest.raises(IncidentError) as caught:
        parse(RECORD.replace(old, new, 1), "made-up-hang.md")
    found = [(problem.code, problem.line) for problem in caught.value.problems]
    assert (code, line) in found
    assert all(problem.help for problem in caught.value.problems)


UNUSABLE_FILES = {
    "SHP112": RECORD.replace("made-up-hang", "another-name").encode(),
    "SHP113": b"x" * (MAX_BYTES + 1),
    "SHP114": RECORD.encode("utf-16"),
    "SHP115": None,
}
"""The rule that is reported, and the content of `made-up-hang.md`; there may be no such file."""


@pytest.mark.parametrize(("code", "content"), UNUSABLE_FILES.items())
def test_unusable_file_is_reported_with_its_rule(
    tmp_path: Path, code: str, content: bytes | None
) -> None:
    path = tmp_path / "made-up-hang.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(IncidentError, match=code):
        read(path)


def test_every_rule_of_the_shape_is_reported_for_some_file() -> None:
    reported = {code for _old, _new, code, _line in MISTAKES} | UNUSABLE_FILES.keys()
    elsewhere = {Unforeseen.code, "SHP118", "SHP119", "SHP120"}  # test_containment, test_guides
    assert reported | elsewhere == {rule.code for rule in SHAPE_RULES}


def test_all_problems_of_a_file_are_reported_at_once() -> None:
    text = RECORD.replace("1. Turn", "Turn").replace("- `other-hang`: Is", "- Is")
    with pytest.raises(IncidentError) as caught:
        parse(text)
    assert {problem.code for problem in caught.value.problems} == {"SHP108", "SHP110"}


def test_message_looks_like_a_compilers() -> None:
    with pytest.raises(IncidentError) as caught:
        parse(RECORD.replace("kind: incident", "kind: accident"), "dir/made-up-hang.md")
    lines = str(caught.value).split("\n")
    assert lines[0].startswith("error[SHP105]: `kind`: Invalid enum value 'accident'")
    assert lines[1] == "  --> dir/made-up-hang.md:4"
    assert lines[2] == "   |   kind: accident"
    assert lines[3].startswith("   = help: ")


def test_nested_yaml_bomb_is_refused_quickly() -> None:
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\n"
    with pytest.raises(IncidentError, match="SHP103"):
        parse(f"---\n{bomb}---\n")


def test_deeply_nested_yaml_is_refused() -> None:
    with pytest.raises(IncidentError):
        parse(f"---\nid: {'[' * 5000}\n---\n")


@pytest.mark.slow
def test_every_shipped_record_has_chinese_and_english_aliases() -> None:
    incidents, problems = load_shipped()
    assert not problems
    for incident in incidents:
        chinese = [a for a in incident.header.aliases if any("一" <= c <= "鿿" for c in a)]
        assert len(chinese) >= 2, incident.id
        assert len(incident.header.aliases) - len(chinese) >= 2, incident.id


def test_ids_are_unique_and_files_lie_under_their_first_system() -> None:
    incidents, _ = load_shipped()
    assert len({incident.id for incident in incidents}) == len(incidents) >= 30
    for file, incident in zip(SHIPPED, incidents, strict=True):
        assert Path(file.path).parent.name == incident.header.systems[0]


def test_a_fix_in_words_is_read_as_data() -> None:
    incident = parse(RECORD.replace("references:", "fixed_in: NCCL 2.22.3\nreferences:", 1))
    assert [*map(str, incident.header.fixed_in)] == ["nccl 2.22.3"]
    in_words = "fixed_in: the next release, with an option\nreferences:"
    incident = parse(RECORD.replace("references:", in_words, 1))
    assert incident.header.fixed_in[0].note == "the next release, with an option"
    assert incident.header.fixed_in[0].version is None


def test_a_block_says_where_its_lines_come_from() -> None:
    fence = "## Evidence\n\n```"
    assert fence in RECORD
    named = RECORD.replace(fence, "## Evidence\n\nSource: https://example.org/thread\n\n```")
    assert parse(named).body.evidence[0].source == "https://example.org/thread"
    assert parse(RECORD).body.evidence[0].source is None
