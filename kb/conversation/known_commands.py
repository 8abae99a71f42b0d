"""Commands that people think of by themselves, with what they do and what is lost: rows of
`known_commands.toml`."""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from functools import cache
from pathlib import Path

import msgspec

from kb.conversation.language import Language

_CLAUSES = re.compile(r"(?<=[.!?;,:])\s+|[，。；！？：]\s*|\s+(?:but|and then)\s+")
_ASKS = re.compile(
    r"\b(?:can|could|may|might|should|shall|must|dare|do|did|would|will|can.t|couldn.t|shouldn.t)"
    r" (?:i|we|one|anybody|anyone)\b"
    r"|^(?:so |and |or |but |then |also |hmm,? |ok,? |btw,? )*"
    r"(?:is|are|would|will|isn.t|wouldn.t)\b"
    r".{0,120}\b(?:ok|okay|safe|safely|safer|fine|allowed|dangerous|risky|harmful|harmless|bad|good"
    r"|problem|destructive|reversible|permanent|needed|necessary|worth|wise|sane|enough|overkill)\b"
    r"|\b(?:safe|risky|dangerous|harmless|reversible|destructive|(?:good|bad) idea|overkill)\W*$"
    r"|\b(?:ok|okay|fine|allowed)\s*\?|\b(?:safe|ok|okay|fine|allowed) to\b"
    r"|\bwha?t(?:.?s| is| are| does| do| will| would| happens?| if| about| can| could)\b"
    r"|\b(?:does|do|will|would|could|can|might|did)\b.{0,120}\b(?:lose|kill|break|hurt|affect"
    r"|disturb|delete|drop|interrupt|stop|survive|need|require|harm|crash|clear|wipe|restart|free"
    r"|end|cost|take|corrupt|touch|damage|undo|persist|remove|evict|risk|destroy)\b"
    r"|\bhow (?:long|risky|dangerous|safe|bad|destructive|expensive)\b"
    r"|\b(?:undo|revert|roll(?:ed)? ?back|reverse|side.?effects?|consequences?|downsides?|risks?)\b"
    r"|\b(?:going|about|tempted|plan|planning|thinking|want|like) (?:to|of|about)\b|\bgonna\b"
    r"|\bwhy not\b|\bhow about\b|\bexplain\b|\bmeaning of\b"
    r"|行不行|行[吗么]|可以(?:吗|么|不|直接|先)|可不可以|能不能|能否"
    r"|(?:能|可以|敢|要|应该).{0,60}[吗么]"
    r"|要不要|该不该|应不应该|是不是(?:要|该|可以|能)|安全|危险|风险|副作用|后果|坏处|代价|影响"
    r"|会(?:不会|怎|影响|丢|杀|断|有|删|停|清|保存)"
    r"|是(?:什么|啥|干嘛|干什么|干啥|做什么)|[干做](?:嘛|什么|啥)"
    r"|(?:什么|啥)(?:意思|作用|用|后果)|有(?:没有)?问题|没事[吧吗]|好不好"
    r"|好吗|吗\s*[?？]?\s*$|敢不敢"
    r"|撤销|还原|回退|丢(?:数据|进度|什么|东西)|想|打算|准备|解释",
    re.IGNORECASE,
)
"""Asks whether something may be done, what it does or what it costs."""
_ASKS_OF_IT = re.compile(
    r"(?:and |so |but )?(?:(?:is|would|will|does|can|could) (?:it|this|that)\b.{0,60}\b"
    r"(?:ok|okay|safe"
    r"|fine|dangerous|risky|bad|allowed|harm|hurt|kill|lose|break|affect|stop|take|cost)\b"
    r"|(?:safe|ok|okay|risky|dangerous|(?:good|bad) idea|yes or no)\W*$|what happens\b"
    r"|what (?:does|would|will) (?:it|this|that) (?:do|cost|break|lose|kill|affect)\b"
    r"|any (?:risk|harm|danger|side)|should (?:i|we)\W*$)"
    r"|行不行|行[吗么]|可以[吗么]|安全[吗么]|会(?:不会|怎|影响|丢|杀|断)"
    r"|有(?:没有)?(?:什么|啥)?(?:风险|影响|问题)"
    r"|能不能|要紧|没事|好吗|危险|[干做](?:嘛|什么|啥)",
    re.IGNORECASE,
)
"""Asks so of what stands in the clause before."""
_NOT_ASKED = re.compile(
    r"\b(?:i|we|they|he|she|you|admins?|ops|somebody|someone|nobody)(?:.ve|.d| have| had| has)?"
    r"(?: (?:already|just|even|also|then|once|never))* (?:ran|tried|did|done|used|issued|executed"
    r"|killed|typed|entered|rebooted|restarted|unloaded|reloaded|removed|deleted|cleared|drained"
    r"|upgraded|stopped|dropped)\b"
    r"|\b(?:i|we|they|he|she)(?:.ve|.d| have| had) (?:already |just |also )?(?:run|set|reset)\b"
    r"|^(?:just |already |also |then )*(?:ran|tried|did|done|used|killed|rebooted|restarted|removed"
    r"|deleted)\b|\balready (?:ran|tried|did|done|run|used|killed|rebooted)\b"
    r"|\bafter (?:running|doing|i|we)\b"
    r"|\b(?:says|said|printed|returned|failed|fails|did nothing|didn.t|did not|doesn.t|does not"
    r"|no (?:effect|luck|change)|helped|fixed|worked|solved|brought|cannot|could not|unable"
    r"|not allowed)\b|\bcan.t\b(?! (?:i|we)\b)"
    r"|\bwhy\b(?! (?:not|don.t|can.t))|^(?:and |so |or )*(?:where|which|who|whose)\b"
    r"|\bhow (?:do|can|to|should|would|could)\b(?!.{0,120}\b(?:undo|revert|reverse|back)\b)"
    r"|\bwhat\b.{0,20}\b(?:output|says?|prints?|shows?|look like|next|else)\b"
    r"|(?:我|咱|他们|有人|运维|同事|刚|已经|昨天|之前).{0,8}[了过]"
    r"(?!.{0,8}(?:会|怎|吗|行不行|可以|能|要|该))"
    r"|[试跑做用行敲杀启卸]过|(?:试|做|跑|执行|杀|重启|卸载)了(?!.{0,8}(?:会|怎|吗|行不行|可以|能|要|该))"
    r"|没用|没反应|(?<!有)没(?:有)?(?:影响|变化|效果)"
    r"|无效|失败|报错|提示|返回|[杀卸删][不没][了掉动]"
    r"|为(?:什么|啥)(?!不)|(?:怎么|如何)(?!样)(?!.{0,20}(?:撤|还原|回退|恢复))",
    re.IGNORECASE,
)
"""Tells that it was run and what came of it, or asks something else: how, why, where."""
_BEFORE_BARE = re.compile(
    r"(?:\$ |# |sudo |and |or |just |maybe |then |也许|或者|直接|先)*", re.IGNORECASE
)
_AFTER_BARE = re.compile(
    r"(?:\s{1,3}(?:(?:it|them)\b|--?[A-Za-z][\w=.-]*|[A-Za-z]\w{0,30}[\d/=*.:-][!-~]{0,80}"
    r"|[A-Z]{1,8}\b|(?![A-Za-z])[!-~]{1,80}))*+\s*[?？.!]*"
)
"""Arguments of a command, without a word of a sentence."""
_AFTER_QUESTIONED = re.compile(r"(?:\s{1,3}\S{1,60}){0,6}\s*[?？]+|呢\s*[?？]*")
_MAX_CHARACTERS = 300
"""Of a question; a longer text tells something."""


class Leave(StrEnum):
    """Whether a command may be run while something is wrong."""

    YES = "yes"
    ONLY_IF = "only-if"
    NO = "no"


class CommandWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of a command in one language; sentences, but for `when`."""

    when: str
    """What it needs: the end of "only if ..."."""
    does: str
    lost: str
    """What is lost, and who else is hit."""
    undo: str
    """Whether and how it is undone."""
    first: str = ""
    """A safer thing to do before it, where there is one."""


class KnownCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command of the field that changes something."""

    name: str
    pattern: str
    """How a message names it."""
    leave: Leave
    source: str
    """The address of its manual."""
    en: CommandWords
    zh: CommandWords
    examples: tuple[str, ...]
    """Texts that ask about it."""
    others: tuple[str, ...] = ()
    """Texts that only look like it."""

    def words(self, language: Language) -> CommandWords:
        """What is said of it."""
        return self.zh if language is Language.CHINESE else self.en

    def place_in(self, text: str) -> re.Match[str] | None:
        """Where a text names it. Chinese letters may stand right beside it."""
        return re.search(self.pattern, text, re.IGNORECASE | re.ASCII)

    def is_in(self, text: str) -> bool:
        """Whether a text names it."""
        return self.place_in(text) is not None


def command_asked(text: str) -> KnownCommand | None:
    """The command of which a text asks whether it may be run, what it does or what it costs; None
    where it names none, asks something else, or tells that it was run."""
    if len(text) > _MAX_CHARACTERS or "\n" in text:
        return None
    clauses = _CLAUSES.split(text.strip())
    for clause, behind in zip(clauses, [*clauses[1:], ""], strict=True):
        is_asked = _ASKS.search(clause) or _ASKS_OF_IT.match(behind)
        if not (is_asked or len(clauses) == 1) or _NOT_ASKED.search(clause):
            continue  # before the commands, of which there are many
        command = command_named(clause)
        if command and (is_asked or _is_bare(command, clause)):
            return command
    return None


def command_named(text: str) -> KnownCommand | None:
    """The first command of the table that a text names; None where it names none."""
    return next((command for command in known_commands() if command.is_in(text)), None)


def _is_bare(command: KnownCommand, text: str) -> bool:
    """Whether a text is the command alone, or the command with a question mark."""
    named = command.place_in(text)
    if named is None or not _BEFORE_BARE.fullmatch(text[: named.start()]):
        return False
    rest = text[named.end() :]
    return bool(_AFTER_BARE.fullmatch(rest) or _AFTER_QUESTIONED.fullmatch(rest))


@cache
def known_commands() -> tuple[KnownCommand, ...]:
    """All of them, in the order in which they are tried."""
    source = Path(__file__).with_name("known_commands.toml").read_bytes()
    return msgspec.convert(tomllib.loads(source.decode())["command"], tuple[KnownCommand, ...])
