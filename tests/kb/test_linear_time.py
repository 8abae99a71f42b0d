"""Time grows with the length of a line, and not with its square: no hostile line stops the tool.

Each function that takes a line, a message or a name gets pumps: one piece, repeated until it is
8,000 characters long. Four times the text may take six times as long; what goes back over the text
from each of its characters takes sixteen times as long. That is no measure of speed: a slower
machine takes longer for both. A new function is a row of `FUNCTIONS`, a new piece a word of
`_PIECES`.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle, product
from pathlib import Path

import msgspec
import pytest

from index.tokens import tokenize
from kb.classify.cluster import find_clusters
from kb.classify.result import MainLine, Result
from kb.contribute.neutral import is_host, is_public, neutral
from kb.contribute.signatures import literal_parts
from kb.contribute.todo_marks import find_blanks
from kb.conversation import Conversation, begin, reply
from kb.conversation.acts import Act, Acted, acts_of
from kb.conversation.answers import is_answer, match_answer
from kb.conversation.asked import asked_in
from kb.conversation.bit_masks import number_asked
from kb.conversation.commands import to_command
from kb.conversation.done_steps import parse_done_step
from kb.conversation.facts import extract_facts
from kb.conversation.interpret import interpret, read_remark
from kb.conversation.known_commands import command_asked
from kb.conversation.language import language_of
from kb.conversation.naming import record_by_name
from kb.conversation.replies import answer_to
from kb.conversation.scope import clauses_of
from kb.conversation.speech import tool_turn
from kb.conversation.subject import is_of_the_field, is_question
from kb.conversation.suspects import suspect_named
from kb.conversation.terms import find_term
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.errors import IncidentError
from kb.evidence import collect
from kb.evidence.accelerators import (
    FAMILIES,
    hardware_of,
    names_family,
    products_in,
    required_hardware,
)
from kb.evidence.endings import ends_well, has_result, is_told_by_a_person, raises_doubt
from kb.evidence.facts import find_facts
from kb.evidence.glossary import translate
from kb.evidence.markers import MARKERS, Grade, grade_line
from kb.evidence.nature import is_human_written, is_log, shows_progress, stops_midway
from kb.evidence.notices import is_notice
from kb.evidence.paces import slowness_in
from kb.evidence.references import falls_short, lacks_some
from kb.evidence.remarks import is_remark
from kb.evidence.secrets import mask_secrets, without_secrets
from kb.evidence.setbacks import without_setbacks
from kb.evidence.stacks import read_stack
from kb.evidence.systems import systems_in
from kb.job.attribution import attribute_lines, prescan
from kb.job.exits import launcher_speaks, read_exits, reports_exit, starts_again
from kb.job.failures import classify
from kb.job.hostlists import missing_hosts, read_hosts, read_ranks
from kb.job.lines import Line
from kb.log import Block, Log
from kb.log.clean import clean_block, collapse_progress, escape_controls, strip_controls
from kb.log.layout import is_system_log, number_siblings, origin_of
from kb.log.lines import MAX_LINE_BYTES
from kb.log.mask import mask
from kb.log.prefixes import split_prefix
from kb.log.slots import find_slot
from kb.log.speakers import learn_labels, learn_way
from kb.log.timestamps import read_stamp
from kb.markdown import parse, read
from kb.questions import KnownEnvironment
from kb.questions.observe import PRINTED
from kb.questions.versions import fits
from kb.soft_breaks import join_soft_breaks
from kb.verdict import Verdict
from kb.views.prose import prose
from tui.prose import inline

pytestmark = pytest.mark.slow

_STEP = 4
"""How much longer each text is than the one before."""
_MAX_RATIO = 6
"""Of the seconds: 4 where time is linear and 16 where it is quadratic; a busy machine adds some."""
_SLACK_SECONDS = 0.0005
"""On top of it: below this, a clock tells little."""
_MEASURABLE_SECONDS = 0.0015
"""Where the shorter text takes as long as this, some times what a call takes without a text, no
longer ones are tried."""
_REPEATS = (1, 3, 10, 30)
"""How often both texts are read; more often where they seem to fail. The shortest time counts."""
_MAX_CHARACTERS = 8_000
_MAX_SHARE_OF_A_CALL = 40
"""How much longer a thousand short texts may take than the same in one: what a call takes without a
text counts a thousand times."""

_PIECES = """\
a¦A¦1¦12 ¦0.¦.¦, ¦;¦:¦-¦--a ¦_¦/¦\\¦|¦=¦== ¦#¦50% ¦@¦&amp;¦*a ¦+¦~¦?¦!¦"¦'¦"a ¦`a` ¦(¦)¦[¦]¦[[¦{¦<\
¦<>¦[](¦a-a-¦a.a.¦a1-¦a_¦a/¦/a¦/a/b:¦a: ¦a=b, ¦1.¦1/¦1-1,¦1:¦01:¦ab:¦10.0.0.1 ¦10.0.0.1:1¦0x1f \
¦deadbeef-¦://¦http://a:¦s3://¦a@b¦a@b.¦ab¦a b ¦    ¦. ¦but ¦ but¦not ¦no a ¦n't ¦also ¦with \
¦also with ¦on ¦i ¦i already ¦already ¦tried ¦1 node ¦2 nodes ¦node ¦NCCL 2.¦torch ¦why not \
¦fix of ¦the ¦(before ¦host: ¦host-¦from a1 ¦to ¦rack¦node-1,¦rank ¦[rank¦[rank1]: ¦rank=1 \
¦[1,0]<stderr>¦1: ¦worker ¦pid ¦pid=1 ¦(pid=1, ¦[default1]¦Nov 21 ¦2026-11-21 ¦10:10:10.\
¦I1121 10:10:10.1 ¦INFO ¦[ERROR] ¦srun: ¦error ¦0 errors ¦failed (exitcode: ¦segfault at \
¦Signal: ¦SignalException ¦DataLoader worker ¦task 1: ¦--local_rank=1 ¦last enqueued ¦1: a: <> \
¦cn[1-2],¦cn[1¦exit code ¦Xid (¦world_size ¦SeqNum=¦NCCL_A ¦token=¦_TOKEN¦password: ¦password\
¦secret_key¦bearer ¦auth¦login ¦curl -u ¦api key ¦aws¦eyJa¦sk-a-¦-----BEGIN A PRIVATE KEY-----\
¦-----BEGIN ¦MII¦File "a", ¦Traceback (¦1% ¦1/2 [¦没¦也¦上也会¦过你¦节点¦试过¦已经¦，¦。¦但¦é\
¦\u200b¦ß¦１"""
PIECES = (
    *_PIECES.split("¦"),
    "\t",
    "\n",
    "\n\n",
    "- a\n",
    "1. a\n",
    "> ",
    "\r",
    "1\r",
    "\x1b",
    "\x1b[",
)
FRAMES = (("", ""), ("", " y!"), ("x", ""))
"""What stands in front of a pump, and behind it; the pieces of a function have them in turn."""


PATH_MAX = 4_096
"""Bytes of a path on Linux."""


class Reader(msgspec.Struct, frozen=True):
    """A function, and what its texts are like."""

    read: Callable[[str], object]
    heads: tuple[str, ...] = ()
    """Further beginnings: behind these it reads on."""
    longest: int = _MAX_CHARACTERS
    """Characters of a text: whoever calls it cuts longer ones."""
    every: int = 1
    """Of the pieces each n-th is tried, where a text takes long."""


RECORD = Path("incidents/nccl/nccl-shm-too-small-container.md").read_text(encoding="utf-8")
INCIDENTS = [read(path) for path in sorted(Path("incidents/nccl").glob("*.md"))[:12]]


def _record(before: str, after: str = "\n") -> Callable[[str], object]:
    """Parse a record with a text put in behind a mark of it."""
    start, mark, end = RECORD.partition(before)
    assert mark

    def parse_it(text: str) -> None:
        with suppress(IncidentError):
            parse(f"{start}{mark}{text}{after}{end}")

    return parse_it


def _job(text: str) -> None:
    texts = ("[rank0]: step 1", f"[rank1]: {text}", "node-1: boom")
    lines = [Line("a.log", number, text, Grade.ERROR) for number, text in enumerate(texts, 1)]
    read_exits(attribute_lines({"a.log": lines}))


def _parts_of_a_path(text: str) -> str:
    """A path of these characters: the name of a directory has at most 255 bytes."""
    return "/".join(text[start : start + 250] for start in range(0, len(text), 250))


def _known_versions(text: str) -> None:
    header = INCIDENTS[0].header
    environment = msgspec.structs.replace(header.environment, frameworks={"nccl": f"<{text}"})
    changed = msgspec.structs.replace(header, environment=environment, fixed_in=())
    fits(msgspec.structs.replace(INCIDENTS[0], header=changed), {"nccl": text})


def _clusters(text: str) -> None:
    line = MainLine("a.log", 1, text)
    found = (Result(path, Verdict.UNKNOWN, None, None, line) for path in "ab")
    find_clusters(found, lambda _loss: None)


_MARKERS = set(range(len(MARKERS)))
_REQUESTS = ("我说", "why not ", "fix ", "what did i tell", "next")

FUNCTIONS: dict[str, Reader] = {
    "clean_block": Reader(lambda text: clean_block(text.encode())),
    "collapse_progress": Reader(lambda text: collapse_progress(text.encode() + b"\rx")),
    "strip_controls": Reader(strip_controls),
    "escape_controls": Reader(escape_controls),
    "mask": Reader(mask),
    "split_prefix": Reader(split_prefix),
    "read_stamp": Reader(read_stamp),
    "learn_way": Reader(lambda text: learn_way([text] * 4)),
    "learn_labels": Reader(lambda text: learn_labels([f"{text} rank = 3", f"rank 3 is {text}"])),
    "find_slot": Reader(lambda text: find_slot([f"{text}{n % 2} {text} {n}" for n in range(4)])),
    "origin_of": Reader(lambda text: origin_of(_parts_of_a_path(text)), longest=PATH_MAX),
    "is_system_log": Reader(is_system_log),
    "number_siblings": Reader(lambda text: number_siblings([text, f"{text}1"]), longest=PATH_MAX),
    "find_facts": Reader(lambda text: find_facts([text])),
    "systems_in": Reader(systems_in),
    "grade_line": Reader(lambda text: grade_line(text, _MARKERS)),
    "is_human_written": Reader(is_human_written),
    "ends_well": Reader(lambda text: ends_well([text])),
    "has_result": Reader(has_result),
    "falls_short": Reader(falls_short, ("accuracy 0.5 (previous ",)),
    "lacks_some": Reader(lambda text: lacks_some([text, text])),
    "is_remark": Reader(lambda text: [is_remark([text]), is_remark([text] * 4)]),
    "without_setbacks": Reader(lambda text: without_setbacks([f"part 3 failed {text}", text])),
    "is_notice": Reader(is_notice),
    "is_told_by_a_person": Reader(lambda text: is_told_by_a_person([text])),
    "raises_doubt": Reader(lambda text: [raises_doubt(text, ""), raises_doubt("", text)]),
    "is_log": Reader(lambda text: is_log([text])),
    "shows_progress": Reader(shows_progress),
    "stops_midway": Reader(stops_midway),
    "read_stack": Reader(
        lambda text: read_stack(f"Traceback (most recent call last):\n {text}\n{text}".encode(), 0)
    ),
    "translate": Reader(lambda text: translate(f"{text}超时")),
    "mask_secrets": Reader(mask_secrets, ("password",)),
    "without_secrets": Reader(lambda text: without_secrets({"HF_TOKEN": text, text: "x"}), every=5),
    "prescan": Reader(
        lambda text: prescan([Line("a.log", 1, text, Grade.ERROR)] * 3), longest=MAX_LINE_BYTES
    ),
    "attribute_lines": Reader(_job, ("Process name: [[",), MAX_LINE_BYTES),
    "reports_exit": Reader(reports_exit),
    "launcher_speaks": Reader(launcher_speaks),
    "starts_again": Reader(starts_again, ("rank 1 ", "restart ", "resume ", "run ")),
    "classify": Reader(lambda text: classify(text, Grade.FATAL), longest=MAX_LINE_BYTES),
    "missing_hosts": Reader(lambda text: missing_hosts({"node-1", text}, [text, "5 nodes"])),
    "read_ranks": Reader(read_ranks, longest=MAX_LINE_BYTES),
    "read_hosts": Reader(read_hosts, longest=MAX_LINE_BYTES),
    "neutral": Reader(lambda text: neutral(f"host: node-17\n{text}\nfrom {text[:300]}")),
    "is_host": Reader(is_host),
    "is_public": Reader(is_public),
    "literal_parts": Reader(lambda text: list(literal_parts([text]))),
    "find_blanks": Reader(lambda text: list(find_blanks([text]))),
    "find_clusters": Reader(_clusters),
    "tokenize": Reader(lambda text: list(tokenize(text))),
    "join_soft_breaks": Reader(join_soft_breaks),
    "prose": Reader(prose),
    "inline": Reader(inline),
    "parse: title": Reader(_record("\ntitle: ", " "), every=5),
    "parse: front matter": Reader(_record("---\n"), every=5),
    "parse: cause": Reader(_record("## Cause\n\n"), every=5),
    "parse: fix": Reader(_record("## Fix\n\n"), every=5),
    "parse: source": Reader(_record("\nSource: "), every=5),
    "parse: evidence": Reader(_record("```text\n"), every=5),
    "fits": Reader(_known_versions),
    "required_hardware": Reader(required_hardware),
    "hardware_of": Reader(lambda text: hardware_of([*products_in(text), text])),
    "names_family": Reader(lambda text: [names_family(family, text) for family in FAMILIES]),
    "PRINTED": Reader(lambda text: [pattern.search(text) for pattern in PRINTED.values()]),
    "is_answer": Reader(is_answer),
    "to_command": Reader(to_command, _REQUESTS),
    "clauses_of": Reader(clauses_of, ("if ", "没有", "on another ", "can't ")),
    "extract_facts": Reader(lambda text: extract_facts(text, INCIDENTS[:3], KnownEnvironment())),
    "tool_turn": Reader(lambda text: tool_turn(text, ())),
    "find_term": Reader(find_term, ("what is a ",)),
    "language_of": Reader(language_of),
    "asked_in": Reader(asked_in),
    "command_asked": Reader(
        command_asked, ("should I kill -9 ", "nvidia-smi ", "ipcrm ", "rm -rf ", "ipcrm -a "), 300
    ),
    "suspect_named": Reader(suspect_named),
    "is_question": Reader(is_question),
    "is_of_the_field": Reader(is_of_the_field),
    "number_asked": Reader(number_asked),
    "slowness_in": Reader(slowness_in, ("from 1 s to ", "steps: 1 instead of ")),
}

TALK: dict[str, Callable[[str, Conversation, KnowledgeBase], object]] = {
    "acts_of": lambda text, _conversation, _knowledge: acts_of(text),
    "match_answer": match_answer,
    "parse_done_step": parse_done_step,
    "interpret": interpret,
    "read_remark": read_remark,
    "answer_to": lambda text, conversation, knowledge: [
        answer_to(Acted(act, text), conversation, knowledge)
        for act in (Act.WHY_NOT, Act.SHOW_FIX, Act.CANNOT, Act.SUMMARISE, Act.OTHER)
    ],
    "record_by_name": record_by_name,
    "reply": lambda text, conversation, knowledge: reply(conversation, text, knowledge),
}
"""Functions of a message that look things up."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_time_is_linear_in_the_text(name: str) -> None:
    assert not _superlinear(FUNCTIONS[name], PIECES)


@pytest.mark.parametrize("name", TALK)
def test_time_is_linear_in_the_message(name: str, knowledge: KnowledgeBase) -> None:
    conversation = begin(diagnose(Log.from_text("NCCL timeout"), knowledge))
    reader = Reader(
        lambda text: TALK[name](text, conversation, knowledge),
        longest=4 * _MAX_CHARACTERS,
        every=6,
    )
    assert not _superlinear(reader, PIECES)


def test_many_names_are_made_neutral_in_linear_time() -> None:
    def replace_all(text: str) -> None:
        words = ("".join(letters) for letters in product("abcdefghij", repeat=4))
        neutral(" ".join(f"from {word}-7" for word, _ in zip(words, text, strict=False)))

    assert not _superlinear(Reader(replace_all, longest=4_000), ("a",))


def test_a_line_as_long_as_a_block_is_searched_in_linear_time(knowledge: KnowledgeBase) -> None:
    def search(text: str) -> None:
        block = Block(None, 1, 1, text.encode())
        collect([block], knowledge.signatures, knowledge.markers)

    assert not _superlinear(Reader(search, longest=1_000_000), ("错误", "error "))


def test_many_short_texts_are_masked_like_a_long_one() -> None:
    lines = [f"[rank{rank}]: RuntimeError: boom" for rank in range(1_000)]
    text = "\n".join(lines)
    each = Reader(lambda _text: without_secrets(lines))
    together = Reader(without_secrets)

    [one_by_one] = _seconds(each, [""], 3)
    [at_once] = _seconds(together, [text], 3)
    assert one_by_one < _MAX_SHARE_OF_A_CALL * at_once, (one_by_one, at_once)


def test_what_is_quadratic_is_noticed() -> None:
    assert _superlinear(Reader(re.compile("a*b").search), ("a",))
    assert not _superlinear(Reader(re.compile("a*").search), ("a",))


def _superlinear(reader: Reader, pieces: Sequence[str]) -> list[str]:
    """The pumps for which the function takes more than linear time, with the seconds."""
    reader.read("warm up")
    chosen = pieces[:: reader.every]
    pumps = [
        (head, piece, tail) for piece, (head, tail) in zip(chosen, cycle(FRAMES), strict=False)
    ]
    pumps += [(head, piece, "") for piece in chosen for head in reader.heads]
    found = (_growth(reader, *pump) for pump in pumps)
    return [growth for growth in found if growth]


def _growth(reader: Reader, head: str, piece: str, tail: str) -> str | None:
    def text(characters: int) -> str:
        return f"{head}{piece * (characters // len(piece))}{tail}"

    for characters in (reader.longest // _STEP, reader.longest):
        for repeats in _REPEATS:
            texts = [text(characters // _STEP), text(characters)]
            shorter, longer = _seconds(reader, texts, repeats)
            if longer <= _MAX_RATIO * shorter + _SLACK_SECONDS:
                break
        else:
            return f"{head}{piece!r}*n{tail}: {shorter:.4f} s, {_STEP}*n: {longer:.4f} s"
        if shorter >= _MEASURABLE_SECONDS:
            break
    return None


def _seconds(reader: Reader, texts: Sequence[str], repeats: int) -> list[float]:
    """CPU time of this process for each text: what else runs on the machine does not count.

    The texts take turns, since a busy neighbour makes the processor itself slower for a while.
    """
    times: list[list[float]] = [[] for _text in texts]
    gc.disable()
    for _repeat in range(repeats):
        for text, seconds in zip(texts, times, strict=True):
            start = time.process_time()
            reader.read(text)
            seconds.append(time.process_time() - start)
    gc.enable()
    return [min(seconds) for seconds in times]
