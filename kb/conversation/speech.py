"""How the tool puts things: what is cited can be found again in a record or in the log."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from kb.check import CheckHeader, Command
from kb.checks import Observation
from kb.conversation.language import Language, in_language, say, translation
from kb.conversation.state import ReplyAct, Speaker, Turn
from kb.diagnosis import Match, NextCheck
from kb.evidence import EvidenceLine
from kb.incident import Incident, Step
from kb.log.clean import strip_controls
from kb.playbook import Cause, Playbook, Share
from kb.soft_breaks import join_soft_breaks
from kb.verdict import FITS_AT, percent

_MAX_STEPS_AHEAD = 4
"""Of a fix, that are named at once."""
_MAX_CAUSES_NAMED = 3
"""Causes of a symptom that are named at once."""
_MAX_QUOTE_CHARACTERS = 160
"""Of a quoted line, two rows of a terminal; the rest is cut."""
_MIN_CHANGE = 0.01
"""Minimum change of a confidence that is stated; smaller ones vanish when rounded to percent."""
_SENTENCE_END = re.compile(r"(?<=[a-z0-9`)][.!?])\s+(?=[A-Z`])|(?<=[。！？])(?![”’」』）])")
_CITED = re.compile(r"\[([A-Za-z0-9][A-Za-z0-9.-]*)\]")


def tool_turn(
    text: str,
    known: Collection[str],
    lines: Iterable[EvidenceLine] = (),
    shows: tuple[str, ...] = (),
    act: ReplyAct = ReplyAct.ANSWER,
) -> Turn:
    """What the tool says; `known` are the ids that it may cite."""
    records = tuple(dict.fromkeys(name for name in _CITED.findall(text) if name in known))
    cited = tuple(dict.fromkeys((line.file, line.number) for line in lines))
    return Turn(Speaker.TOOL, strip_controls(text), records, cited, shows, act)


def quote(text: str) -> str:
    """A line of the log, as code."""
    whole = text.strip().replace("`", "'")
    shown = whole[:_MAX_QUOTE_CHARACTERS]
    return f"`{shown}`" if shown == whole else f"`{shown} ...`"


def beginning(text: str) -> str:
    """What somebody said, on one line; of a paste its beginning."""
    whole = " ".join(text.split())
    shown = whole[:_MAX_QUOTE_CHARACTERS]
    return shown if shown == whole else f"{shown} ..."


def location(line: EvidenceLine) -> str:
    """The file and number of a line."""
    return f"{line.file} line {line.number}" if line.file else f"line {line.number}"


def quote_with_location(line: EvidenceLine) -> str:
    """A line with its location."""
    return f"{quote(line.text)} ({location(line)})"


def cite(incident: Incident, language: Language) -> str:
    """A record by its title and id."""
    return f"{in_language(incident.title, language)} [{incident.id}]"


def prose(text: str, language: Language) -> str:
    """A text of a record, each paragraph on one line."""
    return in_language(join_soft_breaks(text), language)


def numbered_step(number: int, step: Step, language: Language) -> str:
    """A step of a fix, its command ready to copy."""
    command = f"\n```{step.language}\n{step.command}\n```" if step.command else ""
    why = f"\n{prose(step.why, language)}" if step.why else ""
    return f"{number}. {prose(step.text, language)}{command}{why}"


def describe_step(identifier: str, number: int, step: Step, language: Language) -> str:
    """A step of the fix of a record, with the record that it is of."""
    heading = say("step-of", language, number=number, id=identifier)
    return f"{heading}\n{numbered_step(number, step, language)}"


def first_sentence(text: str, language: Language) -> str:
    """What a section says first, on one line."""
    whole = join_soft_breaks(text).replace("\n", " ")
    known = translation(_first_of(whole), language)
    return known or _first_of(in_language(whole, language))


def _first_of(text: str) -> str:
    return _SENTENCE_END.split(text, maxsplit=1)[0]


def say_ahead(steps: Iterable[tuple[int, Step]], language: Language) -> str:
    """Steps that follow, by number, in short; empty without any."""
    said = " ".join(
        f"{number}. {first_sentence(step.text, language)}"
        for number, step in islice(steps, _MAX_STEPS_AHEAD)
    )
    return say("steps-ahead", language, steps=said) if said else ""


def described_check(step: NextCheck, language: Language) -> str:
    """The check to run next, its command ready to copy."""
    header = step.check.header
    title, where = in_language(step.check.title, language), in_language(header.where, language)
    return "\n".join(
        [
            say("check-next", language, title=title, id=step.check.id),
            fenced_command(step.command),
            say("where", language, where=where, risk=risk_in_words(header, language)),
            say("why-check", language, why=prose(step.why, language)),
        ]
    )


def observed(one: Observation, language: Language) -> Iterator[str]:
    """What the output of a check shows, and what that points to where it is abnormal."""
    yield f"{quote(one.check)}: {_in_words(one.text, language)}"
    if one.suggests and one.abnormal:
        what = in_language(one.suggests, language).rstrip(".。")
        yield say("points-to", language, what=what)


def _in_words(text: str, language: Language) -> str:
    """An observation in the language. The values that were read follow on its meaning."""
    whole = text.removesuffix(".")
    ends = [match.start() for match in re.finditer(": ", whole)]
    for end in (*ends, len(whole)):
        means = whole[:end]
        known = translation(f"{means}.", language) or translation(means, language)
        if known:
            values = whole[end:].removeprefix(": ")
            return f"{known.removesuffix('。')}（{values}）。" if values else known
    return f"{whole}."


def often_behind(playbook: Playbook, language: Language) -> Iterator[str]:
    """The sentence about what a symptom most often comes from; none where nothing is frequent."""
    causes = [cause.cause for cause in playbook.body.causes if cause.share is Share.OFTEN]
    if causes:
        told = " ".join(prose(cause, language) for cause in causes[:_MAX_CAUSES_NAMED])
        yield say("often-behind", language, causes=told.rstrip(".。"))


def named_cause(playbook: Playbook, cause: Cause, key: str, language: Language) -> str:
    """A cause of a symptom, and its remedy, in the sentence of this key."""
    return say(
        key,
        language,
        title=in_language(playbook.title, language),
        id=playbook.id,
        cause=prose(cause.cause, language),
        remedy=in_language(cause.remedy, language).rstrip(".。"),
    )


def cause_and_sign(cause: Cause, language: Language) -> str:
    """A cause of a symptom, and what tells it."""
    return say(
        "cause-and-sign",
        language,
        cause=prose(cause.cause, language).rstrip(".。"),
        tell=in_language(cause.tell, language),
    )


def cause_with_remedy(cause: Cause, language: Language) -> str:
    """What to do about a cause of a symptom, and what tells it."""
    remedy = in_language(cause.remedy, language).rstrip(".。")
    return say("remedy-of", language, cause=cause_and_sign(cause, language), remedy=remedy)


def in_a_row(texts: Iterable[str], language: Language) -> str:
    """Texts of a record, one after the other. In the Chinese ones a comma joins words."""
    between = "；" if language is Language.CHINESE else ", "
    return between.join(in_language(text, language) for text in texts)


def fenced_command(command: Command) -> str:
    """A command, ready to copy."""
    return f"```{command.language}\n{command.run}\n```"


def risk_in_words(header: CheckHeader, language: Language) -> str:
    """The worst that a check does."""
    return say(f"risk-{header.cost.risk}", language)


def describe_change(before: Sequence[Match], after: Sequence[Match], language: Language) -> str:
    """What went up or down, and what is first now."""
    if not after:
        return say("no-incident-shown", language)
    sentences = [*_moves(before, after, language), _first(before, after, language)]
    return " ".join(sentences)


def _moves(before: Sequence[Match], after: Sequence[Match], language: Language) -> list[str]:
    """What was first and what is first now; how the others changed helps nobody."""
    was = {match.incident.id: match.confidence for match in before}
    now = {match.incident.id: match.confidence for match in after}
    firsts = dict.fromkeys(matches[0].incident.id for matches in (before, after) if matches)
    return [
        _move(identifier, was.get(identifier), now.get(identifier), language)
        for identifier in firsts
        if _change(identifier, was, now) >= _MIN_CHANGE
    ]


def _change(identifier: str, was: dict[str, float], now: dict[str, float]) -> float:
    return abs(now.get(identifier, 0.0) - was.get(identifier, 0.0))


def _move(identifier: str, was: float | None, now: float | None, language: Language) -> str:
    if was is None:
        return say("is-new", language, id=identifier, share=percent(now or 0.0))
    if now is None:
        return say("drops-off", language, id=identifier, share=percent(was))
    way = "rises" if now > was else "falls"
    return say(way, language, id=identifier, was=percent(was), share=percent(now))


def _first(before: Sequence[Match], after: Sequence[Match], language: Language) -> str:
    first = after[0]
    same = before and before[0].incident.id == first.incident.id
    return say_first(first, "still-first" if same else "now-first", language)


def say_first(first: Match, key: str, language: Language) -> str:
    """The record that is first, in the sentence of this key, unless it is only the nearest."""
    fits = first.confidence >= FITS_AT
    record, share = cite(first.incident, language), percent(first.confidence)
    return say(key if fits else "nearest", language, record=record, share=share)
