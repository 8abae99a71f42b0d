"""What programs get: as the schema says, and without secrets."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.log import Log
from kb.service.handoff import HandOff
from kb.service.handoff import to_json as handoff_json
from kb.service.reply import reply_schema
from kb.service.wire import json_schema, to_json
from kb.views.handoff import to_markdown
from tests.conftest import Run

SCHEMAS = {"ask": json_schema, "chat": reply_schema}
NOW = datetime(2026, 11, 21, 3, 10, tzinfo=UTC)
TOKEN = "hf_" + "a1B2c3" * 6
KEY_LINES = [f"q1W2e3R4{letter}" * 7 for letter in "abcdef"]
KEY = ["-----BEGIN RSA " + "PRIVATE KEY-----", *KEY_LINES, "-----END RSA " + "PRIVATE KEY-----"]
"""Made here: none is real."""
SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"

LOGS = {
    "plain": [f"login with {TOKEN}", *KEY, SHM],
    "prefixed": [f"[rank0]: ERROR: {line}" for line in (f"login with {TOKEN}", *KEY, SHM)],
    "of two ranks": [f"[rank{n % 2}]: ERROR: {line}" for n, line in enumerate((TOKEN, *KEY, SHM))],
    "noise": [f"NCCL WARN socketProgress: Connection closed {TOKEN}", *KEY],
}


def secrets_in(text: str) -> list[str]:
    return [secret for secret in (TOKEN, *KEY_LINES) if secret in text]


@pytest.mark.parametrize("command", SCHEMAS)
def test_the_schema_in_the_documentation_is_that_of_the_types(command: str) -> None:
    path = Path("docs", f"{command}.schema.json")
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written == SCHEMAS[command](), f"{path} is not what the types say; run: make schema"


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_secrets_are_in_nothing_that_leaves(knowledge: KnowledgeBase, log: list[str]) -> None:
    diagnosis = diagnose(Log.from_text("\n".join(log)), knowledge)
    note = HandOff.of(diagnosis, NOW, ["train.log"])
    for leaving in (to_json(diagnosis), handoff_json(note), to_markdown(note)):
        assert secrets_in(leaving) == []


def test_the_json_of_the_command_is_masked_and_its_text_is_not(
    shipped_kb: Run, tmp_path: Path
) -> None:
    """The person who pasted the log sees their own lines."""
    line = f"{SHM} for {TOKEN}"
    log = tmp_path / "train.log"
    log.write_text("\n".join([line, *KEY]))
    for_programs = shipped_kb("ask", "--json", "-f", log).stdout.decode()
    for_people = "".join(shipped_kb("ask", "-f", log).stdout.decode().split())
    assert secrets_in(for_programs) == []
    assert "<secret: hugging face token>" in for_programs
    assert TOKEN in for_people
    assert "<secret:" not in for_people


def test_programs_are_told_what_of_a_damaged_log_was_not_read(
    knowledge: KnowledgeBase, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.log.gz"
    cut.write_bytes(gzip.compress(SHM.encode() + os.urandom(1 << 17))[:-5_000])
    answer = json.loads(to_json(diagnose(Log.from_paths([cut]), knowledge)))
    assert any(notice.startswith("cut.log.gz") for notice in answer["notices"])
