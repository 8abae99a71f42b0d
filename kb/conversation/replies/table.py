"""Which act is answered by what."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kb.conversation.acts import MAX_TALK_CHARACTERS, Act, Acted
from kb.conversation.asked import Asked, asked_in
from kb.conversation.known_questions import has_answer_of_its_own
from kb.conversation.passages import passage_about
from kb.conversation.replies.again import (
    all_wait,
    brief,
    drain,
    logs,
    normal,
    recurs,
    relapse,
    repeat,
    so_far,
)
from kb.conversation.replies.answer import Answer, meant_question
from kb.conversation.replies.bits import bits
from kb.conversation.replies.candidates import alternatives, most_likely, others
from kb.conversation.replies.courtesies import fixed, frustration, greeting, other, thanks
from kb.conversation.replies.everywhere import everywhere
from kb.conversation.replies.explain import explain_term, known_question, names_check_or_step
from kb.conversation.replies.guesses import guess, place, whom
from kb.conversation.replies.how import how
from kb.conversation.replies.known_commands import known_command
from kb.conversation.replies.known_options import known_option
from kb.conversation.replies.leads import lead
from kb.conversation.replies.matters import matters
from kb.conversation.replies.notes import hand_over, summarise, team
from kb.conversation.replies.reasons import prove, why, why_not
from kb.conversation.replies.remedies import prevent, show_fix, workaround
from kb.conversation.replies.results import failure, success
from kb.conversation.replies.safety import cost, safe, wait
from kb.conversation.replies.shown import shown
from kb.conversation.replies.steps import cannot, dont_know, next_step, yes
from kb.conversation.state import Conversation, ReplyAct
from kb.conversation.subject import asks, without_question
from kb.corpus.base import KnowledgeBase

_Reply = Callable[[Acted, Conversation, KnowledgeBase], Answer]

_REPLIES: dict[Act, _Reply] = {
    Act.NEXT: next_step,
    Act.WHY: why,
    Act.WHY_NOT: why_not,
    Act.EXPLAIN_TERM: explain_term,
    Act.HOW: how,
    Act.SAFE: safe,
    Act.COST: cost,
    Act.MOST_LIKELY: most_likely,
    Act.OTHERS: others,
    Act.SHOW_FIX: show_fix,
    Act.WORKAROUND: workaround,
    Act.PREVENT: prevent,
    Act.SUMMARISE: summarise,
    Act.HAND_OVER: hand_over,
    Act.SUCCESS: success,
    Act.FAILURE: failure,
    Act.THANKS: thanks,
    Act.FRUSTRATION: frustration,
    Act.GREETING: greeting,
    Act.CANNOT: cannot,
    Act.DONT_KNOW: dont_know,
    Act.YES: yes,
    Act.OTHER: other,
}
_ASKED: dict[Asked, Callable[[Acted, Conversation, KnowledgeBase], Answer | None]] = {
    Asked.EVERYWHERE: everywhere,
    Asked.SHOWN: shown,
    Asked.BITS: bits,
    Asked.GUESS: guess,
    Asked.PLACE: place,
    Asked.PROVE: prove,
    Asked.ALL_WAIT: all_wait,
    Asked.RECURS: recurs,
    Asked.REPEAT: repeat,
    Asked.BRIEF: brief,
    Asked.WHOM: whom,
    Asked.TEAM: team,
    Asked.LOGS: logs,
    Asked.DRAIN: drain,
    Asked.NORMAL: normal,
    Asked.MATTERS: matters,
    Asked.WAIT: wait,
    Asked.SO_FAR: so_far,
    Asked.RELAPSE: relapse,
    Asked.COMMAND: known_command,
    Asked.KNOWN: known_question,
    Asked.OPTION: known_option,
    Asked.LEAD: lead,
    Asked.ALTERNATIVES: lambda _acted, conversation, knowledge: alternatives(
        conversation, knowledge
    ),
}
"""Requests that a turn of phrase tells, whatever the act is. None: it is answered by its act."""
_FIXED = {
    Act.NO: "all-right",
    Act.WHO: "who",
    Act.OFF_TOPIC: "off-topic",
    Act.HOSTILE: "hostile",
}
"""Keys of sentences that are always the same."""
_MAY_MEAN = {
    Act.EXPLAIN_TERM,
    Act.HOW,
    Act.COST,
    Act.WHY_NOT,
    Act.SHOW_FIX,
    Act.PREVENT,
    Act.NEXT,
    Act.SAFE,
    Act.WORKAROUND,
    Act.OTHER,
}
"""Acts of questions that hold for every case: why something is, the case says better."""
_DOES = {
    Act.WHY: ReplyAct.EXPLAIN,
    Act.WHY_NOT: ReplyAct.EXPLAIN,
    Act.EXPLAIN_TERM: ReplyAct.EXPLAIN,
    Act.GREETING: ReplyAct.GREET,
    Act.SUCCESS: ReplyAct.CLOSE,
    Act.OFF_TOPIC: ReplyAct.DECLINE,
    Act.HOSTILE: ReplyAct.DECLINE,
}
"""What the tool does by its reply to an act, where that is always the same."""


def answer_to(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What to say to a part of a message that is no evidence."""
    acted = Acted(acted.act, acted.text[:MAX_TALK_CHARACTERS])  # a request is not longer
    # A question beside a success comes after it.
    told = without_question(acted.text)[0] if acted.act is Act.SUCCESS else acted.text
    asked = asked_in(told)
    answer = _ASKED[asked](acted, conversation, knowledge) if asked else None
    answer = answer or _meant_by(acted, conversation, knowledge)
    if answer:
        return answer
    key = _FIXED.get(acted.act)
    reply = _REPLIES.get(acted.act, other)
    answer = fixed(key, conversation) if key else reply(acted, conversation, knowledge)
    return msgspec.structs.replace(answer, act=_DOES.get(acted.act, answer.act))


def _meant_by(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """The answer of the table, where a question surely means one of its own and nothing of the case
    answers it."""
    text = acted.text
    if acted.act not in _MAY_MEAN or not asks(text) or has_answer_of_its_own(text):
        return None
    if names_check_or_step(acted, conversation, knowledge):
        return None
    if passage_about(text, conversation, knowledge):
        return None
    return meant_question(text, conversation, knowledge)
