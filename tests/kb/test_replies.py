"""What a colleague answers to each act, over the shipped incidents, in both languages."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter

import pytest

from kb.conversation import Conversation, begin, reply
from kb.conversation.acts import Act, Acted
from kb.conversation.done_steps import FixStep
from kb.conversation.language import Language, language_of
from kb.conversation.next_step import name_of, task_of
from kb.conversation.replies import Answer, answer_to
from kb.conversation.terms import find_term
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck, diagnose
from kb.log import Log
from kb.outcome import Outcome
from kb.outcomes import Outcomes
from kb.settings import Settings
from kb.verdict import Verdict
from tests.kb.talks import said

SHM = (
    "node-a:2143:2561 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left"
    " on device"
)
TOO_SMALL = "nccl-shm-too-small-container"
HANG = "my training hangs after some hours on 16 nodes, no error"
CHINESE = re.compile(r"[\u3400-\u9fff]")


@pytest.fixture(scope="module")
def match(knowledge: KnowledgeBase) -> Conversation:
    """One record is above the bar."""
    conversation = begin(diagnose(Log.from_text(SHM), knowledge))
    assert conversation.verdict is Verdict.MATCH
    return conversation


@pytest.fixture(scope="module")
def symptom(knowledge: KnowledgeBase) -> Conversation:
    """A symptom is known, its cause is not."""
    conversation = begin(diagnose(Log.from_text(HANG), knowledge))
    assert isinstance(task_of(conversation, knowledge), NextCheck)
    return conversation


@pytest.fixture(scope="module")
def nothing(knowledge: KnowledgeBase) -> Conversation:
    return begin(diagnose(Log.from_text(""), knowledge))


def answered(act: Act, text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    language = language_of(text, conversation.language)
    spoken = begin(conversation.diagnosis)
    spoken = type(conversation)(
        spoken.diagnosis,
        conversation.matches,
        conversation.turns,
        conversation.inquiry,
        conversation.statements,
        language,
    )
    return answer_to(Acted(act, text), spoken, knowledge)


@pytest.mark.parametrize("act", Act)
@pytest.mark.parametrize("text", ["do that?", "这个呢？"])
def test_every_act_has_an_answer_in_every_state(
    match: Conversation,
    symptom: Conversation,
    nothing: Conversation,
    knowledge: KnowledgeBase,
    act: Act,
    text: str,
) -> None:
    for conversation in (match, symptom, nothing):
        answer = answered(act, text, conversation, knowledge)
        assert answer.text.strip()
        assert bool(CHINESE.search(answer.text)) is bool(CHINESE.search(text)) or TOO_SMALL in (
            answer.text
        )


def test_the_opening_of_a_match_says_what_to_do_first(match: Conversation) -> None:
    assert f"Step 1 for [{TOO_SMALL}]" in said(match)
    assert "df -h /dev/shm" in said(match)


def test_next_of_a_symptom_is_its_check_with_the_command(
    symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    task = task_of(symptom, knowledge)
    answer = answered(Act.NEXT, "what now", symptom, knowledge)
    assert isinstance(task, NextCheck)
    assert task.command.run in answer.text
    assert answer.shows == (task.check.id,)


def test_how_names_the_place_and_the_placeholders(
    symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    answer = answered(Act.HOW, "how do I run py-spy dump on slurm", symptom, knowledge)
    assert "py-spy" in answer.text
    assert "srun" in answer.text
    assert "`JOBID`: the number of the Slurm job" in answer.text
    other = answered(Act.HOW, "py-spy 在 k8s 里怎么跑", symptom, knowledge)
    assert "kubectl" in other.text
    assert "`POD`：" in other.text or "`POD`: rank" in other.text


def test_how_of_a_step_is_that_step(match: Conversation, knowledge: KnowledgeBase) -> None:
    answer = answered(Act.HOW, "how do I do step 2", match, knowledge)
    assert "--shm-size=16g" in answer.text
    assert "IMAGE" in answer.text
    assert answer.shows == (f"{TOO_SMALL}#2",)


@pytest.mark.parametrize(
    ("text", "harm"),
    [
        ("is it safe to delete these files?", "Destructive"),
        ("is step 4 dangerous", "Destructive"),
        ("第4步安全吗", "破坏性"),
    ],
)
def test_a_harm_that_the_record_names_is_read_out(
    match: Conversation, knowledge: KnowledgeBase, text: str, harm: str
) -> None:
    assert harm in answered(Act.SAFE, text, match, knowledge).text


@pytest.mark.parametrize(
    "text",
    [
        "that vllm process belongs to somebody else, can I just kill it?",
        "may I delete the old checkpoints?",
        "这个 vllm 进程是别人的，能直接杀掉吗",
    ],
)
def test_a_check_gives_no_leave_for_what_nothing_undoes(
    knowledge: KnowledgeBase, text: str
) -> None:
    log = Log.from_text("vllm: torch.OutOfMemoryError: CUDA out of memory at start")
    start = begin(diagnose(log, knowledge))
    said = answered(Act.SAFE, text, start, knowledge).text
    assert not said.startswith(("Yes", "可以", "安全"))
    assert "owner" in said or "属主" in said or "Checkpoints" in said


def test_a_look_is_safe_and_a_change_needs_a_restart(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    assert "changes nothing" in answered(Act.SAFE, "is that safe?", match, knowledge).text
    assert "restart" in answered(Act.SAFE, "is step 3 safe?", match, knowledge).text


@pytest.mark.parametrize(
    "text", ["any side effects of --shm-size?", "--shm-size 有副作用吗", "is --shm-size safe here"]
)
def test_leave_is_asked_for_the_step_that_sets_what_is_named(
    match: Conversation, knowledge: KnowledgeBase, text: str
) -> None:
    assert "shm-size" in answered(Act.SAFE, text, match, knowledge).text


def test_a_check_tells_its_risk_and_its_price(
    symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    risky = answered(Act.SAFE, "can I run py-spy on a live job", symptom, knowledge)
    assert "pauses the process" in risky.text
    price = answered(Act.COST, "how long does py-spy dump take", symptom, knowledge)
    assert re.search(r"about \d+ (seconds|min)", price.text)


def test_why_not_a_cause_of_the_symptom_says_what_one_would_see(
    symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    playbook = symptom.diagnosis.playbooks[0].playbook
    cause = playbook.body.causes[0]
    guess = f"could it be {cause.key.replace('-', ' ')} instead?"
    text = answered(Act.WHY_NOT, guess, symptom, knowledge).text
    assert "You would see" in text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("what is a watchdog", "watchdog"),
        ("what does ZeRO-3 mean?", "ZeRO-3"),
        ("all-gather 是什么意思", "all-gather"),
        ("什么是 NUMA", "NUMA"),
        ("explain all-reduces please", "all-reduce"),
    ],
)
def test_a_term_is_explained_in_the_language_of_the_question(
    match: Conversation, knowledge: KnowledgeBase, text: str, name: str
) -> None:
    answer = answered(Act.EXPLAIN_TERM, text, match, knowledge)
    term = find_term(text)
    assert term is not None
    assert name.lower() in {known.lower() for known in term.names}
    assert (term.zh if CHINESE.search(text) else term.en) in answer.text
    assert term.source in answer.text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("-7 是啥意思", "SIGBUS"),
        ("what does exit code -9 mean", "exit code 137"),
        ("signal 11?", "exit code 139"),
        ("what is errno 116", "stale file handle"),
        ("kill -9 没用，是 D 状态，D状态是什么", "D state"),
        ("status=12 是啥意思", "completion error"),
    ],
)
def test_a_number_of_a_signal_or_an_error_is_its_term(text: str, name: str) -> None:
    term = find_term(text)
    assert term is not None
    assert term.name == name


def test_a_word_of_a_name_is_the_term_that_the_case_is_about() -> None:
    row, pod = (find_term("pending 是什么意思", about) for about in ("bad memory row", "a pod"))
    assert row is not None
    assert row.name == "row remapping"
    assert pod is not None
    assert pod.name == "Pending pod"


def test_terms_that_are_compared_are_all_explained(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    text = "what is the difference between NVLink and PCIe P2P?"
    answer = answered(Act.EXPLAIN_TERM, text, match, knowledge).text
    assert "NVLink:" in answer
    assert "GPUDirect P2P:" in answer


def test_a_workaround_gets_the_job_going_and_prevention_keeps_it_away(
    match: Conversation, symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    stopgap = answered(Act.WORKAROUND, "anything until the morning?", match, knowledge)
    assert "NCCL_SHM_DISABLE=1" in stopgap.text
    assert "get going tonight" in answered(Act.WORKAROUND, "a plan b?", symptom, knowledge).text
    assert "So that it stays away" in answered(Act.PREVENT, "never again", match, knowledge).text
    assert "pin the versions" in answered(Act.PREVENT, "never again", symptom, knowledge).text


@pytest.mark.parametrize("text", ["what is a flux capacitor", "", "stararchitecture", "ark"])
def test_a_part_of_a_word_is_no_term(text: str) -> None:
    assert find_term(text) is None


def test_the_glossary_has_one_term_for_each_name() -> None:
    rows = tomllib.loads(Path("kb/conversation/terms.toml").read_text(encoding="utf-8"))["term"]
    names = [name.lower() for row in rows for name in (row["name"], *row["also"])]
    assert len(rows) >= 150
    assert len(names) == len(set(names))
    for row in rows:
        found = find_term(f"what is {row['name']}?")
        assert found is not None
        assert found.name == row["name"]
        assert CHINESE.search(row["zh"])
        assert row["source"].startswith("https://")


def test_most_likely_is_one_and_what_to_do_about_it(
    match: Conversation, symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    one = answered(Act.MOST_LIKELY, "just tell me the one", match, knowledge)
    assert TOO_SMALL in one.text
    assert "df -h /dev/shm" in one.text
    assert one.lines
    cause = answered(Act.MOST_LIKELY, "best guess?", symptom, knowledge)
    assert "You would see" in cause.text


def test_others_are_the_reports_of_the_record(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    text = answered(Act.OTHERS, "has anybody else seen this", match, knowledge).text
    assert match.matches[0].incident.header.references[0] in text
    assert "confirmed that the fix helped" in text


def test_success_names_what_helped_and_is_kept(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    answer = answered(Act.SUCCESS, "step 2 fixed it, thanks", match, knowledge)
    assert "step 2 helped" in answer.text
    assert "Then" not in answer.text
    assert answer.statement is not None
    assert answer.statement.solved is not None
    assert (answer.statement.solved.record, answer.statement.solved.step) == (TOO_SMALL, 2)
    assert answer.statement.factors == {}


def test_failure_asks_which_step_and_goes_on(match: Conversation, knowledge: KnowledgeBase) -> None:
    answer = answered(Act.FAILURE, "still the same", match, knowledge)
    assert "Which step" in answer.text
    assert "never took effect" in answer.text
    assert answer.shows
    assert answer.statement is None


def test_what_cannot_be_done_is_set_aside_and_another_is_offered(
    symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    first = task_of(symptom, knowledge)
    answer = answered(Act.CANNOT, "I can't run that here", symptom, knowledge)
    assert first is not None
    assert answer.statement is not None
    assert answer.statement.set_aside == (name_of(first),)
    assert answer.shows != (name_of(first),)
    after = symptom.with_statement(answer.statement)
    second = task_of(after, knowledge)
    assert second is None or name_of(second) != name_of(first)


def test_a_job_that_is_gone_is_asked_for_nothing_that_needs_it(
    symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    answer = answered(Act.CANNOT, "the job is already gone", symptom, knowledge)
    assert answer.statement is not None
    after = symptom.with_statement(answer.statement)
    task = task_of(after, knowledge)
    assert after.job_ended
    assert not isinstance(task, NextCheck) or task.check.header.needs_job != "running"


def test_without_root_no_check_needs_it(symptom: Conversation, knowledge: KnowledgeBase) -> None:
    answer = answered(Act.CANNOT, "没有 root 权限", symptom, knowledge)
    assert answer.statement is not None
    after = symptom.with_statement(answer.statement)
    for _number in range(10):
        task = task_of(after, knowledge)
        if not isinstance(task, NextCheck):
            break
        assert "root" not in task.check.header.needs
        again = answered(Act.CANNOT, "cannot do that", after, knowledge)
        assert again.statement is not None
        after = after.with_statement(again.statement)


def test_a_summary_says_what_is_known_told_tried_and_open_without_secrets(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    token = "hf_" + "a1B2c3" * 6
    talked = reply(match, "step 2 done", knowledge)
    talked = reply(talked, f"we run it with HF_TOKEN={token} on 2 nodes", knowledge)
    for text in ("summarise", "总结一下", "write an upstream issue"):
        note = answered(Act.SUMMARISE, text, talked, knowledge).text
        assert token not in note
        assert "--shm-size" in note or "shared memory" in note or "共享内存" in note
        assert "line 1" in note
    boss = answered(Act.SUMMARISE, "two lines for my manager", talked, knowledge).text
    assert "```" not in boss
    assert boss.count("\n") <= 4
    shift = answered(Act.HAND_OVER, "my shift ends", talked, knowledge).text
    assert "Open, next" in shift


def test_what_helped_before_is_said_the_next_time(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    past = Outcome(datetime(2026, 11, 3, 12, tzinfo=UTC), TOO_SMALL, 2)
    again = begin(match.diagnosis, [past])
    assert "You had this on 2026-11-03; step 2 helped." in said(again)
    assert "You had this" not in said(begin(match.diagnosis, [Outcome(past.time, "other")]))


def test_outcomes_are_kept_once_for_each_record(
    match: Conversation,
    knowledge: KnowledgeBase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KB_STATE", str(tmp_path))
    answer = answered(Act.SUCCESS, "step 2 fixed it", match, knowledge)
    assert answer.statement is not None
    after = match.with_statement(answer.statement)
    outcomes = Outcomes(Settings(), pytest.fail)
    outcomes.take(match, after)
    outcomes.take(match, after)
    outcomes.take(after, after)
    (kept,) = outcomes.load()
    assert (kept.record, kept.step) == (TOO_SMALL, 2)
    assert Outcomes(Settings(history=False), pytest.fail).load() == ()


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("为什么", Language.ENGLISH, Language.CHINESE),
        ("ok", Language.CHINESE, Language.CHINESE),
        ("NCCL 2.18", Language.CHINESE, Language.CHINESE),
        ("what should we look at after that", Language.CHINESE, Language.ENGLISH),
        ("Traceback (most recent call last):\n  File x in y z", Language.CHINESE, Language.CHINESE),
        ("why", Language.ENGLISH, Language.ENGLISH),
    ],
)
def test_the_language_is_that_of_the_user(text: str, before: Language, after: Language) -> None:
    assert language_of(text, before) is after


def test_a_chinese_user_is_answered_in_chinese_throughout(knowledge: KnowledgeBase) -> None:
    start = begin(
        diagnose(Log.from_text("训练跑了几个小时就卡住了，没有报错，两台机器"), knowledge)
    )
    talked = start
    for text in ("下一步", "为什么", "怎么解决", "帮助", "我都说过什么", "撤销"):
        talked = reply(talked, text, knowledge)
        assert CHINESE.search(said(talked)), text
    assert CHINESE.search(said(start))


def test_every_sentence_exists_in_both_languages_with_the_same_values() -> None:
    table = tomllib.loads(Path("kb/conversation/sentences.toml").read_text(encoding="utf-8"))
    speakers = map(Path, ("kb/conversation", "kb/llm", "kb/views"))
    code = "".join(path.read_text() for speaker in speakers for path in speaker.rglob("*.py"))
    families = (*re.findall(r'say\(f"([a-z-]+-)\{', code), "asks-")
    for key, texts in table.items():
        assert set(texts) == {"en", "zh"}, key
        values = [{name for _t, name, _s, _c in Formatter().parse(text) if name} for text in
                  texts.values()]  # fmt: skip
        assert values[0] == values[1], key
        assert f'"{key}"' in code or key.startswith(families), key
    for key in re.findall(r'say\(\s*"([a-z-]+)"', code):
        assert key in table, key


def test_the_step_that_is_done_is_not_offered_again(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    after = reply(match, "step 1 done", knowledge)
    task = task_of(after, knowledge)
    assert isinstance(task, FixStep)
    assert task.number == 2
    assert f"Step 2 for [{TOO_SMALL}]" in said(after)


@pytest.mark.parametrize(
    "text", ["we don't use kubernetes", "我们不用 kubernetes", "dmesg has no Xid"]
)
def test_what_is_denied_is_absent(match: Conversation, knowledge: KnowledgeBase, text: str) -> None:
    after = reply(match, text, knowledge)
    assert re.search("Absent: |没有：", said(after))
    assert not set(after.pool) - set(match.pool)


@pytest.mark.parametrize(
    "text", ["would it be Xid?", "last week we had Xid 79", "要是 Xid 79 呢？"]
)
def test_what_is_asked_supposed_or_past_moves_nothing(
    match: Conversation, knowledge: KnowledgeBase, text: str
) -> None:
    after = reply(match, text, knowledge)
    assert after.matches == match.matches
    assert set(after.pool) == set(match.pool)


def test_the_value_that_a_step_looks_for_marks_it_and_goes_on(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    after = reply(match, "df -h /dev/shm shows 64M", knowledge)
    assert after.matches[0].confidence >= match.matches[0].confidence
    assert f"Step 2 for [{TOO_SMALL}]" in said(after)


def test_a_step_that_is_said_to_have_failed_is_asked_for_its_effect(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    after = reply(match, "step 2 did not help", knowledge)
    assert (TOO_SMALL, 2) in after.done
    assert "Did it take effect?" in said(after)


def test_a_correction_replaces_what_was_said(knowledge: KnowledgeBase) -> None:
    start = begin(diagnose(Log.from_text(HANG.replace("16", "two")), knowledge))
    first = reply(start, "we run NCCL 2.18", knowledge)
    after = reply(first, "sorry, I meant NCCL 2.21", knowledge)
    assert after.known.versions["nccl"] == "2.21"
    assert len(after.statements) == len(first.statements)


def test_an_output_that_shows_a_cause_names_it_with_its_remedy(
    symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    output = (
        '== node-0 rank 0 pid 4410\nThread 4410 (active): "MainThread"\n'
        "    save_checkpoint (train/save.py:44)\n    main (train.py:140)\n"
        '== node-0 rank 1 pid 4411\nThread 4411 (active): "MainThread"\n'
        "    barrier (torch/distributed/distributed_c10d.py:4818)\n"
    )
    after = reply(symptom, output, knowledge)
    assert "points to" in said(after)


def test_after_starting_over_the_next_problem_is_a_new_case(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    bare = reply(match, "start over", knowledge)
    assert bare.matches == ()
    assert bare.statements == ()
    after = reply(bare, HANG, knowledge)
    assert after.diagnosis.playbooks[0].playbook.id == "hang-mid-training"
    assert after.turns[: len(bare.turns)] == bare.turns


def test_two_things_at_once_are_both_answered(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    after = reply(match, "thanks, that fixed it", knowledge)
    assert after.solved is not None
    assert "You're welcome" not in said(after)


def test_a_chinese_user_is_asked_and_answers_in_chinese(knowledge: KnowledgeBase) -> None:
    start = begin(diagnose(Log.from_text("训练卡住 NCCL watchdog timeout ALLREDUCE"), knowledge))
    talked = reply(start, "不知道", knowledge) if start.question else start
    for conversation in (start, talked):
        if conversation.question:
            assert conversation.question.answers[-1] == "不知道"
    if start.question:
        assert len(talked.statements) == 1


def test_a_damaged_list_of_outcomes_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_STATE", str(tmp_path))
    (tmp_path / "outcomes.json").write_bytes(b'[{"time": 1}]')
    told: list[str] = []
    assert Outcomes(Settings(), told.append).load() == ()
    assert "damaged" in told[0]
    assert (tmp_path / "outcomes.damaged.json").exists()


BUS = "all ranks die with a bus error when the workers start"


@pytest.fixture(scope="module")
def bus(knowledge: KnowledgeBase) -> Conversation:
    """A symptom is open, and so is its first check, the size of /dev/shm."""
    conversation = begin(diagnose(Log.from_text(BUS), knowledge))
    assert name_of(task_of(conversation, knowledge)) == "df-shm"
    return conversation


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("64M", "Container's /dev/shm is too small"),
        ("it shows 64M", "Container's /dev/shm is too small"),
        ("只有 64M", "容器的 /dev/shm 太小"),
    ],
)
def test_a_short_answer_to_a_check_is_read(
    bus: Conversation, knowledge: KnowledgeBase, text: str, cause: str
) -> None:
    after = reply(bus, text, knowledge)
    assert cause in said(after)
    assert after.readings["bus-error-shm:shm-small"] > 1


def test_a_question_changes_nothing_and_is_answered_from_the_leading_pages(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    after = reply(match, "can I use a memory emptyDir for that on Kubernetes?", knowledge)
    assert f"[{TOO_SMALL}]" in said(after)
    assert "emptyDir" in said(after)
    assert after.statements == ()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("our shift changes at six", "Shared memory|shared memory"),
        ("the vendor visits us on Thursday", "Shared memory|shared memory"),
        ("explain it as if I were new here", "shared memory"),
        ("would a faster CPU help here?", "does not take the cause away"),
        ("should I restart now or leave it hanging?", "not in a checkpoint"),
        ("how do we prevent that in future", "every node"),
        ("how do I roll that change back later", "set it back"),
        ("how can I verify that it took effect", "To be sure"),
    ],
)
def test_what_no_record_speaks_of_gets_what_leads_or_what_holds_in_general(
    match: Conversation, knowledge: KnowledgeBase, text: str, word: str
) -> None:
    after = reply(match, text, knowledge)
    assert re.search(word, said(after))
    assert "did not understand" not in said(after)
    assert after.matches == match.matches


def test_the_output_of_a_step_that_looks_leads_to_the_next_step(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    pasted = (
        "$ df -h /dev/shm\nFilesystem Size Used Avail Use% Mounted on\nshm 64M 64M 0 100% /dev/shm"
    )
    after = reply(match, pasted, knowledge)
    assert (TOO_SMALL, 1) in after.done
    assert f"Step 2 for [{TOO_SMALL}]" in said(after)


def test_a_new_case_told_with_the_request_to_start_over_is_taken_up(
    symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    for text in (f"forget it, start over. new problem: {BUS}", f"start over, mine is: {BUS}"):
        after = reply(symptom, text, knowledge)
        assert "shared memory is full" in said(after)
        assert "Tell me the new one" not in said(after)
        assert after.statements == ()


@pytest.mark.parametrize(
    "text", ["how do I run that on slurm?", "how do I do that", "这个在 slurm 上怎么跑"]
)
def test_how_to_do_it_is_about_what_was_told_to_do(
    symptom: Conversation, knowledge: KnowledgeBase, text: str
) -> None:
    task = task_of(symptom, knowledge)
    assert isinstance(task, NextCheck)
    assert f"[{task.check.id}]" in said(reply(symptom, text, knowledge))


@pytest.mark.parametrize(
    ("text", "check"),
    [("how can I see ECC errors", "ecc")],
)
def test_how_to_see_something_names_the_check_for_it(
    symptom: Conversation, knowledge: KnowledgeBase, text: str, check: str
) -> None:
    assert re.search(rf"\[[a-z-]*{check}[a-z-]*\]", said(reply(symptom, text, knowledge)))


def test_a_term_is_explained_beside_the_way_to_see_it(
    symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    answer = said(reply(symptom, "what is ACS? how do I see whether it is on", knowledge))
    assert "A PCIe feature" in answer
    assert "lspci" in answer


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("怎么看 nccl 版本", "nccl-debug-version"),
        ("how do i see if peermem is loaded", "lsmod-peermem"),
    ],
)
def test_how_to_look_at_something_names_its_check(
    symptom: Conversation, knowledge: KnowledgeBase, text: str, check: str
) -> None:
    assert f"[{check}]" in answered(Act.HOW, text, symptom, knowledge).text


def test_how_to_repair_it_is_a_remedy_and_no_look(
    match: Conversation, symptom: Conversation, knowledge: KnowledgeBase
) -> None:
    assert (
        f"Step 2 for [{TOO_SMALL}]" in answered(Act.HOW, "how do i fix it", match, knowledge).text
    )
    assert "今晚先跑起来" in answered(Act.HOW, "怎么改", symptom, knowledge).text


def test_what_nobody_did_is_not_done(match: Conversation, knowledge: KnowledgeBase) -> None:
    assert reply(match, "我们没人加过共享内存", knowledge).done == match.done


def test_a_change_that_is_not_possible_leaves_the_check_open(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    after = reply(match, "I can't upgrade anything here, another team owns it", knowledge)
    assert "without that" in said(after)
    assert f"[{TOO_SMALL}]" in said(after)
    assert after.set_aside == frozenset()


def test_a_request_behind_a_success_is_answered_too(
    match: Conversation, knowledge: KnowledgeBase
) -> None:
    after = reply(match, "it works now. how long does such a change take?", knowledge)
    assert after.solved is not None
    assert "restart" in said(after)


@pytest.mark.parametrize("text", ["may that setting stay that way?", "就这样放着可以吗"])
def test_a_workaround_is_no_repair(
    match: Conversation, knowledge: KnowledgeBase, text: str
) -> None:
    after = reply(match, text, knowledge)
    assert re.search("proper fix|正式修复", said(after))


@pytest.mark.parametrize("text", ["how do I know it works now", "怎么验证修好了", "如何确认解决了"])
def test_who_asks_how_to_see_that_it_works_has_not_said_that_it_does(
    match: Conversation, knowledge: KnowledgeBase, text: str
) -> None:
    assert reply(match, text, knowledge).solved is None
