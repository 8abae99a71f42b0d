"""What to do: the next thing, how to do it, what it does to the job, what it costs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

import msgspec

from kb.check import Check, JobState, Loss
from kb.conversation.acts import Act, Acted
from kb.conversation.done_steps import FixStep, only_looks
from kb.conversation.language import Language, in_language, joined, say, translation
from kb.conversation.next_step import (
    Task,
    name_of,
    open_steps,
    playbooks_of,
    symptom_of,
    task_of,
)
from kb.conversation.passages import passage_about
from kb.conversation.phrases import harm_of
from kb.conversation.replies.answer import (
    Answer,
    cite_check,
    from_pages,
    in_short,
    not_understood,
    nothing_to_do,
    paragraphs,
    sentences,
    steps_ahead,
    with_leader,
    with_passage,
    with_task,
)
from kb.conversation.replies.meant import (
    check_about,
    first_record,
    place_named,
    place_of,
    record_meant,
    task_meant,
    task_named,
)
from kb.conversation.replies.remedies import show_fix
from kb.conversation.speech import (
    describe_step,
    fenced_command,
    in_a_row,
    prose,
    risk_in_words,
)
from kb.conversation.state import Conversation, Speaker, Statement
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck
from kb.questions import QuestionPlan, Topic
from kb.soft_breaks import join_soft_breaks

_WARNS = re.compile(
    r"[^.:;]*\b(?:destructive|lose|loses|lost|kill|kills|stops?|restart|reboot|drain|slower"
    r"|cannot be undone|deletes?|wipes?|interrupts?|affects?|only while|careful|danger)"
    r"\b[^.;]*(?:[.;]|$)"
    r"(?:[^.]*\.)?",
    re.IGNORECASE,
)
"""Sentences of a step that tell its harm, with the one behind them."""
_PRICE = re.compile(
    r"[^.]*\b(?:slower|slow|takes|minutes?|hours?|seconds?|bandwidth|memory|costs?|overhead)\b[^.]*\.",
    re.IGNORECASE,
)
"""Sentences of a step that tell its price."""
_VERIFIES = re.compile(
    r"\b(?:works|worked|working|took|applied|effect\w*|helped|fixed|successful\w*)\b"
    r"|生效|修好|成功|正常的",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:change|upgrade|downgrade|add|buy|replace|update|modify|swap|resize|get more)\b"
    r"|[加改换买扩]|升级|降级|重装|更换|调整",
    re.IGNORECASE,
)
"""Something that would change the set-up, not the run of a check."""
_REPAIRS = re.compile(
    r"(?:so |and |but |ok,? )*how (?:do|can|should|would) (?:i|we|you|one) "
    r"(?:fix|repair|solve|change|set|cure|resolve) (?:it|that|this)\W*"
    r"|(?:那|那么|所以)?(?:该|应该|要|我)?(?:怎么|如何)(?:去)?(?:改|设|配|修|解决|修复|处理|设置|配置)(?:呢|啊|呀|它|这个)?\W*",
    re.IGNORECASE,
)
"""Asks for the repair, without saying of what."""
_OF_SAFETY = re.compile(
    r"\b(?:safe|safely|risk\w*|danger\w*|harm\w*|hurt\w*|affect\w*|disturb\w*|break\w*|impact\w*|kill\w*"
    r"|los[es]\w*|down\w*|interrupt\w*|slow\w*|crash\w*|restart\w*|reboot\w*|prod\w*|live|running"
    r"|side effects?|ok|okay|fine|allowed|careful|destructive|damage\w*|stop\w*|wait|worry)\b"
    r"|安全|风险|影响|危险|会不会|丢|坏|停|断|敢|放心|后果|副作用|线上|生产|重启|可以|能不能|要紧|等|卡住|没事",
    re.IGNORECASE,
)
"""Asks what something does to the job."""
_GRAVE = frozenset({"kill", "delete", "reboot"})
"""Harms that nothing undoes: a check that has words of the question gives no leave for them."""
_OF_IT = re.compile(
    r"\b(?:run|do|execute|try|take|paste|read|start) (?:that|this|it|these|those)\b"
    r"|\bthat command\b"
    r"|(?:这个|那个|它|这条|这一步|上面的).{0,6}(?:怎么|如何|在哪)|(?:怎么|如何|在哪).{0,3}(?:跑|执行|运行|做|贴)",
    re.IGNORECASE,
)
"""Asks about what was told to do."""
_IS_NEEDED = re.compile(
    r"\b(?:need|needs|have|require|requires) (?:to|a|an)\b.{0,24}\b(?:reboot|restart|downtime)"
    r"|\b(?:reboot|restart|downtime)\w* (?:needed|required|necessary)"
    r"|改.{0,8}(?:需要|要|得).{0,4}(?:重启|停机)|(?:需要|得|必须).{0,4}(?:重启|停机)",
    re.IGNORECASE,
)
"""Asks whether a restart belongs to the step, and not for leave to do one."""
_CAPITALS = re.compile(r"\b[A-Z][A-Z_]+\b|<[a-z][a-z _-]*>")
_JOB_GONE = re.compile(
    r"\b(?:job|process|pod|run|it|rank|node|container)s?\b.{0,30}\b(?:gone|dead|died|ended|exited|finished"
    r"|killed|restarted|rebooted|deleted|over|evicted|rescheduled|down already)\b"
    r"|\b(?:already|just) (?:restarted|rebooted|killed|cancelled|resubmitted)\b|\bno longer runs\b"
    r"|(?:任务|作业|进程|pod|容器|机器|节点).{0,8}(?:没了|退出|结束|挂了|重启|被杀|杀掉|删了|回收)"
    r"|已经(?:重启|杀|退出|结束|停)",
    re.IGNORECASE,
)
_NO_ROOT = re.compile(
    r"(?:\bno\b|\bnot\b|n['’]?t\b|\bwithout\b|\black).{0,20}\b(?:root|sudo|privileges?|admin)\b"
    r"|(?:没|无|不是|不能|拿不到|缺).{0,8}(?:root|sudo|管理员|提权|权限)",
    re.IGNORECASE,
)
_MAX_FINDINGS_NAMED = 2
"""Of a check, abnormal ones, in its order."""
_MINUTE, _HOUR = 60, 3600
"""In seconds."""


def next_step(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What to do now, and the question that is open."""
    language = conversation.language
    named = record_meant(acted.text, conversation, knowledge)
    task = task_of(conversation, knowledge)
    parts = []
    if conversation.inquiry:
        parts.append(_open_question(conversation.inquiry, language))
    if task:
        answer = with_task("\n".join(parts), task, language)
        text = paragraphs([answer.text, steps_ahead(task, conversation)])
        return msgspec.structs.replace(answer, text=text)
    incident = named or first_record(conversation)
    if incident:
        verify = prose(incident.body.verify, language)
        parts.append(say("all-steps-done", language, id=incident.id, verify=verify))
    else:
        parts.append(nothing_to_do(conversation))
    return Answer(paragraphs(parts))


def _open_question(inquiry: QuestionPlan, language: Language) -> str:
    if inquiry.topic is Topic.EFFECT:
        return inquiry.text
    return say("ask-apart", language, question=in_language(inquiry.text, language))


def how(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """The command, where to run it, and what its placeholders stand for; or how to see that it
    works."""
    language = conversation.language
    incident = first_record(conversation)
    if incident and _VERIFIES.search(acted.text):
        said = say("success-verify", language, text=prose(incident.body.verify, language))
        return with_leader(said, conversation, knowledge)
    answer = _change(acted, conversation, knowledge) or _from_pages(acted, conversation, knowledge)
    if answer:
        return answer
    task = task_meant(acted.text, conversation, knowledge)
    if task is None:
        return Answer(nothing_to_do(conversation))
    if isinstance(task, NextCheck) and _VERIFIES.search(acted.text):
        normal = prose(task.check.body.normal, language)
        text = say("normal-output", language, normal=normal, id=task.check.id)
        return Answer(text, shows=(name_of(task),))
    if isinstance(task, NextCheck):
        text = paragraphs(_how_check(task, acted.text, conversation))
        return Answer(text, shows=(name_of(task),))
    command = task.step.command
    where = say("run-step-where" if command else "no-command", language)
    step = describe_step(task.incident.id, task.number, task.step, language)
    parts = [step, where, _placeholders(command or "", language), steps_ahead(task, conversation)]
    return Answer(paragraphs(parts), shows=(name_of(task),), records=(task.incident.id,))


def _change(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """How to change something that is not named: the next step that changes something, or the
    remedies of the symptom."""
    if not _REPAIRS.fullmatch(acted.text) or task_named(acted.text, conversation, knowledge):
        return None
    incident = first_record(conversation)
    if symptom_of(conversation, knowledge) or incident is None:
        return show_fix(acted, conversation, knowledge)
    changes = (one for one in open_steps(incident, conversation) if not only_looks(one.step))
    step = next(changes, None)
    return with_task("", step, conversation.language) if step else None


def _whole_message(acted: Acted, conversation: Conversation) -> str:
    """The message of which a part is answered: in the part, what it is about may be "it"."""
    last = conversation.turns[-1]
    return last.text if last.speaker is Speaker.USER and acted.text in last.text else acted.text


def _from_pages(
    acted: Acted, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer | None:
    """What the pages say about a question that names no check or step: the leading ones, for how to
    do something the check about it, or else the record that its words name. None for one of "it",
    and where they say nothing."""
    if _OF_IT.search(acted.text) or task_named(acted.text, conversation, knowledge):
        return None
    passage = passage_about(acted.text, conversation, knowledge)
    if passage:
        return with_passage(passage, "", conversation, knowledge)
    whole = _whole_message(acted, conversation)
    check = check_about(whole, conversation, knowledge) if acted.act is Act.HOW else None
    if check:
        return Answer(paragraphs(_how_check(check, whole, conversation)), shows=(name_of(check),))
    return from_pages(acted.text, conversation, knowledge)


def _how_check(task: NextCheck, text: str, conversation: Conversation) -> Iterator[str]:
    language, check = conversation.language, task.check
    place = place_of(text, conversation)
    command = check.command(place)
    title, where = in_language(check.title, language), in_language(check.header.where, language)
    yield say("check-next", language, title=title, id=check.id)
    if command.place is place and place_named(text):
        yield say("form-for", language, place=say(f"place-{place}", language))
    yield fenced_command(command)
    yield in_language(command.note or "", language)
    yield say("run-where", language, where=where)
    yield _placeholders(command.run, language)
    yield sentences(_needs(check, language))
    findings = [found.means for found in check.body.findings if found.abnormal]
    for means in findings[:_MAX_FINDINGS_NAMED]:
        yield say("look-for", language, finding=prose(means, language))
    yield say("paste-output", language)


def _needs(check: Check, language: Language) -> Iterator[str]:
    if check.header.needs:
        yield say("needs", language, needs=in_a_row(check.header.needs, language))
    if check.header.needs_job is JobState.RUNNING:
        yield say("needs-running", language)


def _placeholders(command: str, language: Language) -> str:
    """What the words in capitals stand for."""
    known = _placeholder_table()
    words = dict.fromkeys(_CAPITALS.findall(command))
    values = [f"`{word}`: {known[word][language]}" for word in words if word in known]
    values += [f"`{word}`" for word in words if word.startswith("<")]
    return say("put-in", language, values="; ".join(values)) if values else ""


@cache
def _placeholder_table() -> Mapping[str, Mapping[str, str]]:
    source = files("kb.conversation").joinpath("placeholders.toml").read_bytes()
    return tomllib.loads(source.decode())


def safe(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What it does to the job, what is lost, and what to save before."""
    language = conversation.language
    harm = "" if _IS_NEEDED.search(acted.text) else harm_of(acted.text)
    told = _from_pages(acted, conversation, knowledge)
    if told:
        general = say(f"harm-{harm}", language) if harm else ""
        return msgspec.structs.replace(told, text=paragraphs([general, told.text]))
    task = task_meant(acted.text, conversation, knowledge)
    named = task_named(acted.text, conversation, knowledge) if harm else None
    if harm and (named is None or (harm in _GRAVE and isinstance(named, NextCheck))):
        parts = [say(f"harm-{harm}", language)]
    elif not _OF_SAFETY.search(acted.text):
        return not_understood("no-passage", conversation, knowledge)
    elif task is None:
        parts = [say("safe-nothing", language)]
    elif isinstance(task, NextCheck):
        parts = list(_safe_check(task.check, language))
    else:
        parts = [_safe_step(task, language)]
    if not isinstance(task, FixStep) or not only_looks(task.step):
        parts += _to_secure(conversation, knowledge, is_check=isinstance(task, NextCheck))
    names = (name_of(task),) if task else ()
    return Answer(paragraphs(parts), shows=names, records=_record_of(task))


def _record_of(task: Task | None) -> tuple[str, ...]:
    return (task.incident.id,) if isinstance(task, FixStep) else ()


def _safe_check(check: Check, language: Language) -> Iterator[str]:
    header = check.header
    yield say(f"safe-{header.cost.risk}", language, what=cite_check(check, language))
    if header.caution:
        yield say("caution", language, text=in_language(header.caution, language))
    soon = [loss for loss in header.lost_by if loss is not Loss.ROTATION]
    if soon:
        losses = joined([say(f"loss-{loss}", language) for loss in soon], language)
        yield say("safe-lost", language, losses=losses)


def _safe_step(task: FixStep, language: Language) -> str:
    what = in_short(task, language)
    said = join_soft_breaks(f"{task.step.text} {task.step.why or ''}").replace("\n", " ")
    warning = " ".join(found[0].strip() for found in _WARNS.finditer(said))
    if warning:
        reason = translation(task.step.why or "", language)
        return say("safe-step-warned", language, what=what, warning=reason or warning)
    key = "safe-step-looks" if only_looks(task.step) else "safe-step-changes"
    return say(key, language, what=what)


def _to_secure(
    conversation: Conversation, knowledge: KnowledgeBase, *, is_check: bool
) -> Iterator[str]:
    """What a restart destroys, in the words of the leading playbook."""
    for match in playbooks_of(conversation, knowledge)[:1]:
        body, language = match.playbook.body, conversation.language
        if not is_check:
            yield say("safe-secure", language, what=in_a_row(body.secure, language))
        yield say("safe-wait", language, text=prose(body.safe_to_wait, language))


def cost(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """How long it takes, and its price."""
    language = conversation.language
    answer = _from_pages(acted, conversation, knowledge)
    if answer:
        return answer
    task = task_meant(acted.text, conversation, knowledge)
    if task is None:
        return Answer(say("cost-nothing", language))
    if isinstance(task, NextCheck):
        header = task.check.header
        text = say(
            "cost-check",
            language,
            what=in_short(task, language),
            time=duration(header.cost.seconds, language),
            risk=risk_in_words(header, language),
        )
        return Answer(text, shows=(name_of(task),))
    key = "cost-step-looks" if only_looks(task.step) else "cost-step-changes"
    parts = [say(key, language, what=in_short(task, language))]
    price = _PRICE.search(join_soft_breaks(task.step.why or ""))
    if price:
        reason = translation(task.step.why or "", language)
        parts.append(say("cost-price", language, text=reason or price[0].strip()))
    return Answer(sentences(parts), shows=(name_of(task),), records=_record_of(task))


def duration(seconds: int, language: Language) -> str:
    """A duration as people say it."""
    if seconds < _MINUTE:
        return say("seconds", language, number=seconds)
    if seconds < _HOUR:
        return say("minutes", language, number=round(seconds / _MINUTE))
    return say("hours", language, number=round(seconds / _HOUR))


def cannot(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What cannot be done is set aside, and something else is offered."""
    language = conversation.language
    named = task_named(acted.text, conversation, knowledge)
    if named is None and _CHANGES.search(acted.text) and not _OF_IT.search(acted.text):
        return _without_it(acted, conversation, knowledge)
    task = named or task_meant(acted.text, conversation, knowledge)
    aside = [name_of(task)] if task else []
    said = say("cannot", language, what=in_short(task, language)) if task else ""
    gone = bool(_JOB_GONE.search(acted.text))
    if gone:
        aside, said = [], say("cannot-job", language)
    elif _NO_ROOT.search(acted.text):
        aside += _for_root(knowledge)
        said = say("cannot-root", language)
    statement = Statement(
        acted.text, says=(said,) if said else (), set_aside=tuple(aside), job_ended=gone
    )
    return _with_alternative(said, statement, conversation, knowledge)


def _without_it(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """A change that is not possible is noted, and all other remedies are named."""
    said = say("cannot-change", conversation.language)
    statement = Statement(acted.text, says=(said,))
    rest = show_fix(acted, conversation, knowledge)
    text = paragraphs([said, rest.text])
    return msgspec.structs.replace(rest, text=text, statement=statement)


def _for_root(knowledge: KnowledgeBase) -> list[str]:
    return [
        guide.id
        for guide in knowledge.guides.by_id.values()
        if isinstance(guide, Check) and "root" in guide.header.needs
    ]


def _with_alternative(
    said: str, statement: Statement, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    language = conversation.language
    other = task_of(conversation.with_statement(statement), knowledge)
    if other is None:
        return Answer(paragraphs([said, say("cannot-last", language)]), statement=statement)
    answer = with_task(paragraphs([said, say("instead", language)]), other, language)
    return Answer(answer.text, shows=answer.shows, records=answer.records, statement=statement)


_FIND = {
    Topic.SYSTEMS: "find-systems",
    Topic.NODES: "find-nodes",
    Topic.HARDWARE: "find-hardware",
    Topic.VERSION: "find-version",
    Topic.EFFECT: "find-effect",
}
"""How to find out what is asked, by what it is about."""


def dont_know(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """How to find out."""
    language, inquiry = conversation.language, conversation.inquiry
    if inquiry and inquiry.topic in _FIND:
        return Answer(sentences([say("dont-know", language), say(_FIND[inquiry.topic], language)]))
    task = task_of(conversation, knowledge)
    if task is None:
        return Answer(sentences([say("dont-know", language), nothing_to_do(conversation)]))
    key = "find-observation" if inquiry else "find-out"
    return with_task(sentences([say("dont-know", language), say(key, language)]), task, language)


def yes(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """Without a question it is a "go ahead"."""
    task = task_of(conversation, knowledge)
    language = conversation.language
    if task is None:
        return Answer(sentences([say("no-question", language), nothing_to_do(conversation)]))
    return with_task(say("go-ahead", language), task, language)
