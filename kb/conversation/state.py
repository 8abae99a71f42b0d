"""A conversation as a value: what the log said, what the user said, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from kb.checks import Observation
from kb.conversation.language import Language, in_language
from kb.diagnosis import Diagnosis, Match, PlaybookMatch, Question, to_question
from kb.incident import Incident
from kb.outcome import Outcome
from kb.questions import Belief, KnownEnvironment, Option, QuestionPlan, Topic, seen_in
from kb.verdict import MAX_CONFIDENCE_AFTER_TALK, SHOW_ALSO_AT, SHOW_AT, Verdict

MAX_CONVERSATION_MATCHES = 20
"""Maximum number of ranked matches; more than that nobody compares in a conversation."""


class Speaker(StrEnum):
    """Who speaks."""

    TOOL = "tool"
    USER = "user"


class ReplyAct(StrEnum):
    """What the tool does by a turn."""

    GREET = "greet"
    """It says hello; where there is no case yet, it asks what is wrong."""
    DIAGNOSE = "diagnose"
    """It says what a new case is."""
    UPDATE = "update"
    """It took in what was told or pasted, or took it back: the order may have changed."""
    ANSWER = "answer"
    """It does or says what was asked for."""
    EXPLAIN = "explain"
    """It gives a reason, or says what a term means."""
    ASK = "ask"
    """It has to know something before it goes on."""
    CLOSE = "close"
    """The case is solved."""
    DECLINE = "decline"
    """It did not understand, or it is none of its business: nothing changes."""


class Turn(msgspec.Struct, frozen=True):
    """What was said: plain sentences, with `code`, "[id of a record]" and "line N" in them."""

    speaker: Speaker
    text: str
    records: tuple[str, ...] = ()
    """Ids that are cited."""
    lines: tuple[tuple[str | None, int], ...] = ()
    """File and number of the lines that are cited."""
    shows: tuple[str, ...] = ()
    """What it tells to do: ids of checks, and `id#number` for the steps of a fix."""
    act: ReplyAct = ReplyAct.ANSWER
    """Of the tool."""


_UNKNOWN = KnownEnvironment()


class Solved(msgspec.Struct, frozen=True):
    """What was wrong in the end, and what helped; empty where nobody knows."""

    record: str = ""
    """The id of the incident."""
    step: int = 0
    """The step of its fix, from 1."""


class Statement(msgspec.Struct, frozen=True):
    """One thing the user stated, and what it does to the belief."""

    text: str
    """In the user's words."""
    question: str | None = None
    """What it answers."""
    says: tuple[str, ...] = ()
    """How it was understood."""
    factors: dict[str, float] = {}
    """How well each record fits it, by id; 1 leaves things as they are."""
    otherwise: float = 1.0
    """The same for all other records, and for "nothing known"."""
    found: tuple[Match, ...] = ()
    """Records that only this brought up, with the confidence that the log alone gives them."""
    settled_questions: tuple[str, ...] = ()
    """Keys of the questions that are settled."""
    environment: KnownEnvironment = _UNKNOWN
    done: tuple[tuple[str, int], ...] = ()
    """Steps of fixes that were taken: id and number, from 1."""
    searched_text: str = ""
    """The part of it that was searched as further evidence."""
    asks: QuestionPlan | None = None
    """What it leaves open, to be asked before anything else."""
    checks: tuple[str, ...] = ()
    """Those whose output it holds."""
    observations: tuple[Observation, ...] = ()
    """What these outputs show."""
    readings: dict[str, float] = {}
    """Ratios of the likelihoods of what these show, for causes of playbooks too."""
    symptoms: tuple[PlaybookMatch, ...] = ()
    """What its words name by themselves, where that is clear."""
    set_aside: tuple[str, ...] = ()
    """Checks and steps that cannot be done, as in `Turn.shows`."""
    job_ended: bool = False
    """The job does not run any more."""
    solved: Solved | None = None
    relapsed: bool = False
    """What was solved is back."""

    @property
    def changes_nothing(self) -> bool:
        """Whether it was only heard."""
        bare = msgspec.structs.replace(self, text="", says=(), searched_text="")
        return bare == Statement("")


def statement_from_option(
    option: Option,
    says: str,
    settled_questions: tuple[str, ...] = (),
    environment: KnownEnvironment = _UNKNOWN,
) -> Statement:
    """The statement that picks this option, however it was worded."""
    return Statement(
        "",
        says=(says,),
        factors=option.likelihoods,
        otherwise=option.otherwise,
        settled_questions=settled_questions,
        environment=environment,
    )


def combine(text: str, parts: Sequence[Statement], question: str | None = None) -> Statement:
    """One statement of all that one text states, so that it is taken back at once."""
    environment = _UNKNOWN
    factors: dict[str, float] = {}
    otherwise = 1.0
    for part in parts:
        ids = factors.keys() | part.factors.keys()
        factors = {
            identifier: factors.get(identifier, otherwise)
            * part.factors.get(identifier, part.otherwise)
            for identifier in ids
        }
        otherwise *= part.otherwise
        environment = environment.updated_with(part.environment)
    return Statement(
        text,
        question,
        says=tuple(sentence for part in parts for sentence in part.says),
        factors=factors,
        otherwise=otherwise,
        found=tuple(match for part in parts for match in part.found),
        settled_questions=tuple(key for part in parts for key in part.settled_questions),
        environment=environment,
        done=tuple(step for part in parts for step in part.done),
        searched_text=" ".join(part.searched_text for part in parts if part.searched_text),
        asks=next((part.asks for part in parts if part.asks), None),
        checks=tuple(check for part in parts for check in part.checks),
        observations=tuple(seen for part in parts for seen in part.observations),
        readings={name: ratio for part in parts for name, ratio in part.readings.items()},
        symptoms=next((part.symptoms for part in parts if part.symptoms), ()),
        set_aside=tuple(name for part in parts for name in part.set_aside),
        job_ended=any(part.job_ended for part in parts),
        solved=next((part.solved for part in parts if part.solved), None),
        relapsed=any(part.relapsed for part in parts),
    )


class Conversation(msgspec.Struct, frozen=True):
    """All that was said. What is believed follows from `diagnosis` and `statements` alone."""

    diagnosis: Diagnosis
    """What the log said, unchanged."""
    matches: tuple[Match, ...]
    """The current order, best first, with the current confidence."""
    turns: tuple[Turn, ...]
    inquiry: QuestionPlan | None
    statements: tuple[Statement, ...] = ()
    language: Language = Language.ENGLISH
    """That of the user."""
    earlier: tuple[Outcome, ...] = ()
    """How other cases on this machine ended, newest first."""
    before: Conversation | None = None
    """The case that this one took the place of: all was diagnosed anew, or forgotten."""

    @property
    def question(self) -> Question | None:
        """What is asked now, with the answers to pick, in the language of the user."""
        if self.inquiry is None:
            return None
        question = to_question(self.inquiry)
        answers = tuple(in_language(answer, self.language) for answer in question.answers)
        return Question(in_language(question.text, self.language), answers)

    @property
    def question_in_words(self) -> str:
        """The question with its answers, where it is told in a sentence; empty where none is."""
        question = self.question
        if question is None:
            return ""
        of_choice = self.inquiry is not None and self.inquiry.topic is Topic.SYSTEMS
        return f"{question.text} {', '.join(question.answers)}" if of_choice else question.text

    @property
    def verdict(self) -> Verdict:
        """What it comes to with all that was stated."""
        return self.diagnosis.verdict_of(self.matches)

    @property
    def pool(self) -> dict[str, Match]:
        """All candidates by id, with what the log alone says for them."""
        found = [match for statement in self.statements for match in statement.found]
        return {match.incident.id: match for match in (*found, *self.diagnosis.candidates)}

    @property
    def incidents(self) -> dict[str, Incident]:
        """The records of the candidates."""
        return {identifier: match.incident for identifier, match in self.pool.items()}

    @property
    def belief(self) -> Belief:
        """The confidences of the log, weighed with all that was stated."""
        shares = {identifier: match.confidence for identifier, match in self.pool.items()}
        belief = Belief.of(shares)
        for statement in self.statements:
            belief = belief.weighed(statement.factors, statement.otherwise)
        return belief

    @property
    def checks(self) -> frozenset[str]:
        """Those whose output was in the log or pasted."""
        pasted = (check for statement in self.statements for check in statement.checks)
        return frozenset(pasted).union(seen.check for seen in self.diagnosis.observations)

    @property
    def readings(self) -> dict[str, float]:
        """Ratios of the likelihoods of all outputs that were pasted, and of the causes to which
        the log points."""
        ratios = dict(self.diagnosis.pointed)
        for statement in self.statements:
            for name, ratio in statement.readings.items():
                ratios[name] = ratios.get(name, 1.0) * ratio
        return ratios

    @property
    def known(self) -> KnownEnvironment:
        """What is known of the job, from its log and from the user."""
        known = seen_in(self.diagnosis.evidence)
        for statement in self.statements:
            known = known.updated_with(statement.environment)
        return known

    @property
    def settled_questions(self) -> frozenset[str]:
        """Keys of the questions that are settled."""
        return frozenset(
            key for statement in self.statements for key in statement.settled_questions
        )

    def with_statement(self, statement: Statement) -> Conversation:
        """The same with one more statement, ranked anew; the question stays."""
        after = msgspec.structs.replace(self, statements=(*self.statements, statement))
        return msgspec.structs.replace(after, matches=rank(after))

    def with_turns(self, *turns: Turn) -> Conversation:
        """The same after these were said."""
        return msgspec.structs.replace(self, turns=(*self.turns, *turns))

    def message_with(self, text: str) -> str | None:
        """The last message of the user, not answered yet, where a text is a part of it."""
        last = self.turns[-1]
        return last.text if last.speaker is Speaker.USER and text in last.text else None

    @property
    def set_aside(self) -> frozenset[str]:
        """Checks and steps that the user cannot do."""
        return frozenset(name for statement in self.statements for name in statement.set_aside)

    @property
    def job_ended(self) -> bool:
        """Whether the job does not run any more."""
        job = self.diagnosis.job
        return (job is not None and job.failed) or any(one.job_ended for one in self.statements)

    @property
    def solved(self) -> Solved | None:
        """How it ended, where the user said so, and did not say that it is back."""
        ends = (one for one in reversed(self.statements) if one.solved or one.relapsed)
        return next((one.solved for one in ends), None)

    @property
    def done(self) -> frozenset[tuple[str, int]]:
        """Steps of fixes that were taken: id and number, from 1."""
        return frozenset(step for statement in self.statements for step in statement.done)


def said_since(conversation: Conversation, before: Conversation | None) -> tuple[Turn, ...]:
    """The turns since `before`, None at the opening."""
    return conversation.turns[len(before.turns) if before else 0 :]


def seen_since(conversation: Conversation, before: Conversation | None) -> Iterator[Observation]:
    """What outputs show: those of a new case, and of the statements that are new."""
    if before is None or conversation.diagnosis is not before.diagnosis:
        yield from conversation.diagnosis.observations
    known = set(map(id, before.statements)) if before else set()
    for statement in conversation.statements:
        if id(statement) not in known:
            yield from statement.observations


def rank(conversation: Conversation) -> tuple[Match, ...]:
    """The order that follows from the belief, as far as it is worth showing."""
    pool, belief = conversation.pool, conversation.belief
    caps = {name: max(MAX_CONFIDENCE_AFTER_TALK, match.confidence) for name, match in pool.items()}
    shares = {name: min(belief.shares[name], caps[name]) for name in belief.order}
    if not shares or max(shares.values()) < SHOW_AT:
        return ()
    return tuple(
        msgspec.structs.replace(pool[identifier], confidence=round(share, 4))
        for identifier, share in shares.items()
        if share >= SHOW_ALSO_AT
    )[:MAX_CONVERSATION_MATCHES]
