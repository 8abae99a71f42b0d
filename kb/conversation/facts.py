"""Rules that extract facts from a clause: nodes, hardware, versions, systems, absent symptoms.

Each rule is a row: how the clause looks, and what it says about the candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from index.tokens import tokenize
from kb.conversation.language import Language, say
from kb.conversation.scope import Scope, scope_of
from kb.conversation.state import Statement, statement_from_option
from kb.evidence.accelerators import FAMILIES, names_family
from kb.evidence.glossary import translate
from kb.evidence.systems import alternatives, full_names, system_patterns, systems_in
from kb.incident import Incident, Topology
from kb.questions import KnownEnvironment
from kb.questions.environment import (
    OLDER_IF_FIXED,
    RUNS_IF_NEEDED,
    RUNS_IF_NOT,
    hardware,
    nodes,
    systems_of,
)
from kb.questions.versions import fits

ABSENT_IF_NEEDED = 0.12
"""Likelihood, estimated, that a user calls absent what the right record needs; above 0, because
people err."""
ELSEWHERE_IF_NEEDED = 0.2
"""Likelihood, estimated, that a user sees the failure of the right record also without the system
that it is about, or with another one; above 0, because several failures look alike."""

_ONE = frozenset("1 one a single 一 单".split())
"""Numbers of nodes that are one; all others are several."""
_NODES = re.compile(
    r"\b(\d+|one|a|single|two|three|four|several|multiple|many|both)[- ]?(?:single )?"
    r"(?:nodes?|hosts?|machines?|servers?|box(?:es)?)\b"
    r"|((?<!\d)\d+|单|一|两|双|二|三|四|多|几)\s{0,2}(?:个|台)?\s{0,2}(?:节点|机器|机|主机|服务器)",
    re.IGNORECASE,
)
_VERSION = re.compile(r"\b([A-Za-z][A-Za-z_-]{1,40})[ =:]*(?:version )?v?(\d+\.\d+(?:\.\d+)*)")
_ALSO = re.compile(
    # The first "also" and the last preposition, each looked for once.
    r"(?>.*?\b(?:also|same|still)\b).*\b(?:with|on|under|using|in|without)\b(?P<what>.+)"
    r"|(?P<zh>.+?)(?:上|下|里)?(?:也|同样)(?:会|是|有|一样|卡|挂|报|出现)",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(?:there (?:is|are|was|were) |it is |it's |(?:i|we) (?:do|am|are|have|see) )?"
    r"(?:not?|n't|never|without|isn't|aren't|don't|doesn't)\b(?P<what>.+)"
    r"|(?:我们|这边|这里|也|并|都|还){0,3}(?:没有用|没有|没用|没看到|没|不在|不是|不用|无)(?P<zh>.+)",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"(?:\b(?:no|not|never|none|without|dont|doesnt|isnt|arent|wasnt|havent)\b|n['’]t\b"
    r"|没有?看?到?|不[是在用会]|从不|并不|并非|未)(?:\s*(?:use|using|run|running|have|see|any|a|an|in)\b)*\s*",
    re.IGNORECASE,
)
"""Where in a clause that denies something the denial ends."""
_NEXT_CLAUSE = re.compile(r"\s(?:and|but|so|then|because)\s.*", re.IGNORECASE)
"""What stands behind that which is denied."""
_FLAG_OR_YET = re.compile(
    r"(?<![\w-])--?[a-z][\w-]*(?:=\S+)?|\bno (?:[\w-]+ ){1,3}yet\b", re.IGNORECASE
)
"""A name with a `no` in it, and what is only not there so far."""
_STATE = re.compile(
    r"(?:currently |yet |even )?(?:active|enabled|set|present|loaded|installed|mounted|there|used"
    r"|on|up|full|involved)[.!]*",
    re.IGNORECASE,
)
"""Behind a denial, what is denied of that which stands before it: "the slowdown is not active"."""
_TROUBLE = re.compile(
    r"\b(?:xid|ecc|oom|out of memory|nan|segfault|core dumps?|firewall|containers?|docker|vpn|mig"
    r"|exceptions?|packet loss)\b|容器|防火墙|丢包|异常",
    re.IGNORECASE,
)
"""Symptoms that people report as absent; such a clause is never searched as if present."""
_WELL = re.compile(
    r"\b(?:not|n't|never|works?|fine|okay|ok|no problem|succeeds)\b|n't\b|不|没|正常", re.IGNORECASE
)
_STATES = re.compile(
    r"\b(?:run|runs|running|use|uses|using|with|on|under|launch|launched|inside)\b|用|跑|在",
    re.IGNORECASE,
)
_ORDINARY = frozenset(
    "progress output response error log message trace traceback warning line any single see print"
    " happen work hang start run time out gpu rank process job node training train use using"
    " nothing anything one at all 输出 报错 错误 日志 反应 进展".split()
)
"""Symptom words: their absence is a symptom itself and does not rule a record out."""
_FILLER = frozenset("run use using version only happen have under inside launch job node".split())
"""Words around a fact that say nothing more."""
_MAX_UNEXPLAINED_WORDS = 2
"""A clause with more words that no rule reads is also searched; one or two are filler."""
_MAX_RECORDS_NAMED = 2
"""Records named in one sentence; the others are counted, because a longer list is not read."""
_MAX_CANDIDATE_SHARE = 0.6
"""Maximum share of the candidates that an absence may speak against, from 0 to 1; what most
candidates need or print does not tell them apart."""
_LAUNCHERS = frozenset({"kubernetes", "slurm", "pbs", "lsf", "flux", "ray", "mpi"})
"""Systems that start jobs, one of several that a record may be about."""


class ClauseFacts(msgspec.Struct, frozen=True):
    """What rules understood of a clause."""

    parts: tuple[Statement, ...]
    left: bool
    """Something of it is still to be searched."""


def extract_facts(
    clause: str,
    candidates: Sequence[Incident],
    known: KnownEnvironment,
    language: Language = Language.ENGLISH,
) -> ClauseFacts:
    """Apply the rules to one clause."""
    for exclusive in (_also, _absent):
        part = exclusive(clause, candidates, language)
        if part:
            return ClauseFacts((part,), left=False)
    rules = (_nodes, _versions, _hardware, _systems)
    parts = tuple(part for rule in rules if (part := rule(clause, candidates, known, language)))
    return ClauseFacts(parts, left=not parts or len(_unexplained(clause)) > _MAX_UNEXPLAINED_WORDS)


def _unexplained(clause: str) -> set[str]:
    """The words that no rule reads."""
    rest = clause
    for pattern in (_NODES, _VERSION, *system_patterns().values()):
        rest = pattern.sub(" ", rest)
    for family in FAMILIES:
        rest = re.sub(family.pattern, " ", rest, flags=re.IGNORECASE)
    return set(tokenize(rest)) - _FILLER


def _also(clause: str, candidates: Sequence[Incident], language: Language) -> Statement | None:
    """It also happens with something else: then what a record is about is not needed for it."""
    match = _ALSO.match(clause)
    if not match:
        return None
    what = match["what"] or match["zh"]
    named = frozenset(systems_in(what))
    if not named:
        return _also_nodes(what, candidates, language)
    if "without" in clause.lower():
        ids = [i.id for i in candidates if systems_of(i) & named]
        reason = say("also-without", language, names=_listed(named))
        return _against(ids, ELSEWHERE_IF_NEEDED, reason, language)
    groups = [group for group in alternatives() if group & named]
    others = frozenset().union(*groups) - named
    ids = [i.id for i in candidates if i.header.systems[0] in others]
    reason = say("also-with", language, names=_listed(named))
    return _against(ids, ELSEWHERE_IF_NEEDED, reason, language)


def _also_nodes(what: str, candidates: Sequence[Incident], language: Language) -> Statement | None:
    several = _several(what)
    if several is None:
        return None
    kind = Topology.SINGLE_NODE if several else Topology.MULTI_NODE
    ids = [i.id for i in candidates if i.header.environment.topology is kind]
    reason = say("also-several-nodes" if several else "also-one-node", language)
    return _against(ids, ELSEWHERE_IF_NEEDED, reason, language)


def _absent(clause: str, candidates: Sequence[Incident], language: Language) -> Statement | None:
    """What a record needs, or prints, is not there. None where nothing is denied, or where the
    absence is a symptom itself."""
    what = _denied(clause)
    if not what:
        return None
    named = frozenset(systems_in(what))
    first = next(tokenize(what), "")
    if first in _ORDINARY and not named and not _TROUBLE.search(what):
        return None
    words = {word for word in tokenize(translate(what)) if not word.isdigit()} - _ORDINARY
    needing = [i.id for i in candidates if _needs(i, named)]
    ids = needing or [i.id for i in candidates if words & _printed(i)]
    few = len(ids) <= max(1, _MAX_CANDIDATE_SHARE * len(candidates))
    telling = bool(needing) or (bool(ids) and few)  # what runs nowhere is behind none of them
    if not telling and not named and not _TROUBLE.search(what):
        return None
    reason = say("absent", language, what=what)
    against = _against(ids if telling else (), ABSENT_IF_NEEDED, reason, language)
    # It is not asked for again.
    return msgspec.structs.replace(against, environment=KnownEnvironment(systems=named))


def _denied(clause: str) -> str:
    """What is said to be absent; empty where nothing is."""
    clause = _FLAG_OR_YET.sub(" ", clause).strip()
    match = _NEGATED.match(clause)
    if match:
        return _NEXT_CLAUSE.sub("", match["what"] or match["zh"]).strip()
    if scope_of(clause) is not Scope.NEGATED or _NODES.search(clause):
        return ""
    denial = _DENIAL.search(clause)
    if denial is None:
        return ""
    behind = _NEXT_CLAUSE.sub("", clause[denial.end() :]).strip()
    return clause[: denial.start()].strip() if _STATE.fullmatch(behind) else behind


def _needs(incident: Incident, absent: frozenset[str]) -> bool:
    """Whether an incident is about a system that is absent. One that is about several launchers,
    or about containers too, does not need each of them."""
    about = systems_of(incident)
    others = about & (_LAUNCHERS | {"docker"}) - absent
    return bool(about & absent - (_LAUNCHERS if others else frozenset()))


def _printed(incident: Incident) -> set[str]:
    """The words of its signatures."""
    return {word for sign in incident.header.signatures for word in tokenize(sign.pattern)}


def _against(ids: Sequence[str], factor: float, reason: str, language: Language) -> Statement:
    effect = _lowered(ids, language)
    return Statement(
        "",
        says=(say("fact", language, what=reason, effect=effect),),
        factors=dict.fromkeys(ids, factor),
    )


def _lowered(ids: Sequence[str], language: Language) -> str:
    return say("less-likely", language, ids=_ids(ids)) if ids else say("rules-out-none", language)


def _ids(identifiers: Sequence[str]) -> str:
    """The first of them as citations."""
    shown = ", ".join(f"[{identifier}]" for identifier in identifiers[:_MAX_RECORDS_NAMED])
    more = len(identifiers) - _MAX_RECORDS_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _nodes(
    clause: str, candidates: Sequence[Incident], _known: KnownEnvironment, language: Language
) -> Statement | None:
    several = _several(clause)
    if several is None:
        return None
    if _WELL.search(clause):  # where it does not happen, the other number of nodes is meant
        several = not several
    option = nodes(candidates).options[several]
    known = KnownEnvironment(several_nodes=several)
    says = say("on-several-nodes" if several else "on-one-node", language)
    return statement_from_option(option, says, settled_questions=("nodes",), environment=known)


def _several(text: str) -> bool | None:
    match = _NODES.search(text)
    if not match:
        return None
    return (match[1] or match[2]).lower() not in _ONE


def _versions(
    clause: str, candidates: Sequence[Incident], _known: KnownEnvironment, language: Language
) -> Statement | None:
    """A version outside of those that a record happens in, or with its fix, speaks against it."""
    versions = {
        system: version
        for name, version in _VERSION.findall(clause)
        for system in systems_in(full_names().get(name.lower(), name))
    }
    if not versions:
        return None
    fitting = {i.id: fit for i in candidates if (fit := fits(i, versions)) is not None}
    names = ", ".join(f"{system} {version}" for system, version in versions.items())
    effect = _lowered([name for name, fit in fitting.items() if not fit], language)
    return Statement(
        "",
        says=(say("fact-version", language, names=names, effect=effect),),
        factors={i: OLDER_IF_FIXED if fit else 1 - OLDER_IF_FIXED for i, fit in fitting.items()},
        otherwise=0.5,
        environment=KnownEnvironment(versions=versions),
    )


def _hardware(
    clause: str, candidates: Sequence[Incident], _known: KnownEnvironment, language: Language
) -> Statement | None:
    found = [index for index, family in enumerate(FAMILIES) if names_family(family, clause)]
    if len(found) != 1:
        return None
    option = hardware(candidates).options[found[0]]
    return statement_from_option(
        option,
        say("fact-hardware", language, names=option.text),
        settled_questions=("hardware",),
    )


def _systems(
    clause: str, candidates: Sequence[Incident], known: KnownEnvironment, language: Language
) -> Statement | None:
    """It runs with these systems: speaks for the records that are about them."""
    needed = {incident.id: systems_of(incident) for incident in candidates}
    running = frozenset(systems_in(clause)) - known.systems
    named = running & frozenset().union(*needed.values())
    if not named or not _STATES.search(clause):
        return None
    return Statement(
        "",
        says=(say("fact-systems", language, names=_listed(named)),),
        factors={i: RUNS_IF_NEEDED for i, needs in needed.items() if needs & named},
        otherwise=RUNS_IF_NOT,
        environment=KnownEnvironment(systems=named),
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
