"""Whether a log shows that its work is done: the forms are rows of `kb/rules/endings.toml`.

A log that just stops may be that of a hang, which prints nothing. And a person who tells of a
problem may quote the happiest log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise, takewhile

from kb.evidence.markers import denies_failure
from kb.evidence.notices import is_notice
from kb.evidence.references import falls_short, lacks_some, stands_still
from kb.expression import Expression
from kb.log.prefixes import split_prefix
from kb.numbers import read_int
from kb.rules import any_of, read_rows
from kb.rules.rows import Ending, Result

END_LINES = 8
"""Last lines of a log in which a program says that it is done; summaries follow."""

MIN_PASTE_LINES = 12
"""A paste of so many lines is mostly a program's, whoever speaks around it."""
SPEAKING_LINES = 3
"""In which a person says what a paste is, at its beginning and at its end."""
_LINES_KNOWN = 1_000
"""Lines of which it is remembered whether they say the end: evidence and job ask for the same."""

_LEVEL = Expression(r"^.{0,80}?\b(?:INFO|NOTICE|SUCCESS|DEBUG|WARN(?:ING)?|\u4fe1\u606f)\b\W+")
"""A level, and what stands before it, where no form of a prefix takes them off."""
_LOGGER = Expression(r"^[\w.<>/:-]{1,80}(?:\]|:| -|\)| >| \|)\W*")
"""The name of the logger behind the level."""

_BEGINS = Expression(
    r"\b(?:starting|started|begin(?:ning)?|launching|waiting(?! (?:\d+ seconds )?for other agents)"
    r"|loading|saving|exporting|resum\w+|initiali[sz]\w*"
    r"|connecting|(?:epoch|step|iter(?:ation)?|batch)[ :=\[#]{1,3}\d)|(?:\.\.\.|…)\s*$"
    r"|开始|正在|等待|进度|(?<![\d.])\d{1,2}%[|\]]|^\W*\d{1,2}%"
    r"|^(?:[\w.@~:/-]{1,80}[#$]|\$) \S|(?-i:[\u4e00-\u9fff]{7})",
    re.IGNORECASE,
)
"""Something new begins, so what ended before was only a part of the work; or somebody speaks."""

_WORD = Expression(r"[A-Za-z]{1,20}\W{0,5}")

_AWAITS = Expression(
    r"\b(?:waiting(?! \d+ seconds for other agents)|waits?"
    r"|will|would|should|expect\w*|until|stage)\b",
    re.IGNORECASE,
)
"""The end is still to come, or it is that of a part."""

_PARTLY = Expression(
    r"\b(?:complet\w*|finish\w*|done|succe\w*|passed)\b\W{0,4}(?:(?:at|to|by|is|about|only)\W)?"
    r"(?P<share>\d{1,2})(?:\.\d+)?\s?%"
    r"|完成(?:了|度)?\W{0,3}(?:约|大约|百分之)?\s?(?P<share_zh>\d{1,2})(?:\.\d+)?(?:\s?%|$)"
    r"|\b(?:on|by|for|in|across)\W{1,2}(?:only )?(?P<some>\d{1,6})\s?(?:/|of|out of)\s?"
    r"(?P<all>\d{1,6})\b"
    r"(?= (?:\w+ )?(?:rank|node|worker|gpu|host|task|process|job|pod|replica|machine|shard)\w*)",
    re.IGNORECASE,
)
"""Some of the work is done: 80 %, on 7 of 8 ranks."""
_SUCCEEDED = Expression(
    r"(?<![\d./-])(?P<some>\d{1,6})\s?(?:/|of|out of)\s?(?P<all>\d{1,6})(?![\d./-])"
    r"\W{1,3}(?:\w+ ){0,2}?"
    r"(?:succe\w*|passed|complete[ds]?|finished|done|ready|ok|healthy|alive|joined|saved|written"
    r"|verified|responded|answered|uploaded|available|active|up|online|present|visible|detected"
    r"|attached|reachable|成功|完成|就绪|通过|正常|在线|存活)(?!\w)",
    re.IGNORECASE,
)
"""Counted: 3/4 tasks succeeded."""
_SO_MANY = Expression(
    r"(?:\b(?:uploaded|saved|wrote|written|copied|processed|merged|converted|completed|finished|done"
    r"|passed|succeeded|ok|verified|joined|loaded|synced|transferred|evaluated|downloaded)\b"
    r"|成功|完成|通过|已处理|已保存|已上传|就绪)[ :=,(\uff1a]{0,3}"
    r"(?<!\d)(?P<some>\d{1,9}) ?(?:/|of|out of) ?(?P<all>\d{1,9})(?![\d./-])"
    r"|(?<![\d./-])(?P<have>\d{1,9}) ?/ ?(?P<need>\d{1,9}) ?个?"
    r"(?:分片|副本|节点|文件|进程|(?:shard|file|rank|worker|node|replica|part|host)s?\b)",
    re.IGNORECASE,
)
"""Counted behind the word, as it goes on: uploaded 402/512."""

_TROUBLE = Expression(
    r"\b(?:(?<!status: \d )(?<!status: \d\d )terminated|killed|went away|gave up"
    r"|giving up|restart(?:ing|ed)?|retry(?:ing)?"
    r"|panic(?:s|ked)?"
    r"|resubmit\w*|try #|attempt #?[2-9]|preempt\w*|evict\w*|drain\w*|emergency|spot notice"
    r"|interrupt\w*|abort\w*|exhausted|(?<!as )expected(?![^()\n]{0,30}\))|wanted|chance level"
    r"|could(?: not|n't)|cannot|can't|did(?: not|n't)|unable to"
    r"|lost|went missing|stale|degraded|nan|inf|early stop\w*(?! satisfied)"
    r"|not (?:started|run|reported|returned|written|saved)|left out|gone|dropped|absent|missing"
    r"|random init"
    r"|unreadable|mismatch|not reachable)\b"
    r"|\b(?:exited|exit|returned|code|status|rc)\b[\W_]{0,3}(?:with |code |status ){0,3}"
    r"[\W_]{0,3}-?[1-9]\d{0,2}\b(?! terminated)"
    r"|^\|[^|]{1,60}\|\s*(?:skip|warn|fail)"
    r"|^-[rwx-]{9}\S?\s+\d+\s+\S+\s+\S+\s+0\s"  # a file without content
    r"|\b(?:utili[sz]ation|efficiency)\W{1,4}0(?:\.0\d?)?\s?%"
    r"|(?:返回值|返回码|退出码)\s*[:：=]?\s*-?[1-9]|(?<!无需)重启|重试|抢占|驱逐|中断|跳过|丢失"
    r"|\b(?:fehler|fehlgeschlagen|erreur|échec|échoué|fallo|falló|falha|errore|fallit[oa])\b"
    r"|ошибк|エラー|失敗|오류|실패|无法|未能|异常退出|未(?:通过|运行|完成的)|不通过?(?!(?-i:[\u4e00-\u9fff]))"
    r"|掉线|离线|缺失|已到末尾|预计(?!剩余|完成|还需|时间)|期望|预期",
    re.IGNORECASE,
)
"""Some of the work went wrong, though no line is marked as a failure: no all-clear then."""
_NONE_BEFORE = Expression(
    r"(?:^|[,;(|]\s{0,3}|\band )0 (?:\w+ )?$|\bno (?:\w+ ){1,2}$"
    r"|(?:没有|无|未(?:发现|出现)?)(?:任何)?$"
)
_COUNT = (
    r"(?:[\u4e00-\u9fff]{0,4}(?:[数率]|迭代|步|样本|批次?)| (?:iterations|steps|samples|batches))?"
)
"""How Chinese names the number of what went wrong."""
_NONE_BEHIND = Expression(rf"\s{{0,4}}{_COUNT}\s{{0,4}}[:=：]?\s{{0,4}}0(?:\.0{{1,3}}%)?(?![\w.%])")
_MAX_BESIDE = 40
"""Characters before and behind such a word, in which it is counted."""

_NONE_OF_IT = Expression(
    r"\b(?:no(?! (?:longer|answer|response|reply|heartbeat))|without(?! an)"
    r"|(?<!non-)(?<!non)zero|none|nothing"
    r"|never(?! (?:answered|reported|responded|joined|came|started|finished|returned))"
    r"|if|unless|when|whether|would|will not|avoid(?! data incons)\w*|prevent\w*"
    r"|(?:common|possible|potential|likely) (?:causes?|reasons?))\b"
    r"|(?<![A-Za-z] )\b0 (?:of \d+ )?(?:\w+ )?\w+$|(?:没有|无|未)(?:发现|出现|任何)?"
    r"|如果|若|避免|防止"
    r"|\bbackground worker \"",
    re.IGNORECASE,
)
"""Before a doubt: nothing of that happened, or it only could, or may be the cause, or PostgreSQL
stops in order."""
_NONE = Expression(
    rf"['\"]?\s{{0,4}}{_COUNT}\s{{0,4}}[:=：]?\s{{0,4}}['\"]?(?:0|false|none|null)\b(?!\.\d)"
    r"|\s{0,4}any active transactions|, (?:rescheduling the placement groups|marking all jobs) ",
    re.IGNORECASE,
)
"""Behind a doubt: it is counted, and there is none; or PostgreSQL stops in order, or Ray tells what
it does on the end of any node."""
_SOME = Expression(
    r"(?<![.\d])[1-9]\d* (?:\w+ )?(?:failed|failures|errors)\b(?!\s*[:=])", re.IGNORECASE
)
"""Counted, and not none: "2 errors, 0 warnings"."""

_TOTAL = Expression(
    r"\b(?:max_(?:steps|epochs|iters)|total[ _](?:(?:optimization|training)[ _])?steps"
    r"|train[_-]iters|num[ _](?:train[ _])?(?:epochs|steps)|计划(?:训练)?|总步数|总轮数)\W{1,4}"
    r"(\d[\d,]*)",
    re.IGNORECASE,
)
_REACHED = Expression(
    r"(?:\b(?:step|iter(?:ation)?|epoch)s?['\"]?\W{1,4}|(?<!#\d )(?<!#\d\d )\[(?=\d+/\d+\]))"
    r"(\d[\d,]*)(?:\.\d+)?"
    r"(?:\s*/\s*(\d+))?",
    re.IGNORECASE,
)
_MIN_REACHED = 0.9
"""Share of the steps that were to be done; a log prints the last of them now and then."""

_ALL_DONE = Expression(
    r"(?:\b(?:step|iter(?:ation)?|epoch|trial|round|batch|sample|prompt|request|part|file|image)s?\b"
    r"|第|迭代|步数?|轮数?|进度|回答|样本|请求)['\"]?\W{0,12}"
    r"(?P<all>[1-9]\d*) ?/ {0,8}(?P=all)(?!\d)"
    r"|^(?![^\n]*\bepoch\b)[^\n]{0,60}\b100%\|[^|\n]*\| ?(?P<bar>[1-9]\d*)/(?P=bar)\b"
    r"|\bmax_(?:epochs|steps)=\d+` reached\b|\bEarlyStopping: stopping\b|早停[^\n]{0,30}停止训练"
    r"|\bSignaling Trainer to stop\b|^epoch \d+: early stopping$|早停触发",
    re.IGNORECASE | re.MULTILINE,
)
"""The last of the steps was done, or no more were needed."""
_SAVES = Expression(
    r"\b(?:saving|exporting|writing|uploading|restoring|testing|evaluating)\b"
    r"|正在(?:保存|导出|写入|上传|评测)",
    re.IGNORECASE,
)
_GOES_ON = Expression(
    r"(?:\.\.\.|…)\s*$|正在|开始|等待|\b(?:saving|exporting|writing|uploading)\b", re.IGNORECASE
)

_WORDS_OF_SPEECH = Expression(
    r"\b(?:is|are|was|were|has|have|had|but|and|then|when|while|after|since|just|only|that|this"
    r"|these|those|it|its|they|them|there|not|nothing|again|says?|said|same|should|would|does|did"
    r"|than|which|every|other|so|because|about|around|until|too|very|more|most|some|any)\b",
    re.IGNORECASE,
)
_SMALL_WORDS = Expression(
    r"\b(?:the|an?|of|on|in|for|to|at|with|from|into|between|by|as|all|one|out|up|down|no|if)\b",
    re.IGNORECASE,
)
_MIN_SPEECH, _MIN_SPEECH_SHARE = 1.5, 0.2
"""Words of speech in a line of prose, where a small word counts half, and their share of all
words. A program's line without a prefix rarely has as many."""
_SHAPED = Expression(
    r"^\s*(?:\[|#|\{\"[\w@.-]+\":|\+ |-- |=|\$ |>>> |- \w+: |-[IWE]- |[\w.\[\]\"-]+:(?:\s|$)|\d"
    r"|(?:[\w-]{1,30}\s{1,8}){1,2}\w{0,40}_\w{0,40}:\s|total size is [\d,.]+ "
    r"|\w+(?:\.\w+)+\(['\"])"  # a line of code, which Python prints below a warning
)
"""How a line begins that a program prints, though it has no prefix that is known."""
_PROMPT = Expression(r"(?:[\w.@~:/-]{1,80}[#$]|\$) \S")
_TITLED = Expression(r"[\w-]{1,30}(?: [\w.-]{1,30}){0,3}(?::|\s{2,})\s*\S")
_WARNS = Expression(r"(?<=\w)Warning: ")
_REMARK = Expression(
    r"\s*(?:\((?!no )[^() ]{1,40}(?: [^() ]{1,40}){3,40}\)|\uff08[^\uff08\uff09]{4,200}\uff09)\s*"
)
"""A line in parentheses, which somebody wrote under what they pasted."""
_ASKS_STATUS = Expression(r"\becho \$\?\s*$")
_TOLD = Expression(
    r"(?-i:\bI(?:'| [a-z]))|\bi(?:'(?:m|ve)| (?:am|have|get|see|run|ran|tried))\b"
    r"|\b(?:we|my|our|you|somebody|anyone|nobody|please|help|me)\b|\b(?:why|how) |\w'(?:t|s|re|m) "
    r"|(?<!\$)[?\uff1f]!*\s*$|!{2,}",
    re.IGNORECASE,
)
_COMPLAINED = Expression(
    r"\b(?:still|yet|hangs?|stuck|weird|strange|slow|(?<!#)wrong"
    r"|never|nope|expected|instead|(?:al)?though|anyway|however|supposed|unusable|garbage|gibberish|nonsense)\b",
    re.IGNORECASE,
)
_HEADED = Expression(
    r"^\s*(?:\[[^\]]{1,60}\]|(?:警告|信息|提示|注意|汇总|统计|结果|校验|评测)[:：]"
    r"|(?!(?:note|ps|problem|issue|question|results?|actual|observed|symptom|edit|update|context|fyi|btw"
    r"|but|so|also|now|then|and|still|me)\b)[\w.\[\]\"/-]{1,80}:(?:\s|$))",
    re.IGNORECASE,
)
"""The head of a line that names who prints it: behind it, only words that no program has tell of a
person."""
_ASKED_IN_CHINESE = Expression(
    r"[我咱帮吗呢吧]|请问|求助|怎么|为什么|为何|但|不过|却|可是|没反应|卡(?:住|死)|不对|奇怪"
)
_TOLD_IN_CHINESE = Expression(
    r"[我咱帮吗呢吧啊]|了(?!解)|都(?!市)|就(?!绪|位|地)|还(?!原|款)|也|才(?!能)|又|起不来|请问|求助|怎么|为什么|为何|什么|但|不过|却|可是|结果(?:却|就|还)|然后"
    r"|卡(?:住|死|在|着|很)|不动|没反应|没有反应|不退|不结束|一直|突然|从来|不对|不正常|很慢|太慢|变慢"
    r"|奇怪|没有(?!错误|失败|异常|发现|丢失|超时|遗漏|降频)|[没不]报错|没[变动少多人用]|[昨前今]天|[上这]周|上个?月|[早晚]上|[上下]午|半夜|凌晨"
    r"|从\s*[\d.]+\s*\S{0,8}\s*(?:涨|掉|降|升|变|跌|减|慢)"
)
"""Particles and words of people; programs leave them out."""


def ends_well(lines: Sequence[str]) -> bool:
    """Whether the last lines of a log say that the work is done."""
    spoken = [line for line in lines if line.strip()][-END_LINES:]
    told = [line for line in _with_statuses(spoken) if says_end(line) or not is_notice(line)]
    is_over = _ALL_DONE.search("\n".join(spoken)) is not None
    return (
        _end_with_work(told, is_over=is_over)
        and not any(map(_is_no_success, told))
        and not (_is_left_undone(told) or lacks_some(told) or stands_still(told))
        and not _is_cut_short(told)
    )


def _is_no_success(line: str) -> bool:
    return _is_in_trouble(line) or _is_partly_done(line) or falls_short(line)


def _end_with_work(lines: Sequence[str], *, is_over: bool) -> bool:
    """Whether the end is told, or a result where all of the work was done, and nothing begins
    behind it. What begins to be saved behind an end, and then is saved, is a part of it."""
    ended, kept = _last_of(lines, says_end), _last_of(lines, has_result)
    if ended < 0 and not (is_over and kept >= 0):
        return False
    behind = (
        line
        for place, line in enumerate(lines)
        if place > max(ended, kept) or (place > ended >= 0 and not _SAVES.search(line))
    )
    return not any(map(_BEGINS.search, behind)) and not all(map(_is_one_word, lines))


def _last_of(lines: Sequence[str], says: Callable[[str], bool]) -> int:
    """The place of the last line of which that is true; below 0 without one."""
    return max((place for place, line in enumerate(lines) if says(line)), default=-1)


def _with_statuses(lines: Sequence[str]) -> Iterator[str]:
    """The lines; what `echo $?` prints is called a status."""
    for before, line in pairwise(["", *lines]):
        is_status = line.strip().isdecimal() and _ASKS_STATUS.search(before)
        yield f"exit status {line.strip()}" if is_status else line


def _is_in_trouble(line: str) -> bool:
    """Whether some of the work went wrong; not so where it is counted, and there is none."""
    return any(
        not _NONE_BEFORE.search(line[max(0, found.start() - _MAX_BESIDE) : found.start()])
        and not _NONE_BEHIND.match(line[found.end() : found.end() + _MAX_BESIDE])
        for found in _TROUBLE.finditer(line)
    )


def _is_left_undone(lines: Iterable[str]) -> bool:
    """Whether the last count of what is done lacks some."""
    counts = [found for line in lines for found in _SO_MANY.finditer(line)]
    if not counts:
        return False
    last = counts[-1]
    return int(last["some"] or last["have"]) < int(last["all"] or last["need"])


def _is_cut_short(lines: Sequence[str]) -> bool:
    """Whether the log says how many steps there were to be, and reached few of them."""
    total: int | None = None
    share = 1.0
    for line in lines:
        if stated := _TOTAL.search(line):
            total = read_int(stated[1].replace(",", ""))
        elif reached := _REACHED.search(line):
            done, of = read_int(reached[1].replace(",", "")), read_int(reached[2] or "") or total
            share = done / of if done is not None and of else share
    return share < _MIN_REACHED


def _is_one_word(line: str) -> bool:
    """Whether a line is a word such as `ok`: alone it does not say of what."""
    return any(map(_WORD.fullmatch, _messages(line)))


@lru_cache(_LINES_KNOWN)
def says_end(text: str) -> bool:
    """Whether a line says that the work is done, and all of it."""
    if _AWAITS.search(text) or _is_partly_done(text):
        return False
    return any(map(_any_ending().search, _messages(text)))


def _is_partly_done(text: str) -> bool:
    counted = (*_PARTLY.finditer(text), *_SUCCEEDED.finditer(text))
    return any(found["all"] is None or int(found["some"]) < int(found["all"]) for found in counted)


def raises_doubt(before: str, behind: str) -> bool:
    """Whether a line in which something seems to have gone wrong does not deny it. `before` ends
    with the words that seem so."""
    if _SOME.search(before + behind):
        return True
    is_denied = denies_failure(before + behind) or _NONE_OF_IT.search(before)
    return not (is_denied or _NONE.match(behind))


def _messages(line: str) -> Iterator[str]:
    """The line without its prefix, as far as that can be told."""
    said = split_prefix(line).text.strip()
    message = split_prefix(_LEVEL.sub("", said)).text  # a rank may stand behind the level
    forms = (said, message, _LOGGER.sub("", message), message.rpartition("] ")[2])
    yield from dict.fromkeys(forms)  # mostly the same, and each is searched


def is_told_by_a_person(lines: Iterable[str]) -> bool:
    """Whether somebody speaks, rather than a program: before what they paste, or behind it. In the
    middle of a paste a line of prose is a program's."""
    spoken = [line for line in lines if line.strip()]
    if len(spoken) >= MIN_PASTE_LINES:
        spoken = [*spoken[:SPEAKING_LINES], *spoken[-SPEAKING_LINES:]]
    return any(map(_is_prose, spoken))


def pasted_part(lines: Sequence[str]) -> slice:
    """What is left of a paste without what a person says before it and behind it, as far as words
    of people tell that for sure."""
    before = sum(1 for _ in takewhile(_speaks_for_sure, lines[:SPEAKING_LINES]))
    behind = sum(1 for _ in takewhile(_speaks_for_sure, lines[: -SPEAKING_LINES - 1 : -1]))
    return slice(before, len(lines) - behind)


def _speaks_for_sure(line: str) -> bool:
    words = (_TOLD, _COMPLAINED, _TOLD_IN_CHINESE)
    return _is_prose(line) and not _SHAPED.match(line) and any(told.search(line) for told in words)


def has_shape(line: str, *, alone: bool) -> bool:
    """Whether a line begins as a program's does: with a prefix or, where it does not stand almost
    `alone`, in another form that people rarely write."""
    text = split_prefix(line).text
    if text != line or _LEVEL.match(line):
        return True
    return not alone and bool(_SHAPED.match(text) or _PROMPT.match(text) or _TITLED.match(text))


def _is_prose(line: str) -> bool:
    if is_notice(line):
        return False
    is_headed = _HEADED.match(line) is not None
    if (_ASKED_IN_CHINESE if is_headed else _TOLD_IN_CHINESE).search(line):
        return True
    text = split_prefix(line).text
    if _REMARK.fullmatch(line):
        return True
    if text != line or _LEVEL.match(line) or _WARNS.search(line):
        return False  # a program's prefix stands in front
    if _TOLD.search(text) or (not is_headed and _COMPLAINED.search(text)):
        return True
    if _SHAPED.match(text):
        return False
    speech = len(_WORDS_OF_SPEECH.findall(text)) + len(_SMALL_WORDS.findall(text)) / 2
    return speech >= _MIN_SPEECH and speech >= _MIN_SPEECH_SHARE * len(text.split())


def has_result(line: str) -> bool:
    """Whether a line says that something is left behind by the work."""
    return not _GOES_ON.search(line) and any(map(_any_result().search, _messages(line)))


@cache
def _any_result() -> re.Pattern[str]:
    rows = read_rows("endings", "result", Result)
    return any_of((row.pattern for row in rows), re.IGNORECASE)


@cache
def _any_ending() -> re.Pattern[str]:
    rows = read_rows("endings", "ending", Ending)
    return any_of((row.pattern for row in rows), re.IGNORECASE)
