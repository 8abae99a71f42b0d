"""Whether a text asks, and whether it is about the field: what is left to go by where its act is
not clear."""

from __future__ import annotations

import re

from kb.conversation.act_model import words_of
from kb.conversation.terms import find_term
from kb.evidence.accelerators import FAMILIES, names_family
from kb.evidence.glossary import terms
from kb.evidence.systems import systems_in

_ASKS = re.compile(
    r"[?？]\s*$"
    r"|^(?:(?:so|and|or|then|but|ok|okay|well|hmm|sorry|btw|also|unrelated|different topic"
    r"|(?:one more|another|side) (?:thing|question))[,:]? )*"
    r"(?!did (?:it|this|that|both|all|(?:the|steps?) [\w-]+)\s*(?:[.,;!]|$))"  # it was done
    r"(?:(?:what|how|why|where|who)(?:'?s)?|which|when|whose|is|are|does|do|did|can|could|would"
    r"|should|will|has|have|any|give me|(?:is|are|does|do|did|can|could|would|should|wo)n?'?t"
    r"|explain|tell me|show me)\b"
    r"|^(?:要不|不如|干脆)|^(?:maybe|perhaps|what if) (?:i|we)\b"
    r"|[,;] *(?:so |and |but |then )?(?:can|could|should|is it|are they|does (?:it|that|this)"
    r"|do (?:i|we)|what|how|why|which)\b[^,;]*$"
    r"|[吗么呢吧]\s*$|吗\s*[，,。；;]|吗 |不就(?:行|好|可以|完)(?:了|吗)"
    r"|怎么|怎样|如何|什么|啥|为何|哪[个些里台种一]|多少|多大|多久|几个|是否|能不能|会不会"
    r"|要不要|行不行|是不是|有没有|可不可以|该不该|还是说?\S+(?:问题|原因)",
    re.IGNORECASE,
)
_BETWEEN_SENTENCES = re.compile(r"(?<=[.?!])\s+|(?<=[。？！])\s*|\n+")
_MEASURED = re.compile(
    r"\b\d+(?:\.\d+)?\s?(?:[kmgt]i?b?|%|ms|s|sec\w*|min\w*|hours?|h|gpus?|nodes?|ranks?|steps?"
    r"|workers?|cards?|w|c)\b|(?<!\d)\d+\s*(?:卡|台|节点|分钟|小时|秒|步|张|个)",
    re.IGNORECASE,
)
"""A number with its unit."""
_WORDS_OF_A_SENTENCE = 5
"""English words, or Chinese characters; fewer are a slip of the keyboard."""
_OF_JOBS = re.compile(
    r"\b(?:rank|ranks|node|nodes|gpu|gpus|job|jobs|training|train|batch|model|driver|kernel|image"
    r"|container|pod|cluster|restart\w*|reboot\w*|upgrad\w*|updat\w*|config\w*|script|launch\w*"
    r"|dataset|loader|memory|disk|network|switch|cable|log|logs|error|errors|step|epoch|loss"
    r"|version|env|timeout|worker|workers|process|server|weights|cuda|port|partition)\b"
    r"|(?<![A-Z0-9])[A-Z][A-Z0-9]+_[A-Z0-9_]+|--[a-z][a-z-]+"
    r"|节点|机器|显存|内存|任务|训练|驱动|镜像|容器|集群|重启|升级|配置|脚本|数据集|网络|交换机|磁盘"
    r"|日志|报错|超时|版本|进程|权重|显卡|权限|参数|环境变量",
    re.IGNORECASE,
)


def is_question(text: str) -> bool:
    """Whether a text asks something."""
    return _ASKS.search(text.strip()) is not None


def asks(text: str) -> bool:
    """Whether a sentence of a text asks something."""
    return any(map(is_question, sentences_of(text)))


def without_question(text: str) -> tuple[str, str]:
    """What a text tells before its first sentence that asks, and that sentence with all behind it;
    either may be empty."""
    for sentence in sentences_of(text):
        if is_question(sentence):
            told, asked, behind = text.partition(sentence)
            return told.strip(), f"{asked}{behind}".strip()
    return text, ""


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, with their marks."""
    return [part for part in _BETWEEN_SENTENCES.split(text) if part.strip()]


def is_statement(text: str) -> bool:
    """Whether a text tells something: it is a sentence, or has a word of the field."""
    return len(words_of(text)) >= _WORDS_OF_A_SENTENCE or is_of_the_field(text)


def is_of_the_field(text: str) -> bool:
    """Whether a text has a word of the field, or a measured number."""
    return bool(
        _OF_JOBS.search(text)
        or _MEASURED.search(text)
        or systems_in(text)
        or any(names_family(family, text) for family in FAMILIES)
        or any(word in text for word in terms())
        or find_term(text)
    )
