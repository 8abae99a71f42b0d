"""What helped, in the words of the user: their own remedy proves nothing of what was proposed."""

from __future__ import annotations

import re

from index.tokens import tokenize
from kb.conversation.replies.meant import SETTING
from kb.evidence.glossary import translate

_REFUTES = re.compile(
    r"\bnot what you (?:said|thought|suggested|named)\b"
    r"|\b(?:was|is)(?:n't| not) (?:that|your|what you)\b"
    r"|\bnothing to do with (?:that|it|your|what you)\b|\bnone of (?:that|those|these|your)\b"
    r"|不是你(?:说|讲|猜)的|说明不是|(?:跟|和|与)你说的.{0,6}(?:没|无)关|你说的.{0,4}不对",
    re.IGNORECASE,
)
"""What helped was something else than what was proposed."""
_OF_SUCCESS = re.compile(
    r"\b(?:it|that|this|is|are|was|works?|worked|working|runs?|running|fixed|fix|solved|resolved|helped|help"
    r"|gone|ok|okay|fine|good|great|perfect|awesome|nice|yes|yay|now|again|finally|all|well|up|back|normal"
    r"|thanks?|thank|cheers|so|much|problem|issue|error|hang|did|done|trick|training|job|server|started"
    r"|starts|start|through|going|looks|like|for|the|and|we|everything|step|steps|your|advice)\b"
    r"|好了|可以了|解决了?|起来了?|恢复了?|正常了?|谢谢|多谢|感谢|现在|已经|终于|都|能跑了?|跑通了?|跑起来了?"
    r"|问题|没事了?|搞定了?|成功了?|太好了|按你(?:说|讲)的|训练|任务|服务|之后|以后|就|了",
    re.IGNORECASE,
)
"""Words that only say that it works."""
_MIN_OWN_WORDS = 3
"""Words beside them that tell of a remedy."""
_CLAUSES = re.compile(r"(?<!\s)\s*(?:[，；;。!！?？\n]|,(?!\d)|\.(?!\w))\s*")
_STATE = re.compile(
    r"\d.*?(?:%|\b(?:[kmgt]i?b?|ms|s|sec\w*|min\w*|hours?|h|steps?|it/s|tok\w*)\b)"
    r"|\b(?:stays?|sits?|is|are|at|gpus?|util\w*|loss|memory|host|throughput)\b.{0,24}\d",
    re.IGNORECASE,
)
"""What is measured now that it works."""
_DID = re.compile(
    r"\b(?:set|add|remov|delet|switch|chang|mov|upgrad|downgrad|revert|roll|disabl|enabl|turn|replac|install"
    r"|reinstall|rais|lower|increas|reduc|pin|patch|fix|clear|free|kill|restart|reboot|bump|with|without|us|after"
    r"|unset|export|drop|rebuil|copi|re-?seat|swap)(?:p?ed|t?ed|ing|e?s)?\b|[改换加设装升降删关开清释重去调用]",
    re.IGNORECASE,
)
"""What was done so that it works."""
_BY_ITSELF = re.compile(
    r"\b(?:by itself|on its own|itself|magically|no idea why|nobody did anything)\b"
    r"|自己(?:就)?(?:好|恢复)|莫名其妙.{0,4}好|自动(?:好|恢复)",
    re.IGNORECASE,
)
"""It works, and nobody knows why."""


def tells_remedy(text: str) -> bool:
    """Whether a text tells of a remedy, beside that it works."""
    if by_itself(text):
        return False
    is_named = refutes(text) or SETTING.search(text) is not None
    return is_named or len(remedy_words(text)) >= _MIN_OWN_WORDS


def remedy_told(text: str) -> str:
    """A text without its clauses that only tell what is measured now."""
    clauses = list(filter(None, map(str.strip, _CLAUSES.split(text))))
    telling = [one for one in clauses if not _STATE.search(one) or _DID.search(one)]
    return text if len(telling) == len(clauses) else ", ".join(telling)


def remedy_words(text: str) -> frozenset[str]:
    """The words beside those that only say that it works, or how well."""
    return frozenset(tokenize(translate(_OF_SUCCESS.sub(" ", remedy_told(text)))))


def refutes(text: str) -> bool:
    """Whether it says that what was proposed was not it."""
    return _REFUTES.search(text) is not None


def by_itself(text: str) -> bool:
    """Whether it says that nobody did anything."""
    return _BY_ITSELF.search(text) is not None
