"""What the answer says where no incident is known: the symptom, and the check to run next."""

from __future__ import annotations

import json

import pytest

from benchmarks import symptoms
from benchmarks.questions import FIRST, QUESTIONS, ask, share
from kb.conversation.language import in_language, language_of
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis, diagnose
from kb.log import Log
from tests.conftest import Run
from tests.kb.talks import said, talk

SHM_FULL = """\
nccl-0:41:98 [0] NCCL WARN Call to posix_fallocate failed: No space left on device
nccl-0:41:98 [0] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 96)
"""
PROGRESS = "\n".join(
    f"[2026-11-21 03:10:{n:02d}] step {n} loss {2 - n / 50:.3f} 812 tokens/s" for n in range(40)
)


def asked(text: str, knowledge: KnowledgeBase) -> Diagnosis:
    return diagnose(Log.from_text(text), knowledge)


def ids(diagnosis: Diagnosis) -> list[str]:
    return [match.playbook.id for match in diagnosis.playbooks]


@pytest.mark.parametrize(
    ("question", "playbook"),
    [
        ("training hangs", "hang-mid-training"),
        ("NCCL timeout", "nccl-watchdog-timeout"),
        ("bus error", "bus-error-shm"),
        ("nodes cannot see each other", "rendezvous-fails"),
        ("one gpu at 0% others at 100%", "hang-mid-training"),
        ("watchdog timeout during evaluation", "nccl-watchdog-timeout"),
        ("how do I find the slow rank", "straggler"),
        ("exit code 137", "oom-host-sigkill"),
        ("训练卡住不动", "hang-mid-training"),
        ("显存不足", "oom-gpu"),
    ],
)
def test_a_short_question_leads_to_its_playbook(
    knowledge: KnowledgeBase, question: str, playbook: str
) -> None:
    diagnosis = asked(question, knowledge)
    assert playbook in ids(diagnosis)
    assert diagnosis.next is not None


COMPILER_KILLED = "c++: fatal error: Killed signal terminated program cc1plus\n"


def test_a_line_that_one_cause_prints_names_the_cause(shipped_kb: Run) -> None:
    answer = shipped_kb("ask", "--json", stdin=COMPILER_KILLED.encode())
    leading = json.loads(answer.stdout)["playbooks"][0]
    assert leading["id"] == "build-fails"
    assert leading["causes"][0]["pointed"]
    assert "MAX_JOBS" in leading["causes"][0]["remedy"]
    assert not leading["causes"][1]["pointed"]
    shown = " ".join(shipped_kb("ask", stdin=COMPILER_KILLED.encode()).stdout.decode().split())
    assert "The input points to one cause: Too many parallel compilers. Remedy: Set" in shown


def test_a_failure_behind_the_first_is_told_as_another_one(knowledge: KnowledgeBase) -> None:
    opening = "DataLoader worker (pid 31) is killed by signal: Bus error. /dev/shm is 64M"
    after = talk(knowledge, opening, COMPILER_KILLED.strip())
    assert "another failure" in said(after)
    assert "MAX_JOBS" in said(after)


@pytest.mark.parametrize("text", ["what a lovely day", "hello", "今天天气很好"])
def test_what_is_no_symptom_has_no_playbook(knowledge: KnowledgeBase, text: str) -> None:
    assert asked(text, knowledge).playbooks == ()


@pytest.mark.parametrize("text", ["bus error", "显存不足", SHM_FULL, "NCCL timeout on 16 nodes"])
def test_incidents_and_playbooks_share_one_belief(knowledge: KnowledgeBase, text: str) -> None:
    diagnosis = asked(text, knowledge)
    whole = [*diagnosis.candidates, *diagnosis.playbooks]
    assert sum(one.confidence for one in whole) <= 1.001  # each is rounded to four digits


def test_behind_a_match_stands_its_playbook_and_the_fix_comes_next(
    knowledge: KnowledgeBase,
) -> None:
    diagnosis = asked(SHM_FULL, knowledge)
    assert diagnosis.verdict == "match"
    assert diagnosis.next is None
    first = diagnosis.matches[0].confidence
    assert all(match.confidence < first for match in diagnosis.playbooks)


@pytest.mark.parametrize(
    ("end", "verdict"), [("", "unknown"), ("\n[2026-11-21 03:11:00] Training finished", "healthy")]
)
def test_a_log_without_a_failure_has_no_playbook(
    knowledge: KnowledgeBase, end: str, verdict: str
) -> None:
    diagnosis = asked(PROGRESS + end, knowledge)
    assert (diagnosis.verdict, diagnosis.playbooks, diagnosis.next) == (verdict, (), None)


@pytest.mark.parametrize("question", ["/dev/shm too small", "never gets to step 1"])
def test_who_names_a_symptom_gets_no_all_clear(knowledge: KnowledgeBase, question: str) -> None:
    diagnosis = asked(question, knowledge)
    assert diagnosis.verdict in ("unknown", "possible")
    assert diagnosis.next is not None


def test_most_short_questions_lead_to_a_right_one(knowledge: KnowledgeBase) -> None:
    answers = ask([QUESTIONS], knowledge)
    assert share(answers, FIRST) >= 0.9
    assert share(answers, 1) >= 0.75


@pytest.mark.slow
def test_most_reports_without_a_record_lead_to_a_right_one(knowledge: KnowledgeBase) -> None:
    answers = symptoms.ask(knowledge)
    assert share(answers, symptoms.FIRST) >= 0.85
    assert share(answers, 1) >= 0.75


@pytest.mark.parametrize(
    ("report", "playbook"),
    [
        (
            "We moved to a new cluster last week, 8 nodes, everything passes on one of them. After"
            " about an hour the job freezes, the GPUs stay busy and nothing more is printed.",
            "hang-mid-training",
        ),
        (
            '  File "run.py", line 4, in <module>\n    import fancy_kernels\n'
            "ImportError: /opt/lib/fancy.so: undefined symbol: _ZN2at4fancyEv",
            "import-error-undefined-symbol",
        ),
        (
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (77x512 and 768x768)",
            "tensor-mismatch",
        ),
        ("train.py: error: unrecognized arguments: --lr-warmup 10", "config-rejected"),
        (
            "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: CompilationError",
            "compile-or-capture-fails",
        ),
        (
            'INFO:     10.0.0.8:5012 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
            "request-fails",
        ),
        (
            "huggingface_hub.errors.LocalEntryNotFoundError: the file is not in the cache",
            "download-fails",
        ),
        (
            "datasets.exceptions.DatasetGenerationError: an error while generating the dataset",
            "data-preparation-fails",
        ),
    ],
)
def test_a_report_leads_to_the_playbook_of_its_symptom(
    knowledge: KnowledgeBase, report: str, playbook: str
) -> None:
    assert playbook in ids(asked(report, knowledge))[: symptoms.FIRST]


def test_behind_a_sure_match_the_symptom_is_named_too(knowledge: KnowledgeBase) -> None:
    """A confident match may be wrong, and leaves little for the playbooks."""
    diagnosis = asked(SHM_FULL, knowledge)
    assert diagnosis.matches[0].confidence > 0.9
    assert "bus-error-shm" in ids(diagnosis)


def test_a_check_whose_output_is_there_is_not_asked_for_again(knowledge: KnowledgeBase) -> None:
    question = "our workers die with a bus error"
    asked_for = asked(question, knowledge).next
    assert asked_for is not None
    pasted = f"{question}\n{asked_for.check.body.normal}"
    after = asked(pasted, knowledge)
    assert ids(after)[0] == "bus-error-shm"
    assert after.next is not None
    assert after.next.check.id != asked_for.check.id


def test_the_command_is_that_of_the_environment(knowledge: KnowledgeBase) -> None:
    def command(text: str) -> str:
        step = asked(text, knowledge).next
        assert step is not None
        assert step.check.id == "df-shm"
        return step.command.place

    assert command("bus error") == "bare"
    assert command("bus error in docker") == "docker"


def test_the_answer_names_the_playbook_and_the_check(shipped_kb: Run) -> None:
    text = shipped_kb("ask", "training hangs").stdout.decode()
    assert "The symptom is known, its cause is not." in text
    assert "Nothing known matches" not in text
    assert "py-spy dump" in text
    answer = json.loads(shipped_kb("ask", "--json", "training hangs").stdout)
    assert answer["verdict"] in ("possible", "unknown")
    assert answer["playbooks"][0]["id"] == "hang-mid-training"
    assert answer["playbooks"][0]["secure"]
    assert answer["next"]["check"] == "py-spy-dump"
    assert answer["next"]["command"].startswith("py-spy dump")


def test_a_symptom_told_in_words_leads_until_a_record_is_likely(shipped_kb: Run) -> None:
    """Words name a symptom more often than a cause: the record comes behind it, as possible."""
    told = "checkpoint never finishes writing"
    answer = json.loads(shipped_kb("ask", "--json", told).stdout)
    assert answer["verdict"] == "possible"
    assert answer["matches"][0]["confidence"] < 0.5
    text = shipped_kb("ask", told).stdout.decode()
    assert text.index("Symptom: ") < text.index(answer["matches"][0]["id"])


def test_the_playbook_leads_where_no_record_is_as_likely(shipped_kb: Run) -> None:
    """A long fix of an unlikely record would hide what is to be done now."""
    text = shipped_kb("ask", "dmesg shows an xid").stdout.decode()
    assert text.index("xid-hardware") < text.index("Possible causes")
    assert "Fix" not in text
    assert "--since '-6h' | grep -E 'Xid'" in text, "the command is whole"


def test_the_opening_of_a_chat_names_the_check(shipped_kb: Run) -> None:
    said = shipped_kb("chat", "training hangs, no error").stdout.decode()
    assert "[hang-mid-training]" in said
    assert "py-spy dump" in said


FIRST_SCREEN_ROWS = 24


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    ["training hangs", "nccl timeout", "bus error", "one gpu at 0% others at 100%", "训练卡住了"],
)
def test_the_first_screen_says_what_it_is_what_to_secure_and_what_to_check(
    shipped_kb: Run, question: str
) -> None:
    found = json.loads(shipped_kb("ask", "--json", question).stdout)
    playbook, command = found["playbooks"][0], found["next"]["command"].split("\n")[0]
    rows = shipped_kb("ask", question).stdout.decode().split("\n")[:FIRST_SCREEN_ROWS]
    said = shipped_kb("chat", question).stdout.decode()
    english = ("Secure before a restart", "kb collect --for", "Check next", "its cause is not.")
    chinese = ("重启之前先保存", "kb collect --for", "下一项检查", "原因还不清楚。")
    talk = english if question.isascii() else chinese
    for text, (*wanted, known) in (("\n".join(rows), english), (said, talk)):
        assert " ".join(text.split()).count(known) == 1
        title = in_language(playbook["title"], language_of(text))
        places = [" ".join(text.split()).index(part) for part in (title, *wanted)]
        assert places == sorted(places)
        assert command[:60] in text
        for all_clear in ("Nothing known matches", "No line shows a failure", "没有匹配的已知问题"):
            assert all_clear not in text


def test_a_symptom_that_is_a_guess_is_called_one(shipped_kb: Run) -> None:
    text = shipped_kb("ask", "our tool fails in stage two with a strange message").stdout.decode()
    assert "Nothing known matches, and the symptom is a guess." in " ".join(text.split())
