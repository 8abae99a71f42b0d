"""The next check: what tells most about the cause, for its price."""

from __future__ import annotations

import pytest

from kb.check import Check, JobState, Risk
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck, PlaybookMatch, diagnose
from kb.diagnosis.next_check import next_check
from kb.diagnosis.observed import Standing
from kb.evidence import Evidence
from kb.log import Log
from kb.playbook import Playbook


@pytest.fixture(scope="module")
def evidence(knowledge: KnowledgeBase) -> Evidence:
    return diagnose(Log.from_text("it does not work"), knowledge).evidence


def standing(knowledge: KnowledgeBase, *playbooks: str, **ratios: float) -> Standing:
    found = [knowledge.guides.by_id[name] for name in playbooks]
    share = 0.9 / len(found)
    matches = tuple(PlaybookMatch(one, share, share) for one in found if isinstance(one, Playbook))
    return Standing((), matches, {name.replace("__", ":"): r for name, r in ratios.items()})


def order(
    knowledge: KnowledgeBase, evidence: Evidence, believed: Standing, *, job_ended: bool = False
) -> list[Check]:
    """The checks that are offered one after the other, when each was run."""
    checks: list[Check] = []
    while step := chosen(knowledge, evidence, believed, checks, job_ended=job_ended):
        checks.append(step.check)
    return checks


def chosen(
    knowledge: KnowledgeBase,
    evidence: Evidence,
    believed: Standing,
    taken: list[Check],
    *,
    job_ended: bool = False,
) -> NextCheck | None:
    return next_check(
        believed,
        evidence,
        knowledge,
        read=frozenset(check.id for check in taken),
        job_ended=job_ended,
    )


def names(checks: list[Check]) -> list[str]:
    return [check.id for check in checks]


def test_every_playbook_has_a_check_that_tells_something(
    knowledge: KnowledgeBase, evidence: Evidence
) -> None:
    for playbook in knowledge.guides.playbooks:
        checks = order(knowledge, evidence, standing(knowledge, playbook.id))
        assert checks, playbook.id
        assert len(set(names(checks))) == len(checks)
        assert set(names(checks)) <= {step.check for step in playbook.body.checks}


def test_what_separates_most_causes_comes_first(
    knowledge: KnowledgeBase, evidence: Evidence
) -> None:
    hang = order(knowledge, evidence, standing(knowledge, "hang-mid-training"))
    assert names(hang)[0] == "py-spy-dump"
    assert names(hang)[-1] == "nccl-tests", "it loads the network of others for minutes"
    xid = order(knowledge, evidence, standing(knowledge, "xid-hardware"))
    assert names(xid)[0] == "dmesg-xid"


@pytest.mark.parametrize("playbook", ["straggler", "nan-or-divergence", "dataloader-crash"])
def test_what_needs_a_new_run_waits_for_what_can_be_looked_at(
    knowledge: KnowledgeBase, evidence: Evidence, playbook: str
) -> None:
    checks = order(knowledge, evidence, standing(knowledge, playbook))
    restarts = [check.header.cost.risk is Risk.RESTARTS for check in checks]
    assert restarts == sorted(restarts)


def test_what_needs_the_job_alive_is_not_offered_after_its_end(
    knowledge: KnowledgeBase, evidence: Evidence
) -> None:
    believed = standing(knowledge, "hang-mid-training", "hang-at-start")
    alive = order(knowledge, evidence, believed)
    ended = order(knowledge, evidence, believed, job_ended=True)
    assert any(check.header.needs_job is JobState.RUNNING for check in alive)
    assert not any(check.header.needs_job is JobState.RUNNING for check in ended)
    assert ended


def test_of_nearly_equal_ones_the_evidence_that_is_lost_first_decides(
    knowledge: KnowledgeBase, evidence: Evidence
) -> None:
    """Reading the kernel log waits for no rotation; the versions are the same tomorrow."""
    checks = names(order(knowledge, evidence, standing(knowledge, "build-fails")))
    assert checks.index("dmesg-oom-kill") < checks.index("torch-collect-env")


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ("slurm says PD", "scontrol-show-node"),
        ("squeue says PD", "scontrol-show-node"),
        ("sinfo shows the nodes idle", "scontrol-show-node"),
        ("kubernetes says Pending", "kubectl-describe-pod"),
    ],
)
def test_a_check_of_the_scheduler_that_runs_there_comes_first(
    knowledge: KnowledgeBase, said: str, first: str
) -> None:
    evidence = diagnose(Log.from_text(f"the job waits, {said}"), knowledge).evidence
    assert names(order(knowledge, evidence, standing(knowledge, "pod-pending")))[0] == first


def test_where_no_outcome_changes_anything_there_is_none(
    knowledge: KnowledgeBase, evidence: Evidence
) -> None:
    sure = standing(knowledge, "bus-error-shm", **{"bus-error-shm__shm-small": 1e9})
    assert chosen(knowledge, evidence, sure, []) is None


def test_what_was_read_changes_which_check_comes_next(knowledge: KnowledgeBase) -> None:
    question = "our workers die with a bus error"
    small = "shm              64M     0   64M   0% /dev/shm"
    first = diagnose(Log.from_text(question), knowledge).next
    after = diagnose(Log.from_text(f"{question}\n{small}"), knowledge).next
    assert first is not None
    assert first.check.id == "df-shm"
    assert after is None or after.check.id != "df-shm"
