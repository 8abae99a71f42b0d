"""Every row of every file of rules does what it says, through the functions that use it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from index.signatures import Scanner
from kb.contribute.lint.prose import says_what_to_do
from kb.conversation.scope import Scope, scope_of
from kb.diagnosis.scan import scan_log
from kb.evidence.accelerators import (
    FAMILIES,
    GENERATIONS,
    hardware_of,
    names_family,
    products_in,
    required_hardware,
)
from kb.evidence.endings import has_result, is_told_by_a_person, says_end
from kb.evidence.facts import find_facts
from kb.evidence.glossary import translate
from kb.evidence.marked import MarkedBlock
from kb.evidence.markers import DOUBTS, MARKER_PATTERNS, Grade, grade_line
from kb.evidence.notices import is_notice
from kb.evidence.reasons import reasons_in
from kb.evidence.secrets import mask_secrets
from kb.evidence.setbacks import is_overcome, without_setbacks
from kb.evidence.systems import alternatives, full_names
from kb.job.attempt import Attempt
from kb.job.attribution import attribute_lines, prescan
from kb.job.differences import find_differences
from kb.job.exits import read_exits, starts_again
from kb.job.failures import classify
from kb.job.lines import Line
from kb.llm.phrase import gives_order
from kb.log import Block, Log
from kb.log.layout import origin_of
from kb.log.mask import mask
from kb.log.prefixes import split_prefix
from kb.log.speakers import learn_way
from kb.log.timestamps import Stamp, read_stamp
from kb.rules import RuleError, convert_row, host_pattern, read_rows, read_words
from kb.rules.rows import (
    Accelerator,
    Column,
    Doubt,
    Ended,
    Ending,
    ExitBlock,
    ExitReport,
    Export,
    Failure,
    Generation,
    Host,
    Layout,
    Marker,
    Mask,
    Notice,
    Prefix,
    Reason,
    Result,
    Rule,
    Secret,
    Setback,
    Speaker,
    System,
    Time,
    Token,
    Trigger,
    Version,
    Wrapper,
)

TIMES = [row for table in ("date", "epoch", "clock") for row in read_rows("times", table, Time)]
ELAPSED = read_rows("times", "elapsed", Time)


def each(*rows: Rule) -> Any:
    return pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in rows])


def iso(stamp: Stamp) -> str:
    """A time without the parts that its line leaves out."""
    if stamp.is_elapsed:
        return f"{stamp.moment.timestamp():.2f} s"
    text = f"{stamp.moment:%Y-%m-%dT%H:%M:%S}"
    if not stamp.has_date:
        return text.partition("T")[2]
    return text if stamp.has_year else text.partition("-")[2]


@each(*TIMES, *ELAPSED)
def test_a_time_is_read(row: Time) -> None:
    for example in row.examples:
        stamp = read_stamp(example)
        assert stamp is not None, example
        assert iso(stamp) == row.yields, example
    for example in row.not_examples:
        stamp = read_stamp(example)
        assert stamp is None or iso(stamp) != row.yields, example


@each(*TIMES)
def test_a_time_is_taken_off_a_line(row: Time) -> None:
    for example in row.examples:
        for line in (f"{example} boom", f"[{example}] boom", f"{example}: boom"):
            assert split_prefix(line).text == "boom", line
        assert split_prefix(f"{example} [rank3]: boom").rank == 3
    for example in row.not_examples:
        assert split_prefix(example).text == example


@each(*read_rows("times", "date", Time), *read_rows("times", "clock", Time))
def test_a_time_is_masked(row: Time) -> None:
    for example in row.examples:
        assert mask(f"since {example} for") == "since <time> for"
        assert mask(f"since [{example}] for") == "since [<time>] for"


@each(*read_rows("hosts", "host", Host))
def test_a_host_is_a_host(row: Host) -> None:
    for example in row.examples:
        assert re.fullmatch(host_pattern(row.name), example)
    for example in row.not_examples:
        assert not re.fullmatch(host_pattern(row.name), example)


@each(*read_rows("hosts", "no_host", Host))
def test_a_word_that_looks_like_a_host_is_none(row: Host) -> None:
    no_host = re.compile(host_pattern(row.name), re.IGNORECASE)
    for example in row.examples:
        assert re.fullmatch(host_pattern("host_name"), example)
        assert no_host.fullmatch(example)
    for example in row.not_examples:
        assert not no_host.fullmatch(example)


@each(*read_rows("prefixes", "prefix", Prefix))
def test_a_prefix_is_taken_off(row: Prefix) -> None:
    for example in row.examples:
        said = split_prefix(example)
        assert (said.text, said.rank, said.host) == (
            row.yields.text,
            row.yields.rank,
            row.yields.host,
        ), example
    for example in row.not_examples:
        assert split_prefix(example).text == example


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name)
        for array in ("export", "table")
        for row in read_rows("exports", array, Export)
    ],
)
def test_an_export_is_unwrapped(row: Export) -> None:
    for example in row.examples:
        (block,) = Log.from_text(example).blocks()
        assert block.data.decode().rstrip("\n") == row.yields, example
        said = split_prefix(row.yields)
        assert said.text == "boom"
    for example in row.not_examples:
        (block,) = Log.from_text(example).blocks()
        assert block.data.decode() == example


@each(*read_rows("values", "own", Rule))
def test_a_value_that_each_rank_may_have_is_not_compared(row: Rule) -> None:
    for example in row.examples:
        assert not has_a_difference(example), example
    for example in row.not_examples:
        assert has_a_difference(example), example


def has_a_difference(name: str) -> bool:
    files = {
        f"rank_{rank}.log": [Line(f"rank_{rank}.log", 1, f"{name}={value}", Grade.CONTEXT)]
        for rank, value in enumerate((7, 7, 6, 7))
    }
    attempt = Attempt(attribute_lines(files).lines, [])
    return bool(find_differences(attempt))


@each(*read_rows("masks", "mask", Mask))
def test_a_detail_is_masked(row: Mask) -> None:
    assert tuple(map(mask, row.examples)) == row.yields
    for example in row.not_examples:
        assert mask(example) == example


MARKERS = read_rows("markers", "marker", Marker)


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    return Scanner(MARKER_PATTERNS, first_only=False)


@each(*MARKERS)
def test_a_marker_fires_and_weighs(row: Marker, scanner: Scanner) -> None:
    for example in row.examples:
        fired = {number for number, _end in scanner.scan(example.encode())}
        assert MARKERS.index(row) in fired, example
        grade = Grade[(row.yields or row.grade).upper().replace("-", "_")]
        assert grade_line(example, fired) is grade, example
    for example in row.not_examples:
        fired = {number for number, _end in scanner.scan(example.encode())}
        assert MARKERS.index(row) not in fired, example


@each(*read_rows("systems", "system", System))
def test_a_system_is_found(row: System) -> None:
    for example in row.examples:
        assert row.name in find_facts([example]).systems, example
    for example in row.not_examples:
        assert row.name not in find_facts([example]).systems, example
    for short in row.short_names:
        assert full_names()[short] == row.name
    assert any(row.name in group for group in alternatives()) is bool(row.way_of)


@each(*read_rows("systems", "version", Version))
def test_a_version_is_read(row: Version) -> None:
    assert row.name in {
        "driver",
        "python",
        *(s.name for s in read_rows("systems", "system", System)),
    }
    for example, version in zip(row.examples, row.yields, strict=True):
        assert find_facts([example]).versions[row.name] == version


@each(*FAMILIES)
def test_a_family_of_accelerators_is_named(row: Accelerator) -> None:
    for example in row.examples:
        assert names_family(row, example)
    for product in row.products:
        assert row.name in hardware_of(products_in(product)).families, product
    assert sum(family.share for family in FAMILIES) == pytest.approx(1)


@each(*GENERATIONS)
def test_a_generation_of_accelerators_is_named(row: Generation) -> None:
    for example in row.examples:
        assert row.name in required_hardware(example).generations, example
    for product in row.products:
        assert hardware_of(products_in(product)).generations == {row.name}, product


@each(*read_rows("failures", "wrapper", Wrapper))
def test_a_wrapper_is_known(row: Wrapper) -> None:
    for example in row.examples:
        assert re.search(row.pattern, example), example


@each(*read_rows("reasons", "reason", Reason))
def test_a_reason_is_told_from_the_others(row: Reason) -> None:
    for example in row.examples:
        assert reasons_in(example) == {row.name}, example


@each(*read_rows("scope", "trigger", Trigger))
def test_a_trigger_sets_the_scope(row: Trigger) -> None:
    for example in row.examples:
        assert scope_of(example) is Scope(row.scope), example
    for example in row.not_examples:
        assert scope_of(example) is not Scope(row.scope), example


@each(*read_rows("scope", "lookalike", Rule))
def test_what_looks_like_a_trigger_is_none(row: Rule) -> None:
    for example in row.examples:
        assert re.search(row.pattern, example, re.IGNORECASE), example
        assert scope_of(example) is Scope.AFFIRMED, example


def test_every_file_is_read_here() -> None:
    files = {file.stem for file in Path("kb/rules").glob("*.toml")}
    assert files - {"glossary"} == set(
        re.findall(r'read_(?:rows|words)\(\s*"(\w+)"', Path(__file__).read_text())
    )


def test_every_term_of_the_glossary_is_told_in_english() -> None:
    sections = tomllib.loads(Path("kb/rules/glossary.toml").read_text(encoding="utf-8"))
    for terms in sections.values():
        for term, words in terms.items():
            assert translate(f"训练{term}").endswith(words)


def test_each_verb_begins_a_step_and_an_order() -> None:
    orders = [f"{verb.capitalize()} the job." for verb in read_words("verbs", "verbs")]
    assert [order for order in orders if not says_what_to_do(order)] == []
    assert [order for order in orders if not gives_order(order)] == []


def test_each_condition_may_precede_the_verb() -> None:
    steps = [
        f"{word.capitalize()} that restart the job." for word in read_words("verbs", "conditions")
    ]
    assert [step for step in steps if not says_what_to_do(step)] == []


@each(*read_rows("speakers", "speaker", Speaker))
def test_the_way_of_a_logger_is_learned(row: Speaker) -> None:
    for example in row.examples:
        lines = [f"{example.replace('RANK', str(n % 4))} {n}" for n in range(40)]
        way = learn_way(lines)
        assert way is not None
        assert way.pattern.pattern == row.pattern or "rank" in example
        assert [way.rank(line) for line in lines[:4]] == [0, 1, 2, 3], example
        assert (learn_way(lines[::4]) is not None) is row.alone


@each(*read_rows("layouts", "rank", Layout))
def test_the_name_of_a_file_tells_its_rank(row: Layout) -> None:
    for example in row.examples:
        found = origin_of(example)
        assert (found.rank, found.local_rank, found.attempt) == (
            row.yields.rank,
            row.yields.local_rank,
            row.yields.attempt,
        ), example


@each(*read_rows("layouts", "attempt", Layout))
def test_the_directory_of_a_file_tells_its_attempt(row: Layout) -> None:
    for example in row.examples:
        assert origin_of(example).attempt == row.yields.attempt, example
    for example in row.not_examples:
        assert origin_of(example).attempt is None, example


@each(*read_rows("layouts", "host", Layout))
def test_the_name_of_a_file_tells_its_host(row: Layout) -> None:
    for example in row.examples:
        assert origin_of(example).host == row.yields.host, example
    for example in row.not_examples:
        assert origin_of(example).host is None, example


def lines_kept_of(text: str, scanner: Scanner) -> list[Line]:
    """What a job keeps of a long log that holds the text in its middle."""
    calm = "".join(f"step {step} loss 2.31\n" for step in range(30_000))
    return scan_log(Log.from_text(f"{calm}{text}\n{calm}"), Scanner([]), scanner).files[""]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name)
        for table, kind in (("exit", ExitReport), ("block", ExitBlock))
        for row in read_rows("exits", table, kind)
    ],
)
def test_a_report_of_an_exit_is_kept_and_read(
    row: ExitReport | ExitBlock, scanner: Scanner
) -> None:
    for example in row.examples:
        kept = lines_kept_of(example, scanner)
        assert {line.text for line in kept} >= set(example.split("\n")), example
        reports = [line for line in kept if not line.text.startswith("step")]
        assert prescan(reports).several
        (found,) = read_exits(attribute_lines({"": kept}))
        told = {name: getattr(found, name) for name in Ended.__struct_fields__}
        assert Ended(**told) == row.yields


@each(*read_rows("exits", "launcher", Rule))
def test_a_file_of_a_launcher_may_hold_several_ranks(row: Rule) -> None:
    for example in row.examples:
        assert prescan([Line(None, 1, example, Grade.CONTEXT)]).several, example
    for example in row.not_examples:
        assert not prescan([Line(None, 1, example, Grade.CONTEXT)]).several, example


@each(*read_rows("exits", "restart", Rule))
def test_a_restart_is_told(row: Rule) -> None:
    for example in row.examples:
        assert starts_again(example), example
    for example in row.not_examples:
        assert not starts_again(example), example


@each(*read_rows("endings", "ending", Ending))
def test_an_ending_says_that_the_work_is_done(row: Ending) -> None:
    for example in row.examples:
        assert says_end(example), example
    for example in row.not_examples:
        assert not says_end(example), example


@each(*read_rows("endings", "result", Result))
def test_a_result_is_left_behind(row: Result) -> None:
    for example in row.examples:
        assert has_result(example), example
    for example in row.not_examples:
        assert not has_result(example), example


@each(*read_rows("setbacks", "setback", Setback))
def test_a_setback_is_answered_by_a_later_line(row: Setback) -> None:
    for example in row.examples:
        lines = example.split("\n")
        assert is_overcome(row, lines, 0), example
        assert without_setbacks(lines) == ["", *lines[1:]], example
        assert without_setbacks(lines[:1]) is None, example
    for example in row.not_examples:
        assert without_setbacks(example.split("\n")) is None, example


@each(*read_rows("endings", "notice", Notice))
def test_a_notice_raises_no_doubt_and_nobody_says_it(row: Notice, scanner: Scanner) -> None:
    for example in row.examples:
        block = MarkedBlock(Block(None, 1, 1, example.encode()), scanner.scan(example.encode()))
        assert is_notice(example), example
        assert not block.doubts(), example
        assert not is_told_by_a_person([example]), example
    for example in row.not_examples:
        assert not is_notice(example), example


@each(*read_rows("endings", "doubt", Doubt))
def test_a_doubt_is_raised_and_is_no_evidence(row: Doubt, scanner: Scanner) -> None:
    def block(text: str) -> MarkedBlock:
        return MarkedBlock(Block(None, 1, 1, text.encode()), scanner.scan(text.encode()))

    for example in row.examples:
        assert block(example).doubts(), example
        assert block(example).finals() or not row.final, example
    for example in row.not_examples:
        found = block(example)
        assert not (found.finals() if row.final else found.doubts()), example
    assert all(number not in DOUBTS for text in row.examples for number, _ in block(text).marks)


@each(*read_rows("failures", "failure", Failure))
def test_a_failure_is_told_of_its_rank(row: Failure, scanner: Scanner) -> None:
    for example in row.examples:
        fired = {number for number, _end in scanner.scan(example.encode())}
        found = classify(example, grade_line(example, fired))
        assert found is not None, example
        role = found.role.name.lower()
        assert (found.kind, role) == (row.kind, re.sub(r"\W", "_", row.role)), example


@each(
    *read_rows("secrets", "secret", Secret),
    *read_rows("secrets", "column", Column),
    *read_rows("secrets", "token", Token),
)
def test_a_secret_is_masked_and_the_rest_is_left(row: Secret | Column | Token) -> None:
    shown = row.shown if isinstance(row, Secret) and row.shown else row.name
    for example in row.examples:
        marked = example.replace("·", "")
        masked = re.sub(
            "‹([^›]*)›",
            lambda secret: "\n".join([f"<secret: {shown}>"] * (secret[1].count("\n") + 1)),
            marked,
        )
        assert mask_secrets(re.sub("[‹›]", "", marked)) == masked
        assert mask_secrets(masked) == masked
    for example in row.not_examples:
        assert mask_secrets(example) == example


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"grade": "bad"}, "grade"),
        ({"colour": "red"}, "colour"),
        ({"pattern": "{nothing}"}, "nothing"),
        ({"examples": "not a list"}, "examples"),
    ],
)
def test_a_wrong_row_is_named(change: dict[str, Any], said: str) -> None:
    row = {"name": "tray", "pattern": "jammed", "grade": "error", "examples": ["jammed"]}
    with pytest.raises(RuleError, match=f"markers.toml, row 'tray': .*{said}"):
        convert_row("markers", row | change, Marker)


def test_the_rows_in_the_documentation_are_right() -> None:
    kinds = {
        "prefix": ("prefixes", Prefix),
        "exit": ("exits", ExitReport),
        "date": ("times", Time),
        "marker": ("markers", Marker),
        "token": ("secrets", Token),
        "secret": ("secrets", Secret),
        "column": ("secrets", Column),
    }
    shown = re.findall(r"```toml\n(.*?)```", Path("docs/rules.md").read_text(), re.DOTALL)
    tables = [tables for text in shown for tables in tomllib.loads(text).items()]
    assert {table for table, _rows in tables} == kinds.keys()
    for table, (row,) in tables:
        file, kind = kinds[table]
        rule = convert_row(file, row, kind)
        plain = [re.sub("[‹›·]", "", example) for example in rule.examples]
        assert all(re.search(rule.pattern, example) for example in plain)
