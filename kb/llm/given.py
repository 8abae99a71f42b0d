"""What the model is given of one turn: passages, and slots for what it must not type.

Numbers, versions, ids, flags, paths, code and quotes in a passage are replaced by slots before
anything is sent, so a model that copies a passage copies slots, and never learns a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from kb.conversation import Conversation, ReplyAct, Speaker, Turn
from kb.conversation.language import Language
from kb.conversation.leads import quoted
from kb.conversation.speech import prose, quote, quote_with_location
from kb.conversation.state import said_since, seen_since
from kb.diagnosis import Diagnosis
from kb.evidence import EvidenceLine
from kb.evidence.secrets import mask_lines, mask_secrets
from kb.incident import Incident
from kb.llm.foreign import Foreign, merged
from kb.llm.phrase import on_one_line
from kb.verdict import Verdict

_MAX_PASSAGE_CHARACTERS = 1_200
"""Of a section of a record; longer ones repeat themselves."""
_MAX_LINE_CHARACTERS = 300
"""Of a line of the log: four rows of a terminal."""
_MAX_MESSAGE_CHARACTERS = 1_000
"""Of what the user said; more is a paste, which the engine has read."""
_MAX_RECORDS = 2
_MAX_LINES = 6
_MAX_REPLIES = 12
"""Records, lines of the log and paragraphs of the reply: some 2,000 tokens together."""

_VALUE = re.compile(
    r"`[^`\n]*`|“[^”\n]*”|\"[^\"\n]*\"|\[[A-Za-z0-9][A-Za-z0-9.-]*\]|https?://\S+"
    r"|(?<![\w-])--?[A-Za-z][A-Za-z0-9_-]*(?:=\S+)?|[A-Za-z_]+=[^\s,;]+"
    r"|(?<![A-Za-z0-9_])[/~][A-Za-z0-9_./~-]+"
    r"|[A-Za-z0-9_./:%+~-]*[0-9](?:[A-Za-z0-9_./:%+~-]*[A-Za-z0-9_%+~-])?"
)
"""Code, quotes, ids of records, links, flags, settings, paths, and what has a digit."""
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BRACES = str.maketrans("{}", "()")


class Kind(StrEnum):
    """What a passage may be used for."""

    REPLY = "reply"
    """What the engine says in this turn."""
    OBSERVATION = "observation"
    """What the output of a check shows."""
    RECORD = "record"
    """Prose of a record that the reply cites."""
    QUOTE = "quote"
    """A line of a log, or a step: it carries no words, and is only put in by its slot."""


class Passage(msgspec.Struct, frozen=True):
    """Something that a sentence may rest on."""

    key: str
    text: str
    """As it is sent: with slots, secrets masked."""
    kind: Kind
    record: str | None = None
    """The id of the record that it is of."""


class Standing(msgspec.Struct, frozen=True):
    """How sure a record is, by the engine."""

    share: float | None
    is_match: bool


class Given(msgspec.Struct, frozen=True):
    """All that a sentence of this turn can rest on."""

    passages: tuple[Passage, ...]
    slots: dict[str, str]
    """What stands for each slot in the end, word for word."""
    standings: dict[str, Standing]
    """By the id of the record."""
    message: str
    """What the user said last; empty at the opening."""
    language: Language
    all_clear: bool
    """The engine itself says that all is well, or that the case is solved."""

    def passage(self, key: str) -> Passage | None:
        """The passage of this key."""
        return next((passage for passage in self.passages if passage.key == key), None)


def given_for(conversation: Conversation, before: Conversation | None) -> Given:
    """What may be said of the turns since `before`, None at the opening. Of a greeting, nothing."""
    turns = said_since(conversation, before)
    said = [turn for turn in turns if turn.speaker is Speaker.TOOL and turn.act != ReplyAct.GREET]
    records = list(dict.fromkeys(name for turn in said for name in turn.records))
    known = [conversation.incidents[name] for name in records if name in conversation.incidents]
    titles = [incident.title for incident in known]
    maker = _Maker(conversation.language, Foreign(_quoted_in(conversation), titles))
    for turn in said:
        maker.add_reply(turn, conversation.diagnosis)
    for number, seen in enumerate(seen_since(conversation, before), 1):
        maker.add_prose(f"observation {number}", seen.text, Kind.OBSERVATION)
    for incident in known[:_MAX_RECORDS]:
        maker.add_record(incident)
    for turn in said:
        maker.add_steps(turn.shows, conversation.incidents)
    for line in _cited(said, conversation.diagnosis):
        maker.add_line(line)
    message = next((turn.text for turn in turns if turn.speaker is Speaker.USER), "")
    return Given(
        tuple(maker.passages),
        maker.slots,
        {incident.id: _standing(incident.id, conversation) for incident in known},
        mask_secrets(message)[:_MAX_MESSAGE_CHARACTERS],
        conversation.language,
        conversation.verdict is Verdict.HEALTHY or conversation.solved is not None,
    )


def _quoted_in(conversation: Conversation) -> Iterator[str]:
    """What logs, outputs and the user say, all of which the engine may repeat."""
    yield from (turn.text for turn in conversation.turns if turn.speaker is Speaker.USER)
    yield from (line.text for line in conversation.diagnosis.evidence.lines)
    seen = (one for statement in conversation.statements for one in statement.observations)
    for observation in (*conversation.diagnosis.observations, *seen):
        yield observation.text.partition(": ")[2]  # the line that shows it


def _standing(identifier: str, conversation: Conversation) -> Standing:
    for place, match in enumerate(conversation.matches):
        if match.incident.id == identifier:
            leads = place == 0 and conversation.verdict is Verdict.MATCH
            return Standing(match.confidence, leads)
    return Standing(None, False)


def _cited(turns: list[Turn], diagnosis: Diagnosis) -> Iterator[EvidenceLine]:
    """The lines that the turns cite, with private keys masked where their lines are together."""
    cited = [place for turn in turns for place in turn.lines]
    lines = {(line.file, line.number): line for line in mask_lines(diagnosis.evidence.lines)}
    yield from (lines[place] for place in dict.fromkeys(cited) if place in lines)


class _Maker:
    """Puts slots in the place of values while passages are added."""

    def __init__(self, language: Language, foreign: Foreign) -> None:
        self._language = language
        self._foreign = foreign
        self.passages: list[Passage] = []
        self.slots: dict[str, str] = {}

    def add_reply(self, turn: Turn, diagnosis: Diagnosis) -> None:
        """Each paragraph of a reply, without commands, and without what a report of the user's
        backlog says: nobody has reviewed it."""
        told = [
            quoted(text)
            for lead in diagnosis.leads
            for text in (lead.title, lead.quote, lead.fix or "", lead.where)
        ]
        for line in _FENCED.sub("", turn.text).splitlines():
            number = sum(passage.kind is Kind.REPLY for passage in self.passages) + 1
            if number <= _MAX_REPLIES and not any(text and text in line for text in told):
                self.add_prose(f"reply {number}", line, Kind.REPLY)

    def add_record(self, incident: Incident) -> None:
        """What a record says of itself, but for its steps."""
        body, number = incident.body, len({p.record for p in self.passages} - {None}) + 1
        sections = {"title": incident.title, "symptom": body.symptom, "cause": body.cause}
        for name, text in sections.items():
            told = prose(text, self._language)
            self.add_prose(f"record {number} {name}", told, Kind.RECORD, incident.id)

    def add_steps(self, shown: tuple[str, ...], incidents: dict[str, Incident]) -> None:
        """The steps that the reply tells to take."""
        for name in shown:
            identifier, _, number = name.partition("#")
            if number.isdecimal() and identifier in incidents:
                step = incidents[identifier].body.fix[int(number) - 1]
                run = (step.command or "").strip()
                code = f" (`{run}`)" if run and "\n" not in run and "`" not in run else ""
                filled = f"step {number} of [{identifier}]{code}"
                self._add_quote(f"step {number}", step.text, filled, identifier)

    def add_line(self, line: EvidenceLine) -> None:
        """A line of the log."""
        number = sum(passage.key.startswith("line ") for passage in self.passages)
        if number < _MAX_LINES:
            key = f"line {line.number}"
            self._add_quote(key, line.text[:_MAX_LINE_CHARACTERS], quote_with_location(line))

    def _add_quote(self, key: str, text: str, filled: str, record: str | None = None) -> None:
        if key not in self.slots:
            self.slots[key] = filled
            self.passages.append(Passage(key, mask_secrets(on_one_line(text)), Kind.QUOTE, record))

    def add_prose(self, key: str, text: str, kind: Kind, record: str | None = None) -> None:
        """A text whose words may be used."""
        whole = mask_secrets(on_one_line(text)).translate(_BRACES)[:_MAX_PASSAGE_CHARACTERS]
        foreign = [] if kind is Kind.RECORD else list(self._foreign.spans(whole))
        values = [match.span() for match in _VALUE.finditer(whole)]
        pieces, done = [], 0
        for start, end in merged([*foreign, *values], whole):
            pieces += [whole[done:start], self._slot(whole[start:end])]
            done = end
        shown = "".join([*pieces, whole[done:]])
        if shown:
            self.passages.append(Passage(key, shown, kind, record))

    def _slot(self, value: str) -> str:
        """What stands for a value; whatever is longer than one is a quote."""
        name = f"value {sum(key.startswith('value ') for key in self.slots) + 1}"
        self.slots[name] = quote(value) if " " in value and value[0] != "`" else value
        return f"{{{name}}}"
