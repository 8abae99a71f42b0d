"""Outputs are read in the forms that users paste: of other versions, with other columns, with the
name of the host in front, without the header.

`output_variants.txt` has the samples, `normal_variants.txt` those of healthy machines. The line
above each names its check and what it shows.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kb.conversation import begin, reply
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.log import Log
from kb.verdict import Verdict
from tests.kb.test_checks import outputs_of

_HEAD = re.compile(r"^=== ([\w-]+): ([\w, -]+) \((.+)\)\n", re.MULTILINE)


def _samples(file: str) -> dict[str, tuple[str, set[str], str]]:
    """Check, findings and text by the name of the sample."""
    parts = _HEAD.split(Path("tests/kb", file).read_text(encoding="utf-8"))[1:]
    return {
        name: (check, set(findings.split(", ")) - {"nothing"}, text.rstrip("\n") + "\n")
        for check, findings, name, text in zip(*(parts[n::4] for n in range(4)), strict=True)
    }


SAMPLES = _samples("output_variants.txt")
NORMAL = _samples("normal_variants.txt")
"""What is said of it is no fault; where that is nothing, what healthy lines say does not hold."""


@pytest.mark.parametrize("name", SAMPLES)
def test_an_output_is_read_in_the_form_that_is_pasted(name: str, knowledge: KnowledgeBase) -> None:
    check, findings, text = SAMPLES[name]
    names, seen = outputs_of(text, knowledge)
    assert check in names
    alarms = [one for one in seen if one.abnormal is not False]
    assert {one.finding for one in alarms if one.check == check} == findings
    assert {one.check for one in alarms} <= {check}, [one.text for one in alarms]


@pytest.mark.parametrize("name", NORMAL)
def test_what_is_healthy_is_said_in_the_form_that_is_pasted(
    name: str, knowledge: KnowledgeBase
) -> None:
    check, findings, text = NORMAL[name]
    _names, seen = outputs_of(text, knowledge)
    own = {one.finding for one in seen if one.check == check and one.abnormal is False}
    assert findings <= own
    assert findings or not own
    alarms = [one.text for one in seen if one.abnormal is not False]
    assert not findings or not alarms


TALK = [
    "I ran nproc and it is fine, 1 of 8 ranks hangs",
    "kubectl get pods says Running for all of them, restarts 0",
    "docker ps shows that it is up, ollama ps says GPU",
    "the quota is not reached, df shows 40%",
    "the load average is high and memory.max is 64G",
    "nvidia-smi shows 1785 MHz, 655 W, 61 on all GPUs but one",
    "curl to the hub works, SSL is fine, the proxy is set",
    "systemctl status slurmd is active, munge runs",
    "max_batch_size is 8, and instance_group has one instance",
    "2026-05-08 10:00:00 INFO loaded 33 of 33 layers, 80 blocks, 2048 tokens",
    "2026-05-08 10:00:00 INFO step 1200 100000 loss 2.31, lr 1e-4, 345 MB, 12 s",
    "epoch 3 of 99, 1785 it, lr 655",
    "1\n2\n3\n",
]


@pytest.mark.parametrize("text", TALK)
def test_talk_and_ordinary_lines_are_no_output(text: str, knowledge: KnowledgeBase) -> None:
    names, seen = outputs_of(text, knowledge)
    assert (names, seen) == (set(), [])


@pytest.mark.parametrize("name", ["ollama on the CPU", "quota -s over", "nproc prompt"])
def test_what_is_read_is_never_a_match_by_itself(name: str, knowledge: KnowledgeBase) -> None:
    diagnosis = diagnose(Log.from_text(SAMPLES[name][2]), knowledge)
    assert diagnosis.verdict in (Verdict.POSSIBLE, Verdict.UNKNOWN)
    assert diagnosis.observations


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("vllm v1 nearly one request", "The cache holds 1.08 requests of the full length"),
        ("sglang little left", "Only 1.02 GB is left behind the memory pool"),
        ("sglang enough", "Beside weights and KV cache some memory is left"),
    ],
)
def test_start_up_lines_without_a_failure_are_read_in_a_conversation(
    name: str, said: str, knowledge: KnowledgeBase
) -> None:
    """Searched as a log they would bring records that share words with them."""
    start = begin(diagnose(Log.from_text("training is slow"), knowledge))
    after = reply(start, SAMPLES[name][2], knowledge)
    assert said in after.turns[-1].text
    assert {one.incident.id for one in after.matches} <= {one.incident.id for one in start.matches}


def test_start_up_lines_with_a_failure_are_searched(knowledge: KnowledgeBase) -> None:
    text = SAMPLES["vllm v0 no blocks"][2] + (
        "ValueError: No available memory for the cache blocks. Try increasing"
        " `gpu_memory_utilization` when initializing the engine.\n"
    )
    start = begin(diagnose(Log.from_text("vllm does not start"), knowledge))
    after = reply(start, text, knowledge)
    assert after.matches[0].incident.id == "vllm-no-memory-for-cache-blocks"
