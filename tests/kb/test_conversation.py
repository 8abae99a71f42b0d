"""The conversation over the shipped incidents: what a user would see, turn by turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from kb.conversation import Conversation, ReplyAct, begin, greet, reply
from kb.conversation.language import Language, in_language
from kb.conversation.next_step import symptom_of
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import DONT_KNOW, diagnose
from kb.evaluate.chat import measure_chat
from kb.evaluate.chat import talk as simulate_talk
from kb.evaluate.lookalikes import lookalikes
from kb.incident import Topology
from kb.log import Log
from kb.outcome import Outcome
from kb.questions import Topic
from kb.verdict import FITS_AT, Verdict, percent
from tests.kb.talks import said

WATCHDOG = (
    "[rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for"
    " 600532 milliseconds before timing out."
)
SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"
HEALTHY = "".join(f"INFO step {n} loss {3 - n / 200:.3f}\n" for n in range(100)) + "INFO job done\n"
FOLLOW_ON = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"


HANGS = "training hangs, no error"


def opened(log: str, knowledge: KnowledgeBase) -> Conversation:
    return begin(diagnose(Log.from_text(log), knowledge))


def talk(conversation: Conversation, knowledge: KnowledgeBase, *texts: str) -> Conversation:
    for text in texts:
        conversation = reply(conversation, text, knowledge)
    return conversation


def share(conversation: Conversation, identifier: str) -> float:
    return conversation.belief.shares[identifier]


def test_first_turn_says_what_is_seen_where_and_the_likeliest_cause(
    knowledge: KnowledgeBase,
) -> None:
    conversation = opened(f"starting\n{SHM}", knowledge)
    (turn,) = conversation.turns
    assert "line 2" in turn.text
    assert "/dev/shm/nccl-Zk2" in turn.text
    assert turn.records == ("nccl-shm-too-small-container",)
    assert turn.lines == ((None, 2),)
    assert conversation.matches[0].incident.title in turn.text


def test_first_turn_of_a_job_names_who_failed_first(knowledge: KnowledgeBase) -> None:
    log = Log.from_paths([Path("benchmarks/samples/nccl-shm.log")])
    conversation = begin(diagnose(log, knowledge))
    (turn,) = conversation.turns
    stored = msgspec.json.encode(conversation)
    assert msgspec.json.decode(stored, type=Conversation) == conversation
    assert turn.text.startswith("Rank 3 on gpu-node-3 failed first: ")
    assert "nccl-shm.log line 17" in turn.text


@pytest.mark.parametrize(
    ("log", "verdict", "part"),
    [
        ("", Verdict.UNKNOWN, "The input is empty."),
        ("the cat sat on the mat", Verdict.UNKNOWN, "paste the first error"),
        (HEALTHY, Verdict.HEALTHY, "The log shows no failure"),
        (FOLLOW_ON, Verdict.POSSIBLE, "This is a follow-on error"),
    ],
    ids=["empty", "unknown", "healthy", "follow-on"],
)
def test_first_turn_where_no_incident_is_shown_says_what_would_help(
    knowledge: KnowledgeBase, log: str, verdict: Verdict, part: str
) -> None:
    conversation = opened(log, knowledge)
    assert conversation.verdict is verdict
    assert part in said(conversation)
    assert (conversation.matches, conversation.question) == ((), None)


def test_conversation_begins_with_the_order_of_the_diagnosis(knowledge: KnowledgeBase) -> None:
    diagnosis = diagnose(Log.from_text(WATCHDOG), knowledge, top=50)
    conversation = begin(diagnosis)
    assert conversation.matches == diagnosis.matches
    assert conversation.question == diagnosis.question
    assert conversation.verdict is diagnosis.verdict


def test_reply_is_a_pure_function_and_its_value_can_be_stored(knowledge: KnowledgeBase) -> None:
    start = opened(WATCHDOG, knowledge)
    before = msgspec.json.encode(start)
    texts = ("1", "only with 2 nodes", "I already raised the timeout", "why not 2", "asdf")
    once, again = talk(start, knowledge, *texts), talk(start, knowledge, *texts)
    assert once == again
    assert msgspec.json.encode(start) == before
    assert msgspec.json.decode(msgspec.json.encode(once), type=Conversation) == once


@pytest.mark.parametrize("text", ["1", "one rank raised; only with 2 nodes", "no Xid", SHM])
def test_undo_gives_the_earlier_order_and_question_back(
    knowledge: KnowledgeBase, text: str
) -> None:
    start = opened(WATCHDOG, knowledge)
    undone = talk(start, knowledge, text, "undo")
    assert undone.matches == start.matches
    assert undone.question == start.question
    assert undone.statements == ()
    assert text in said(undone)
    assert "nothing to undo" in said(talk(undone, knowledge, "take it back"))


def until_observation(conversation: Conversation, knowledge: KnowledgeBase) -> Conversation:
    """Answer "don't know" until a record's own observation is asked."""
    while conversation.inquiry and conversation.inquiry.topic is not Topic.OBSERVATION:
        conversation = reply(conversation, DONT_KNOW, knowledge)
    assert conversation.inquiry
    return conversation


def test_yes_speaks_for_the_record_that_asks_and_no_against_it(knowledge: KnowledgeBase) -> None:
    asking = until_observation(opened(WATCHDOG, knowledge), knowledge)
    assert asking.inquiry
    owner = asking.inquiry.records[0]
    yes, no = talk(asking, knowledge, "yes"), talk(asking, knowledge, "no")
    assert share(no, owner) < share(asking, owner) < share(yes, owner)
    assert f"[{owner}]" in said(yes)
    assert owner in yes.turns[-1].records


@pytest.mark.parametrize("text", ["yes", "1", "Y", "是的", "yes.", "对"])
def test_an_answer_can_be_put_in_many_ways(knowledge: KnowledgeBase, text: str) -> None:
    asking = until_observation(opened(WATCHDOG, knowledge), knowledge)
    assert talk(asking, knowledge, text).matches == talk(asking, knowledge, "yes").matches


@pytest.mark.parametrize("text", ["don't know", "3", "不知道", "no idea", "skip"])
def test_not_knowing_changes_no_confidence_and_is_not_asked_again(
    knowledge: KnowledgeBase, text: str
) -> None:
    asking = until_observation(opened(WATCHDOG, knowledge), knowledge)
    after = talk(asking, knowledge, text)
    assert after.matches == asking.matches
    assert after.question != asking.question


def test_questions_are_short_to_answer_never_repeated_and_come_to_an_end(
    knowledge: KnowledgeBase,
) -> None:
    conversation = opened(WATCHDOG, knowledge)
    asked = []
    while conversation.question and len(asked) < 100:
        assert 2 < len(conversation.question.answers) <= 5
        assert conversation.question.answers[-1] == DONT_KNOW
        for printed in ("OpType", "SeqNum", "ALLREDUCE", "Timeout(ms)"):
            assert printed not in conversation.question.text  # the log states it
        asked.append(conversation.inquiry.key if conversation.inquiry else "")
        conversation = reply(conversation, DONT_KNOW, knowledge)
    assert len(asked) == len(set(asked)) < 100


def test_confidences_stay_honest(knowledge: KnowledgeBase) -> None:
    conversation = opened(WATCHDOG, knowledge)
    for _ in range(12):
        if conversation.question is None:
            break
        conversation = reply(conversation, "1", knowledge)
        shown = [match.confidence for match in conversation.matches]
        assert shown == sorted(shown, reverse=True)
        assert sum(shown) <= 1.001
        assert max(shown) <= 0.98


def test_an_answer_with_more_behind_it_is_heard_whole(knowledge: KnowledgeBase) -> None:
    asking = until_observation(opened(WATCHDOG, knowledge), knowledge)
    after = talk(asking, knowledge, "no, it runs on two nodes")
    assert after.known.several_nodes is True
    assert after.statements[-1].question == asking.question.text if asking.question else False


@pytest.mark.parametrize(
    ("text", "gains", "loses"),
    [
        ("only with 2 nodes", Topology.MULTI_NODE, Topology.SINGLE_NODE),
        ("两台机器才会卡", Topology.MULTI_NODE, Topology.SINGLE_NODE),
        ("单机八卡", Topology.SINGLE_NODE, Topology.MULTI_NODE),
        ("we run on a single node", Topology.SINGLE_NODE, Topology.MULTI_NODE),
        ("it does not happen on one node", Topology.MULTI_NODE, Topology.SINGLE_NODE),
        ("works fine on a single machine", Topology.MULTI_NODE, Topology.SINGLE_NODE),
    ],
)
def test_number_of_nodes_speaks_for_records_of_that_topology(
    knowledge: KnowledgeBase, text: str, gains: Topology, loses: Topology
) -> None:
    start = opened("NCCL hangs at the first all_reduce, GPUs at 100 %", knowledge)
    kinds = {i.header.environment.topology: i.id for i in start.incidents.values()}
    after = talk(start, knowledge, text)
    change = {k: share(after, kinds[k]) / share(start, kinds[k]) for k in (gains, loses)}
    assert change[gains] > 3 * change[loses]
    assert "nodes" not in (after.inquiry.key if after.inquiry else "")


def test_a_version_with_the_fix_speaks_against_the_record(knowledge: KnowledgeBase) -> None:
    log = "RuntimeError: fifo leak: waitWorkFifoAvailable spins, CUDA graphs, NCCL stalls"
    record = "nccl-fifo-leak-cuda-graph-stall"
    start = opened(log, knowledge)
    assert str(start.incidents[record].header.fixed_in[0]).startswith("nccl 2.22.3")
    fixed = talk(start, knowledge, "we run NCCL 2.23.4")
    older = talk(start, knowledge, "we run NCCL 2.18")
    assert share(fixed, record) < share(start, record) <= share(older, record)
    assert f"less likely: [{record}]" in said(fixed)


def test_what_happens_with_another_backend_is_not_special_to_the_first(
    knowledge: KnowledgeBase,
) -> None:
    start = opened("NCCL hangs at the first all_reduce, GPUs at 100 %", knowledge)
    after = talk(start, knowledge, "it also happens with gloo")
    nccl = [i for i, one in start.incidents.items() if one.header.systems[0] == "nccl"]
    assert nccl
    assert all(share(after, identifier) < share(start, identifier) for identifier in nccl)


@pytest.mark.parametrize("text", ["I already set --shm-size=16g", "step 2 done"])
def test_a_step_that_was_taken_is_marked_and_did_not_cure_if_it_took_effect(
    knowledge: KnowledgeBase, text: str
) -> None:
    start = opened(SHM, knowledge)
    first = start.matches[0].incident
    after = talk(start, knowledge, text)
    assert f"Marked step 2 of [{first.id}] as done" in said(after)
    assert after.question is not None
    assert "`df -h /dev/shm` in the container shows the new size" in after.question.text
    assert share(after, first.id) == share(start, first.id)
    did, did_not = talk(after, knowledge, "yes"), talk(after, knowledge, "no, it does not")
    assert share(did, first.id) < share(start, first.id) <= share(did_not, first.id)
    assert did.question != after.question != did_not.question
    fix = said(talk(after, knowledge, f"show the fix of {first.id}"))
    assert "2. (done) " in fix
    assert "1. (done)" not in fix


def test_a_step_without_an_observation_lowers_its_record_at_once(knowledge: KnowledgeBase) -> None:
    start = opened(WATCHDOG, knowledge)
    after = talk(start, knowledge, "I already raised the timeout")
    ((record, _number), *_others) = after.done
    assert share(after, record) < share(start, record)
    assert "The problem persists, so this record is less likely now." in said(after)


def test_next_is_the_first_step_that_was_not_taken(knowledge: KnowledgeBase) -> None:
    start = opened(SHM, knowledge)
    first = start.matches[0].incident
    assert "Step 1 for [" in said(talk(start, knowledge, "what should I check next?"))
    done = talk(start, knowledge, "step 1 done")
    if done.matches[0].incident == first:
        assert f"[{first.id}] 的第 2 步" in said(talk(done, knowledge, "下一步"))


@pytest.mark.parametrize(
    "text", ["not in docker", "there is no container", "没有用容器", "我们也没有用容器"]
)
def test_what_is_absent_speaks_against_the_records_that_need_it(
    knowledge: KnowledgeBase, text: str
) -> None:
    start = opened(SHM, knowledge)
    after = talk(start, knowledge, text)
    assert share(after, "nccl-shm-too-small-container") < share(
        start, "nccl-shm-too-small-container"
    )


def test_what_is_absent_is_never_searched_as_if_it_were_there(knowledge: KnowledgeBase) -> None:
    after = talk(opened(WATCHDOG, knowledge), knowledge, "no Xid in dmesg")
    assert not [i for i in after.pool if i.startswith("xid")]
    assert "this rules out no candidate" in said(after)


def test_further_lines_are_searched_with_the_log(knowledge: KnowledgeBase) -> None:
    start = opened("the job does not start", knowledge)
    after = talk(start, knowledge, SHM)
    assert after.matches[0].incident.id == "nccl-shm-too-small-container"
    assert "[nccl-shm-too-small-container] is new at" in said(after)
    assert "`segment`" in said(after)


def test_a_sentence_moves_the_record_that_has_words_for_it(knowledge: KnowledgeBase) -> None:
    start = opened(WATCHDOG, knowledge)
    record = "pytorch-watchdog-timeout-rank0-dataset-preprocessing"
    for text in ("rank 0 is still tokenizing the dataset", "rank 0 还在做数据集 tokenize"):
        after = talk(start, knowledge, text)
        assert share(after, record) > 2 * share(start, record)
        assert re.search(rf"\[{record}\] (?:rises from|从 \d+% 升到)", said(after))


@pytest.mark.parametrize("text", ["asdf qwer", "our meeting is at ten", "今天天气很好"])
def test_what_is_not_understood_is_said_and_changes_nothing(
    knowledge: KnowledgeBase, text: str
) -> None:
    start = opened(WATCHDOG, knowledge)
    after = talk(start, knowledge, text)
    assert re.search("did not understand|nothing changes|判断不变", said(after), re.IGNORECASE)
    assert (after.matches, after.statements, after.inquiry) == (start.matches, (), start.inquiry)


@pytest.mark.parametrize(
    "text",
    [
        "why not 2?",
        "why not the second one",
        "为什么不是第二个",
        "why isn't it {id}",
        "why not {title}",
        "怎么不是 {id}？",
    ],
)
def test_why_not_names_what_is_missing_and_what_would_tell(
    knowledge: KnowledgeBase, text: str
) -> None:
    start = opened(WATCHDOG, knowledge)
    second = start.matches[1].incident
    after = talk(start, knowledge, text.format(id=second.id, title=second.title[:60]))
    assert re.search(rf"\[{second.id}\] (?:is number|排第) 2", said(after))
    assert "line 1" in said(after)
    assert re.search("are not in the log|不在日志里", said(after))
    assert (after.matches, after.statements) == (start.matches, ())


def test_why_not_knows_what_was_told_and_records_that_are_no_candidates(
    knowledge: KnowledgeBase,
) -> None:
    start = opened(SHM, knowledge)
    told = talk(start, knowledge, "not in docker", "why not nccl-shm-too-small-container")
    assert "You said “not in docker”, which contradicts it." in said(told)
    far = talk(start, knowledge, "why not xid79-gpu-fallen-off-bus")
    assert "is not among the candidates shown" in said(far)
    assert "No record matches" in said(talk(start, knowledge, "why not the flux capacitor"))


def test_what_was_told_is_listed(knowledge: KnowledgeBase) -> None:
    start = opened(WATCHDOG, knowledge)
    assert "Nothing yet" in said(talk(start, knowledge, "what did I tell you?"))
    after = talk(start, knowledge, "1", "only with 2 nodes", "what did I say")
    assert "1. “1” (asked: " in said(after)
    assert "2. “only with 2 nodes”" in said(after)


@pytest.mark.parametrize("text", ["show the fix again", "fix", "how do I fix it?", "怎么解决"])
def test_the_fix_is_the_records_with_its_commands(knowledge: KnowledgeBase, text: str) -> None:
    start = opened(SHM, knowledge)
    turn = talk(start, knowledge, text).turns[-1]
    fix = start.matches[0].incident.body.fix
    assert all(step.command in turn.text for step in fix if step.command)
    assert turn.records == (start.matches[0].incident.id,)


def test_every_citation_can_be_found_again(knowledge: KnowledgeBase) -> None:
    log = f"first line\n{WATCHDOG}\nlast line"
    texts = ("2", "why", "why not 2", "no, two nodes", "I already raised the timeout", "next")
    conversation = talk(opened(log, knowledge), knowledge, *texts)
    for turn in conversation.turns:
        assert set(turn.records) <= set(conversation.pool)
        assert all(f"[{identifier}]" in turn.text for identifier in turn.records)
        assert all(1 <= number <= 3 for _file, number in turn.lines)


def test_an_answer_without_a_question_is_told_so(knowledge: KnowledgeBase) -> None:
    start = opened("", knowledge)
    for text in ("yes", "3"):
        assert "No question is open" in said(talk(start, knowledge, text))
    assert "没有待回答的问题" in said(talk(start, knowledge, "是的"))
    asking = opened(WATCHDOG, knowledge)
    assert DONT_KNOW in said(talk(asking, knowledge, "7"))


@pytest.mark.parametrize("text", ["why", "why?", "why is it first", "为什么", "why 1"])
def test_why_shows_what_speaks_for_the_first(knowledge: KnowledgeBase, text: str) -> None:
    start = opened(SHM, knowledge)
    after = talk(start, knowledge, text)
    assert re.search("is number 1|排第 1", said(after))
    assert "(line 1)" in said(after)
    assert start.matches[0].incident.header.caution is None or re.search(
        "Caution|注意", said(after)
    )


@pytest.mark.parametrize(
    "text", ["Address already in use", "it already waits for two hours", "已经卡了两个小时"]
)
def test_already_alone_is_no_step_that_was_taken(knowledge: KnowledgeBase, text: str) -> None:
    after = talk(opened(WATCHDOG, knowledge), knowledge, text)
    assert not after.done
    assert "Marked step" not in said(after)


def test_hostile_words_stay_words(knowledge: KnowledgeBase) -> None:
    text = "\x1b]0;owned\x07 [bold]x[/bold] \u202e timeout" + "(" * 2000 + "a" * 5000
    conversation = talk(opened(f"\x1b[2J{SHM}", knowledge), knowledge, text, "why not \x1b[2J")
    assert not any("\x1b" in turn.text or "\u202e" in turn.text for turn in conversation.turns)


@pytest.mark.parametrize("text", ["also with", "same on", "still in", "it also happens with,"])
def test_a_sentence_that_ends_in_a_preposition_is_answered(
    knowledge: KnowledgeBase, text: str
) -> None:
    after = talk(opened(WATCHDOG, knowledge), knowledge, text, "undo")
    assert said(after)


def test_a_quiet_log_with_a_complaint_finds_what_the_complaint_is_about(
    knowledge: KnowledgeBase,
) -> None:
    start = opened(HEALTHY, knowledge)
    after = talk(start, knowledge, f"then I saw: {SHM}")
    assert start.verdict is Verdict.HEALTHY
    assert after.verdict in (Verdict.MATCH, Verdict.POSSIBLE)
    assert after.matches[0].incident.id == "nccl-shm-too-small-container"


def test_a_complaint_beside_quiet_lines_is_the_failure(knowledge: KnowledgeBase) -> None:
    """No line of the program shows one, but the person does."""
    quiet = (
        "n3:77:77 [0] NCCL INFO cudaDriverVersion 12040\n"
        "n3:77:91 [0] NCCL INFO Comm config Blocking set to 1"
    )
    told = opened(f"it just sits there and nothing moves, the end of it is:\n{quiet}", knowledge)
    assert told.diagnosis.evidence.states_failure
    assert "No line shows a failure" not in told.turns[0].text
    assert "No line shows a failure" in opened(quiet, knowledge).turns[0].text


@pytest.mark.parametrize(
    "lines",
    [
        ("[rank0]: RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:2356", SHM, "and so on"),
        ("here is what it printed", SHM, "and so on"),
    ],
)
def test_a_known_line_in_a_paste_is_evidence_whatever_stands_around_it(
    knowledge: KnowledgeBase, lines: Sequence[str]
) -> None:
    conversation = talk(opened("it hangs at init", knowledge), knowledge, "\n".join(lines))
    assert conversation.matches[0].incident.id == "nccl-shm-too-small-container"


def test_a_conversation_without_a_case_greets_and_asks(knowledge: KnowledgeBase) -> None:
    conversation = greet(diagnose(Log.from_text(""), knowledge))
    (turn,) = conversation.turns
    assert turn.act is ReplyAct.GREET
    conversation = talk(conversation, knowledge, "thanks", "what can you do?", "what next?")
    assert not conversation.matches
    assert not conversation.diagnosis.playbooks
    conversation = talk(conversation, knowledge, SHM)
    assert conversation.turns[-1].act is ReplyAct.DIAGNOSE
    assert conversation.matches[0].incident.id == "nccl-shm-too-small-container"


def test_a_case_begun_by_a_message_is_told_how_the_last_one_ended(
    knowledge: KnowledgeBase,
) -> None:
    solved = Outcome(datetime(2026, 11, 3, 12, tzinfo=UTC), "nccl-shm-too-small-container", 2)
    conversation = greet(diagnose(Log.from_text(""), knowledge), [solved])
    assert "2026-11-03; step 2 helped" in said(talk(conversation, knowledge, SHM))


@pytest.mark.parametrize(
    "text", ["why does my training hang without any error?", "it hangs", "训练卡住了怎么办"]
)
def test_a_question_or_complaint_begins_a_case(knowledge: KnowledgeBase, text: str) -> None:
    conversation = talk(greet(diagnose(Log.from_text(""), knowledge)), knowledge, text)
    assert conversation.turns[-1].act is ReplyAct.DIAGNOSE
    assert conversation.diagnosis.playbooks[0].playbook.id == "hang-mid-training"


@pytest.mark.parametrize("text", ["is this fatal?", "what do you need from me?", "还是不行"])
def test_a_request_without_a_case_begins_none(knowledge: KnowledgeBase, text: str) -> None:
    conversation = talk(greet(diagnose(Log.from_text(""), knowledge)), knowledge, text)
    assert conversation.turns[-1].act is not ReplyAct.DIAGNOSE


@pytest.mark.parametrize("text", ["step 2 fixed it", "we did step 2 and it works now"])
def test_a_step_that_helped_is_no_line_of_a_log(knowledge: KnowledgeBase, text: str) -> None:
    solved = talk(opened(SHM, knowledge), knowledge, text).solved
    assert solved
    assert (solved.record, solved.step) == ("nccl-shm-too-small-container", 2)


@pytest.mark.parametrize(
    "text",
    [
        "it worked until somebody upgraded the driver",
        "on the other cluster it works",
        "on node 3 it works",
        "it works now? no, it crashed again",
        "everything was fine last week, then we moved to another image",
        "昨天还是好的，后来换了镜像",
    ],
)
def test_what_once_worked_is_not_solved(knowledge: KnowledgeBase, text: str) -> None:
    after = talk(opened(SHM, knowledge), knowledge, text)
    assert after.solved is None


def test_of_several_launchers_a_record_needs_one(knowledge: KnowledgeBase) -> None:
    """Its record is about docker and kubernetes."""
    start = opened("Failed to initialize NVML: Unknown Error", knowledge)
    lost = "container-nvml-unknown-error-cgroup-reload"
    assert share(talk(start, knowledge, "we don't use kubernetes"), lost) >= share(start, lost)
    assert share(talk(start, knowledge, "not in docker"), lost) < share(start, lost)


EVERY_NTH = 3
"""Of the groups of look-alikes: all of them take a minute, which `kb eval --chat` takes."""


@pytest.mark.slow
def test_lookalikes_are_told_apart_within_three_questions(knowledge: KnowledgeBase) -> None:
    incidents = knowledge.incidents()
    by_id = {incident.id: incident for incident in incidents}
    groups = lookalikes(incidents, knowledge)
    assert len(groups) >= 50
    report = measure_chat([simulate_talk(group, by_id, knowledge) for group in groups[::EVERY_NTH]])
    assert report.chosen.mean <= 3
    assert report.chosen.mean < report.fixed.mean / 2
    assert report.chosen.reached >= report.fixed.reached


@pytest.mark.parametrize(
    "text", ["2 nodes with 8 GPUs each, slurm, FSDP", "每台 8 卡，slurm 提交，两台机器"]
)
def test_a_set_up_brings_up_no_record(knowledge: KnowledgeBase, text: str) -> None:
    start = opened("our training hangs on two nodes, no error, nothing in the log", knowledge)
    after = talk(start, knowledge, text)
    assert not [match for match in after.matches if match.incident.id not in start.pool]


def test_a_guess_that_fits_badly_is_called_the_nearest(knowledge: KnowledgeBase) -> None:
    after = opened("checkpoint on the second host differs from the first", knowledge)
    assert after.matches[0].confidence < FITS_AT
    assert "Not certain yet" not in said(after)
    assert f"the nearest ({percent(after.matches[0].confidence)})" in said(after)


@pytest.mark.parametrize("text", ["what else could it be?", "那还可能是什么"])
def test_what_else_it_can_be_names_causes_of_the_symptom(
    knowledge: KnowledgeBase, text: str
) -> None:
    start = opened("our training hangs on two nodes, no error, nothing in the log", knowledge)
    named = said(talk(start, knowledge, text))
    symptom = symptom_of(start, knowledge)
    assert symptom is not None
    causes = [in_language(one.cause, start.language) for one in symptom.playbook.body.causes]
    chinese = [in_language(one.cause, Language.CHINESE) for one in symptom.playbook.body.causes]
    assert sum(one.rstrip(".。") in named for one in (*causes, *chinese)) >= 2


def test_a_word_without_an_entry_is_said_back(knowledge: KnowledgeBase) -> None:
    after = talk(opened(WATCHDOG, knowledge), knowledge, "what is frobnicator actually")
    assert "`frobnicator`" in said(after)


def test_first_turn_names_what_follows_a_step_that_only_looks(knowledge: KnowledgeBase) -> None:
    """Who reads only the first answer sees the cure too."""
    capture = (
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 448.00 MiB."
        "\nsglang does not start"
    )
    text = said(opened(capture, knowledge))
    assert "1. Read where it fails" in text
    assert "2. Lower the static share" in text


def test_the_odd_line_of_an_unknown_output_is_quoted(knowledge: KnowledgeBase) -> None:
    output = (
        "pool           state     members\nalpha          active    4\nbeta           degraded  3/4"
    )
    after = talk(opened(HANGS, knowledge), knowledge, output)
    assert re.search(r"stands out: `beta +degraded", said(after))


@pytest.mark.parametrize(
    "text", ["will it sort itself out if we just wait?", "等一会会自己恢复吗？"]
)
def test_nobody_is_told_to_count_on_waiting(knowledge: KnowledgeBase, text: str) -> None:
    before = opened(HANGS, knowledge)
    after = talk(before, knowledge, text)
    assert after.matches == before.matches
    assert re.search("would not count on it|别指望", said(after))


def test_why_this_and_not_that_names_the_cause_of_this(knowledge: KnowledgeBase) -> None:
    scale = "Exception: Current loss scale already at minimum - cannot decrease scale anymore."
    after = talk(opened(scale, knowledge), knowledge, "why the dtype and not the data?")
    assert "Cause:" in said(after)
    assert "65504" in said(after) or "fp16" in said(after)
