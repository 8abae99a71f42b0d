"""What a reply to a part of a message comes to, before it is a turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from index.tokens import tokenize
from kb.answers import KnownQuestion
from kb.check import Check
from kb.conversation.done_steps import only_looks
from kb.conversation.known_questions import (
    MEANT_LIKE,
    MEANT_NEAR,
    MEANT_SURE,
    REMARK_LIKE,
    answer_in,
    question_meant,
    question_near,
)
from kb.conversation.language import Language, in_language, say, translation
from kb.conversation.next_step import (
    Task,
    cause_shown,
    name_of,
    open_steps,
    symptom_of,
    task_of,
)
from kb.conversation.passages import ENOUGH, Passage, passage_about, passage_elsewhere
from kb.conversation.search import likeliest_by_words
from kb.conversation.speech import (
    cite,
    describe_step,
    described_check,
    prose,
    say_ahead,
    say_first,
    tool_turn,
)
from kb.conversation.state import Conversation, ReplyAct, Speaker, Statement
from kb.conversation.subject import asks, is_question, sentences_of
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck
from kb.evidence import EvidenceLine
from kb.evidence.glossary import has_chinese, translate
from kb.incident import Incident
from kb.soft_breaks import join_soft_breaks
from kb.verdict import percent


class Answer(msgspec.Struct, frozen=True):
    """What to say to a part of a message."""

    text: str
    lines: tuple[EvidenceLine, ...] = ()
    """Those that it cites."""
    shows: tuple[str, ...] = ()
    """As in `Turn.shows`."""
    records: tuple[str, ...] = ()
    """Ids that it may cite although they are no candidates."""
    statement: Statement | None = None
    """What the part states."""
    act: ReplyAct = ReplyAct.ANSWER


def with_answers(
    conversation: Conversation, answers: Sequence[Answer], act: ReplyAct | None = None
) -> Conversation:
    """With a turn of these answers, which does what the last of them does unless `act` says it."""
    known = {*conversation.pool, *(name for answer in answers for name in answer.records)}
    turn = tool_turn(
        paragraphs(_once(answer.text for answer in answers)),
        known,
        (line for answer in answers for line in answer.lines),
        tuple(dict.fromkeys(name for answer in answers for name in answer.shows)),
        act or answers[-1].act,
    )
    return conversation.with_turns(turn)


def paragraphs(parts: Iterable[str]) -> str:
    """Each part on a line of its own."""
    return "\n".join(filter(None, parts))


def _once(texts: Iterable[str]) -> Iterator[str]:
    """The texts without the lines that one before them has as well, but for commands."""
    said: set[str] = set()
    for text in texts:
        if "```" in text and text not in said:
            yield text
        else:
            yield "\n".join(line for line in text.split("\n") if line not in said)
        said |= {text, *text.split("\n")}


def sentences(parts: Iterable[str]) -> str:
    """One after the other on one line."""
    return " ".join(filter(None, parts))


def with_task(said: str, task: Task, language: Language) -> Answer:
    """Something said, and below it what to do, ready to copy."""
    text = described_task(task, language)
    records = () if isinstance(task, NextCheck) else (task.incident.id,)
    return Answer(paragraphs([said, text]), shows=(name_of(task),), records=records)


def described_task(task: Task, language: Language) -> str:
    """A check or a step, its command ready to copy."""
    if isinstance(task, NextCheck):
        return described_check(task, language)
    return describe_step(task.incident.id, task.number, task.step, language)


def described_passage(passage: Passage, language: Language) -> str:
    """What a page says; a step of a fix with its command ready to copy."""
    if passage.step:
        return describe_step(passage.page, passage.number, passage.step, language)
    text = _in_language(passage, language).replace("\n", " ")
    return say("passage", language, text=text, id=passage.page)


def _in_language(passage: Passage, language: Language) -> str:
    """The texts that a passage is of, where there is one in the language, or else its own."""
    if not any(translation(text, language) for text in passage.texts):
        return in_language(passage.text, language)
    return sentences(_as_sentence(text, language) for text in passage.texts)


def _as_sentence(text: str, language: Language) -> str:
    known = translation(text, language)
    return f"{known.rstrip('。')}。" if known else f"{join_soft_breaks(text).rstrip('.')}."


def with_leader(said: str, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """Something said, and what leads."""
    return Answer(paragraphs([said, what_leads(conversation, knowledge)]))


def with_passage(
    passage: Passage, said: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    """Something said, what a page says about it, and what leads."""
    text = described_passage(passage, conversation.language)
    shows = (f"{passage.page}#{passage.number}",) if passage.step else ()
    leads = what_leads(conversation, knowledge)
    return Answer(paragraphs([said, text, leads]), shows=shows, records=(passage.page,))


def from_pages(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """What the leading pages say about a question, or else the table of questions, the record that
    its words name, or another page; None where there is none of them."""
    passage = passage_about(text, conversation, knowledge)
    if passage:
        return with_passage(passage, "", conversation, knowledge)
    near = near_question(text, conversation, knowledge)
    if near:
        return near
    named = likeliest_by_words(text, knowledge)
    leading = conversation.matches[0].incident.id if conversation.matches else ""
    language = conversation.language
    if named is None or named.id == leading or not _is_titled(text, named, knowledge):
        other = passage_elsewhere(text, knowledge)
        said = say("elsewhere", language)
        if other:
            return with_passage(other, said, conversation, knowledge)
        return like_question(text, conversation, knowledge)
    known = say("page-about", language, record=cite(named, language))
    steps = enumerate(named.body.fix, 1)
    number, step = next(
        ((n, one) for n, one in steps if not only_looks(one)), (1, named.body.fix[0])
    )
    text = paragraphs([known, describe_step(named.id, number, step, language)])
    return Answer(text, shows=(f"{named.id}#{number}",), records=(named.id,))


def near_question(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """The answer to the nearest question of the table; None where none is near."""
    found = question_near(text, subject_of(conversation))
    if found is None:
        meant, likeness = _meant(text, conversation, knowledge)
        found = meant if likeness >= MEANT_NEAR else None
    return of_table(found, conversation.language)


def like_question(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """The answer to the question of the table that is most like a text, which is named where it may
    be another one: people see whether it is theirs. None where none is like it, or its answer was
    given before."""
    meant, likeness = _meant(text, conversation, knowledge)
    is_asked = asks(text)
    least = MEANT_LIKE if is_asked else REMARK_LIKE
    if meant is None or likeness < least:
        return None
    language = conversation.language
    answer = answer_in(meant, language)
    if any(answer in turn.text for turn in conversation.turns):
        return None
    if likeness < MEANT_NEAR or not is_asked:
        in_chinese = language is Language.CHINESE
        asked = next(ask for ask in meant.asks if has_chinese(ask) == in_chinese)
        answer = say("like-question", language, asked=asked, answer=answer)
    return _sourced(answer, meant, language)


def meant_question(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer | None:
    """The answer to the question of the table that a text means, if it surely means one."""
    meant, likeness = _meant(text, conversation, knowledge)
    return of_table(meant, conversation.language) if likeness >= MEANT_SURE else None


def _meant(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> tuple[KnownQuestion | None, float]:
    """The row that the text means, or one of its questions, or all of the message that it is of."""
    message = conversation.message_with(text)
    whole = [message] if message is not None else []
    asked = filter(is_question, sentences_of(text))
    return question_meant([*asked, *whole], subject_of(conversation), knowledge)


def subject_of(conversation: Conversation) -> str:
    """What the case is about: what leads, what the log says, and what the user told."""
    told = [turn.text for turn in conversation.turns if turn.speaker is Speaker.USER]
    cases = [conversation, *([conversation.before] if conversation.before else [])]
    lines = [line.text for case in cases for line in case.diagnosis.evidence.lines]
    titles = [match.incident.title for match in conversation.matches[:1]]
    return "\n".join((*titles, *lines, *told))


def of_table(question: KnownQuestion | None, language: Language) -> Answer | None:
    """What the table of questions answers, with the page that says so."""
    if question is None:
        return None
    return _sourced(answer_in(question, language), question, language)


def _sourced(answer: str, question: KnownQuestion, language: Language) -> Answer:
    return Answer(paragraphs([answer, say("term-source", language, source=question.source)]))


def _is_titled(text: str, incident: Incident, knowledge: KnowledgeBase) -> bool:
    """Whether the title of a record has rare words of a text."""
    shared = set(tokenize(translate(text))) & set(tokenize(incident.title))
    return sum(knowledge.rarities(shared).values()) >= ENOUGH


def nothing_to_do(conversation: Conversation) -> str:
    """What to say where no step and no check is left."""
    if not conversation.diagnosis.evidence.total_lines:
        return say("no-candidate", conversation.language)
    return say("nothing-to-do", conversation.language)


def not_understood(key: str, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """One line, with what is still to do; nothing is where the case is solved."""
    language = conversation.language
    if conversation.solved:
        return Answer(say(key, language), act=ReplyAct.DECLINE)
    task = task_of(conversation, knowledge)
    still = say("still-next", language, what=in_short(task, language)) if task else ""
    ahead = steps_ahead(task, conversation) if task and key != "other" else ""
    leads = what_leads(conversation, knowledge)
    act = ReplyAct.UPDATE if key.startswith("noted") else ReplyAct.DECLINE
    return Answer(sentences([say(key, language), leads, still, ahead]), act=act)


def where_we_are(conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What leads, and what is still to do."""
    language = conversation.language
    task = task_of(conversation, knowledge)
    still = say("still-next", language, what=in_short(task, language)) if task else ""
    return Answer(sentences([what_leads(conversation, knowledge), still]))


def in_short(task: Task, language: Language) -> str:
    """A check or a step in a line, without its command."""
    if isinstance(task, NextCheck):
        return cite_check(task.check, language)
    text = in_language(task.step.text, language).replace("\n", " ")
    return f"{task.number}. {text} [{task.incident.id}]"


def cite_check(check: Check, language: Language) -> str:
    """A check by its title and id."""
    return f"{in_language(check.title, language)} [{check.id}]"


def what_leads(conversation: Conversation, knowledge: KnowledgeBase) -> str:
    """The cause that was shown, the symptom or the record that leads, in words; empty without."""
    language = conversation.language
    shown = cause_shown(conversation, knowledge)
    symptom = symptom_of(conversation, knowledge)
    if symptom and shown:
        cause = prose(shown[1].cause, language).rstrip(".。")
        title = in_language(shown[0].title, language)
        return say("leads-cause", language, cause=cause, title=title)
    if symptom:
        share, playbook = percent(symptom.share), symptom.playbook
        title = in_language(playbook.title, language)
        return say("symptom", language, share=share, title=title, id=playbook.id)
    for match in conversation.matches[:1]:
        return say_first(match, "still-first", language)
    return ""


def steps_ahead(task: Task, conversation: Conversation) -> str:
    """The open steps behind one, in short; empty for a check and for the last."""
    if isinstance(task, NextCheck):
        return ""
    steps = open_steps(task.incident, conversation)
    ahead = ((one.number, one.step) for one in steps if one.number > task.number)
    return say_ahead(ahead, conversation.language)
