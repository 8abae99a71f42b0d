"""The first turn: what is seen, what is most likely behind it, and what to do now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from kb.conversation.clues import clue_in
from kb.conversation.done_steps import only_looks
from kb.conversation.language import Language, in_language, joined, say
from kb.conversation.leads import say_leads
from kb.conversation.speech import (
    cite,
    describe_step,
    described_check,
    in_a_row,
    location,
    named_cause,
    observed,
    often_behind,
    quote,
    quote_with_location,
    say_ahead,
    say_first,
    tool_turn,
)
from kb.conversation.state import ReplyAct, Turn
from kb.diagnosis import (
    By,
    Diagnosis,
    Match,
    cause_pointed_to,
    collecting,
    ended_before,
    points_to_cause,
    without_incident,
)
from kb.evidence import Evidence, EvidenceLine
from kb.evidence.markers import Grade
from kb.incident import Kind
from kb.job import QuotedLine
from kb.outcome import Outcome
from kb.verdict import FITS_AT, Verdict, percent

_MAX_OBSERVATIONS = 2
"""Of the outputs in the input; the screen has all of them."""
_MAX_INCIDENTS_NAMED = 2
"""That a leading symptom may be: more is a list that nobody reads."""


def opening(diagnosis: Diagnosis, language: Language, earlier: Iterable[Outcome] = ()) -> Turn:
    """What is seen, with the lines, the most likely cause, in the words of its record, and what to
    do first. `earlier` is how other cases ended, newest first."""
    lines = list(_seen_lines(diagnosis))
    sentences = [_seen(diagnosis, lines, language), _likely(diagnosis, language)]
    before = ended_before(diagnosis, earlier)
    sentences.append(describe_outcome(before, language) if before else "")
    parts = [" ".join(filter(None, sentences)), *_shown(diagnosis, language)]
    text = "\n".join(filter(None, [*parts, _meant(diagnosis, language)]))
    ways = [*_way_forward(diagnosis, language)]
    shows = tuple(name for _said, name in ways if name)
    known = [match.incident.id for match in diagnosis.matches]
    known += [note.incident.id for note in diagnosis.notes]
    leads = [say_leads(diagnosis.leads, language)] if diagnosis.leads else []
    said = "\n".join([text, *(way for way, _name in ways), *leads])
    return tool_turn(said, known, lines, shows, ReplyAct.DIAGNOSE)


def _seen_lines(diagnosis: Diagnosis) -> Iterator[EvidenceLine]:
    """The lines that the first sentence speaks of, the one it quotes first."""
    if diagnosis.matches:
        why = diagnosis.matches[0].why
        yield from (item.line for item in sorted(why, key=lambda item: item.by is By.MEANING))
    elif diagnosis.notes:
        yield from (why.line for why in diagnosis.notes[0].why[:1])
    else:
        yield from (line for line in diagnosis.evidence.lines[:1] if line.grade >= Grade.HINT)


def _seen(diagnosis: Diagnosis, lines: Sequence[EvidenceLine], language: Language) -> str:
    culprits = diagnosis.job.culprits if diagnosis.job and diagnosis.job.failed else ()
    if culprits:
        return _first_failure(culprits[0], language)
    if diagnosis.verdict is Verdict.HEALTHY:
        return say("healthy", language, noise=_noise(diagnosis, lines, language))
    if not lines:
        return ""
    quoted = quote_with_location(lines[0])
    others = [location(line) for line in lines[1:]]
    if others:
        quoted = say("see-also", language, quoted=quoted, places=joined(others, language))
    return say(_speaker(diagnosis.evidence), language, quoted=quoted)


def _shown(diagnosis: Diagnosis, language: Language) -> Iterator[str]:
    """What the outputs of checks in the input show that is abnormal; nothing for a match, whose
    record speaks of it."""
    if diagnosis.verdict is not Verdict.MATCH:
        abnormal = (one for one in diagnosis.observations if one.abnormal)
        for one in islice(abnormal, _MAX_OBSERVATIONS):
            yield " ".join(observed(one, language))


def _meant(diagnosis: Diagnosis, language: Language) -> str:
    """What an observation in words means whatever the cause is; empty for a match."""
    if diagnosis.verdict is Verdict.MATCH or not diagnosis.evidence.human_written:
        return ""
    clue = clue_in("\n".join(line.text for line in diagnosis.evidence.lines))
    return clue.says(language) if clue else ""


def _noise(diagnosis: Diagnosis, lines: Sequence[EvidenceLine], language: Language) -> str:
    if not lines or not diagnosis.notes:
        return ""
    quoted = quote_with_location(lines[0])
    return say("healthy-noise", language, quoted=quoted, id=_note(diagnosis))


def _speaker(evidence: Evidence) -> str:
    if evidence.human_written:
        return "you-wrote"
    return "log-says" if evidence.is_log else "input-says"


def _first_failure(first: QuotedLine, language: Language) -> str:
    rank = say("unnamed-rank", language) if first.rank is None else f"Rank {first.rank}"
    host = say("on-host", language, host=first.host) if first.host else ""
    said = f": {quote(first.text)}" if first.text else ""
    where = "" if first.line is None else f" ({first.file or ''} line {first.line})"
    place = where.replace("( ", "(")
    return say("first-failure", language, who=f"{rank}{host}", said=said, where=place)


def _likely(diagnosis: Diagnosis, language: Language) -> str:
    if diagnosis.matches and not diagnosis.symptom_leads:
        first = diagnosis.matches[0]
        matched = diagnosis.verdict is Verdict.MATCH
        return say_first(first, "likely-match" if matched else "likely-possible", language)
    if diagnosis.verdict is Verdict.HEALTHY:
        return say("healthy-anyway", language)
    if any(note.incident.kind is Kind.CASCADE for note in diagnosis.notes):
        return say("follow-on", language, id=_note(diagnosis))
    if language is Language.ENGLISH:
        return without_incident(diagnosis)
    if points_to_cause(diagnosis):
        return say("symptom-pointed", language)
    return say("symptom-only" if diagnosis.playbooks else "nothing-known", language)


def describe_outcome(outcome: Outcome, language: Language) -> str:
    """When the same was solved here the last time, and what helped."""
    helped = (
        say("had-before-step", language, number=outcome.step)
        if outcome.step
        else say("had-before-solved", language)
    )
    day = outcome.time.astimezone().strftime("%Y-%m-%d")
    return say("had-before", language, day=day, helped=helped)


def _way_forward(diagnosis: Diagnosis, language: Language) -> Iterator[tuple[str, str]]:
    """What to do first, its command ready to copy, each with its name as in `Turn.shows`: a step of
    the fix, or the symptom, what to secure, and the check to run."""
    if diagnosis.verdict is Verdict.MATCH or not diagnosis.playbooks:
        yield from _first_step(diagnosis.matches[:1], language)
        return
    leading = diagnosis.playbooks[0]
    share, playbook = percent(leading.share), leading.playbook
    title = in_language(playbook.title, language)
    named = say("symptom", language, share=share, title=title, id=playbook.id)
    behind = _behind(diagnosis, language) if diagnosis.symptom_leads else ()
    yield " ".join([named, *behind]), ""
    what, command = in_a_row(playbook.body.secure, language), collecting(playbook)
    yield say("secure", language, what=what, command=command), ""
    if diagnosis.next:
        yield described_check(diagnosis.next, language), diagnosis.next.check.id


def _behind(diagnosis: Diagnosis, language: Language) -> Iterator[str]:
    """What a leading symptom most often comes from, and the incidents that it may be."""
    shown = cause_pointed_to(diagnosis.playbooks, diagnosis.matches, diagnosis.pointed)
    if shown:
        yield named_cause(*shown, "cause-shown", language)
    else:
        yield from often_behind(diagnosis.playbooks[0].playbook, language)
    likely = [match for match in diagnosis.matches if match.confidence >= FITS_AT]
    if likely:
        records = [
            f"{cite(match.incident, language)} ({percent(match.confidence)})"
            for match in likely[:_MAX_INCIDENTS_NAMED]
        ]
        yield say("may-be", language, records=joined(records, language))


def _first_step(matches: Iterable[Match], language: Language) -> Iterator[tuple[str, str]]:
    """The first step of the fix; where it only looks, also what may follow, in short."""
    for match in matches:
        incident = match.incident
        first, *others = incident.body.fix
        yield describe_step(incident.id, 1, first, language), f"{incident.id}#1"
        if others and only_looks(first):
            yield say_ahead(enumerate(others, 2), language), ""


def _note(diagnosis: Diagnosis) -> str:
    return diagnosis.notes[0].incident.id
