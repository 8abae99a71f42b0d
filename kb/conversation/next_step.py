"""The check to run next, after all that was said and pasted."""

from __future__ import annotations

from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck, Standing, next_check, weighed_playbooks
from kb.verdict import Verdict


def check_to_run(conversation: Conversation, knowledge: KnowledgeBase) -> NextCheck | None:
    """None for a match, whose fix is the way, and where no outcome would change what to do."""
    if conversation.verdict is Verdict.MATCH:
        return None
    diagnosis, ratios = conversation.diagnosis, conversation.readings
    before = Standing(diagnosis.candidates, diagnosis.playbooks)
    playbooks = weighed_playbooks(before, conversation.matches, ratios, knowledge.guides)
    return next_check(
        Standing(conversation.matches, playbooks, ratios),
        diagnosis.evidence,
        knowledge,
        read=conversation.checks,
        job_ended=diagnosis.job is not None and diagnosis.job.failed,
    )
