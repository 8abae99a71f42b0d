"""The note for the next engineer: complete, safe to paste anywhere, and never over another one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.errors import OutputError
from kb.files import write_new
from kb.log import Log
from kb.service.handoff import HandOff, NoteTurn, to_json
from kb.verdict import Verdict, percent
from kb.views.handoff import to_markdown

SAMPLE = Path("benchmarks/samples/nccl-shm.log")
NOW = datetime(2026, 11, 21, 3, 10, tzinfo=UTC)
TOKEN = "hf_" + "a1B2c3" * 6
KEY_LINE = "q1W2e3R4" * 8


@pytest.fixture
def note(knowledge: KnowledgeBase) -> HandOff:
    diagnosis = diagnose(Log.from_paths([SAMPLE]), knowledge)
    return HandOff.of(
        diagnosis,
        NOW,
        [str(SAMPLE)],
        done={diagnosis.matches[0].incident.id: {0}},
        conversation=[NoteTurn("you", "is it the disk?"), NoteTurn("kb", "Run `df -h /dev/shm`.")],
    )


def test_page_tells_what_is_known_done_and_said(note: HandOff) -> None:
    page = to_markdown(note)
    best = note.diagnosis.matches[0]
    first, second = best.incident.body.fix[:2]
    line = best.why[0].line
    assert "2026-11-21 03:10 UTC" in page
    assert f"**{percent(best.confidence)}** `{best.incident.id}`" in page
    assert f"{line.file}:{line.number}: {line.text}" in page
    assert f"Caution: {best.incident.header.caution}" in page
    assert f"- [x] {first.text}" in page
    assert f"- [ ] {second.text}" in page
    assert first.command is not None
    assert first.command.split("\n")[0] in page
    assert f"Verify: {best.incident.body.verify}" in page
    assert "is it the disk?" in page
    assert "`nccl`" in page.split("- systems: ")[1].split("\n")[0]


def test_json_has_the_same(note: HandOff) -> None:
    told = json.loads(to_json(note))
    best = note.diagnosis.matches[0]
    assert told["schema"] == 1
    assert told["time"].startswith("2026-11-21T03:10")
    assert told["diagnosis"]["matches"][0]["id"] == best.incident.id
    assert [step["done"] for step in told["steps"]][:2] == [True, False]
    assert told["conversation"][0] == {"speaker": "you", "text": "is it the disk?"}
    assert told["evidence"][0]["file"] == best.why[0].line.file


def test_matches_that_a_conversation_changed_are_those_that_count(
    knowledge: KnowledgeBase,
) -> None:
    diagnosis = diagnose(Log.from_paths([SAMPLE]), knowledge)
    turned = [msgspec.structs.replace(diagnosis.matches[-1], confidence=0.4)]
    note = HandOff.of(diagnosis, NOW, [], matches=turned)
    assert note.diagnosis.verdict is Verdict.POSSIBLE
    assert f"**40%** `{turned[0].incident.id}`" in to_markdown(note)
    assert HandOff.of(diagnosis, NOW, [], matches=[]).diagnosis.verdict is Verdict.UNKNOWN


def test_job_begins_with_who_failed_first(knowledge: KnowledgeBase) -> None:
    diagnosis = diagnose(Log.from_paths([Path("benchmarks/jobs/vae-alloc")]), knowledge)
    assert diagnosis.job is not None
    first = diagnosis.job.culprits[0]
    page = to_markdown(HandOff.of(diagnosis, NOW, ["vae-alloc"]))
    assert first.text is not None
    assert first.text in page.split("## First to fail")[1]
    assert f"{first.file}:{first.line}" in page


def test_unknown_log_still_makes_a_note(knowledge: KnowledgeBase) -> None:
    diagnosis = diagnose(Log.from_text("FrobnicatorError: the quux is empty"), knowledge)
    page = to_markdown(HandOff.of(diagnosis, NOW, []))
    assert "Verdict: **unknown**" in page
    assert "1: FrobnicatorError: the quux is empty" in page


@pytest.mark.parametrize("write", [to_markdown, to_json])
def test_no_secret_leaves(knowledge: KnowledgeBase, write) -> None:
    log = "\n".join(
        [
            f"HF_TOKEN={TOKEN} NCCL_DEBUG=INFO python train.py",
            f"RuntimeError: 401 for url https://me:{TOKEN}@example.org",
            "ERROR: -----BEGIN RSA " + "PRIVATE KEY-----",
            *(f"ERROR: {KEY_LINE}{n}" for n in range(3)),
            "ERROR: -----END RSA " + "PRIVATE KEY-----",
            f"ERROR: TORCH_API_KEY={KEY_LINE}",
        ]
    )
    diagnosis = diagnose(Log.from_text(log), knowledge)
    said = [NoteTurn("you", f"I used --token {TOKEN}")]
    written = write(HandOff.of(diagnosis, NOW, [f"s3://k:{TOKEN}@b/c.log"], conversation=said))
    assert TOKEN not in written
    assert KEY_LINE not in written
    assert "<secret: " in written


def test_hostile_lines_stay_in_their_blocks(knowledge: KnowledgeBase) -> None:
    log = "RuntimeError: ```\nERROR: `````` <script>alert(1)</script> \x1b[31m\n# ERROR heading\n"
    diagnosis = diagnose(Log.from_text(log), knowledge)
    note = HandOff.of(
        diagnosis, NOW, ["`a`\n# b.log"], conversation=[NoteTurn("a`b", "```\n# c\n")]
    )
    page = to_markdown(note)
    assert "\x1b" not in page
    tokens = MarkdownIt().parse(page)
    headings = [tokens[n + 1].content for n, t in enumerate(tokens) if t.type == "heading_open"]
    assert set(headings) <= {
        "Hand-off, 2026-11-21 03:10 UTC", "Evidence", "Facts", "Conversation", "References",
        *(h for h in headings if h.startswith("Steps for ")),
    }  # fmt: skip
    assert not any(token.type == "html_block" for token in tokens)
    blocks = [token.content for token in tokens if token.type == "fence"]
    assert any("<script>" in block for block in blocks)
    assert "```\n# c\n\n" in blocks


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes" / "incident-7.md"
    written = [write_new(path, text) for text in (b"one", b"two", b"three")]
    assert [file.name for file in written] == [
        "incident-7.md",
        "incident-7-2.md",
        "incident-7-3.md",
    ]
    assert [file.read_text() for file in written] == ["one", "two", "three"]


def test_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        write_new(tmp_path / "file" / "note.md", b"x")
