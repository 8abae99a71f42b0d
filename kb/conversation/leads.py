"""What the conversation says of leads: quoted, marked as not reviewed, and without what a view
would take for a command or a record of its own."""

from __future__ import annotations

from collections.abc import Sequence

from kb.conversation.language import Language, say
from kb.diagnosis import Diagnosis
from kb.evidence.systems import versions_in
from kb.lead import Lead

_HARMLESS = str.maketrans({"`": "'", "[": "(", "]": ")"})
"""Signs that make a command or the id of a record of what stands between them."""


def say_leads(leads: Sequence[Lead], language: Language) -> str:
    """That there are leads, and how to open one."""
    return say("leads", language, number=len(leads), title=quoted(leads[0].title))


def describe_lead(lead: Lead, diagnosis: Diagnosis, language: Language) -> str:
    """What it says, how it ended, and what speaks against it here."""
    fix = quoted(lead.fix) if lead.fix else say("lead-no-fix", language)
    told = say(
        "lead",
        language,
        title=quoted(lead.title),
        standing=lead.standing,
        quote=quoted(lead.quote),
        fix=fix,
        where=quoted(lead.where),
    )
    return "\n".join([told, *_differences(lead, diagnosis, language)])


def _differences(lead: Lead, diagnosis: Diagnosis, language: Language) -> list[str]:
    """The versions of it that are others here: then it may be another case."""
    here, there = diagnosis.evidence.facts.versions, versions_in("\n".join(lead.environment))
    return [
        say("lead-version", language, system=system, here=here[system], there=version)
        for system, version in there.items()
        if here.get(system, version) != version
    ]


def quoted(text: str) -> str:
    """Words of a lead, on one line."""
    return " ".join(text.translate(_HARMLESS).split())
