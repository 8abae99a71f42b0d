"""`kb lint` accepts what is shipped and says of a wrong file what, where and what to do."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import Run

FOUNDING = "gpt-fast-intra-node-comm-hang"
SOURCE = next(Path("incidents").glob(f"*/{FOUNDING}.md"))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    path = tmp_path / f"{FOUNDING}.md"
    path.write_text(SOURCE.read_text())
    return path


@pytest.mark.slow
@pytest.mark.xdist_group("lint")  # what the first one caches, the other one uses
def test_everything_shipped_passes(shipped_kb: Run) -> None:
    run = shipped_kb("lint")
    assert (run.returncode, run.stdout) == (0, b""), run.stdout.decode()
    assert b"0 problems" in run.stderr


def test_a_symptom_is_the_id_of_a_playbook(shipped_kb: Run, copy: Path) -> None:
    copy.write_text(copy.read_text().replace("symptoms: [", "symptoms: [no-such-playbook, ", 1))
    report = shipped_kb("lint", copy).stdout.decode()
    assert "error[IDS408]: unknown playbook `no-such-playbook`" in report
    assert f"{copy}:" in report


@pytest.fixture
def good(copy: Path) -> Path:
    """A file with nothing wrong: it leads to no record that the small installation lacks."""
    copy.write_text(without_distinctions(copy.read_text()))
    return copy


def without_distinctions(text: str) -> str:
    return re.sub(r"## Distinguish\n.*?(?=## Evidence)", "", text, flags=re.DOTALL)


def test_one_good_file_passes(kb: Run, good: Path) -> None:
    run = kb("lint", good)
    assert run.returncode == 0, run.stdout.decode()
    assert b"1 files checked" in run.stderr


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("## Cause", "## Because", "SHP106"),
        (f"id: {FOUNDING}", "id: another-name", "SHP112"),
        ("kind: incident", "kind: incident\nmood: bad", "SHP105"),
        ("kind: incident", 'kind: "incid\\x1bent"', "SHP116"),
        ("signatures:\n", 'signatures:\n- pattern: "a\\ab"\n  strength: weak\n', "SHP116"),
        ("title: ", 'title: "\\e[2J"\n# ', "SHP116"),
        ("signatures:\n", "signatures:\n- pattern: (\n  strength: weak\n  regex: true\n", "SHP105"),
        (
            "signatures:\n",
            "signatures:\n- pattern: (abc\n  strength: weak\n  regex: true\n",
            "SIG201",
        ),
        (
            "signatures:\n",
            "signatures:\n- pattern: twice\n  strength: weak\n" * 2,
            "SHP104",
        ),
        (
            "signatures:\n",
            "signatures:\n" + "- pattern: twice\n  strength: weak\n" * 2,
            "SIG202",
        ),
        ("signatures:\n", "signatures:\n- pattern: Error while\n  strength: strong\n", "SIG203"),
        ("## Distinguish\n\n", "## Distinguish\n\n- `no-such-record`: Is it?\n", "IDS402"),
        ("## Distinguish\n\n", f"## Distinguish\n\n- `{FOUNDING}`: Is it?\n", "IDS403"),
    ],
)
def test_wrong_file_is_reported_with_rule_place_and_help(
    kb: Run, copy: Path, old: str, new: str, code: str
) -> None:
    text = copy.read_text()
    assert old in text
    copy.write_text(text.replace(old, new, 1))
    run = kb("lint", copy)
    report = run.stdout.decode()
    assert run.returncode == 1, report
    assert f"error[{code}]" in report
    assert f"  --> {copy}:" in report
    assert "= help: " in report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("fixed_in:\n- system", "fixed_in: PyTorch 2.5, behind an option\nx-", "CLM951"),
        ("    pytorch: ", "    torchvision: some old one\n    pytorch: ", "CLM952"),
        ("Source: https://", "Said by somebody, see https://", "SHP111"),
        ("Source: https://", "Source: my cluster https://", "CLM953"),
        ("  date: 2026-", "  date: 2019-", "CLM954"),
        ("   pip install --up", "   rm -rf ~/.cache/torch; pip install --up", "CLM955"),
        ("   pip install --up", "   kubectl drain <node>; pip install --up", "CLM956"),
        ("```sh\n", "```python\n", "CLM956"),
    ],
)
def test_a_claim_that_nobody_can_check_is_reported(
    kb: Run, good: Path, old: str, new: str, code: str
) -> None:
    text = good.read_text()
    assert old in text
    if code == "CLM951":
        text = re.sub(r"fixed_in:\n(?:[- ] .*\n)+", f"{new.partition(chr(10))[0]}\n", text)
    good.write_text(text.replace(old, new, 1))
    report = kb("lint", good).stdout.decode()
    assert f"[{code}]" in report, report


def test_what_a_command_destroys_may_be_said(kb: Run, good: Path) -> None:
    text = good.read_text()
    destroys = text.replace("   pip install --up", "   rm -rf ~/.cache/torch; pip install --up", 1)
    said = destroys.replace("The fixed kernels", "All compiled kernels are lost. The fixed kernels")
    good.write_text(said)
    assert b"CLM955" not in kb("lint", good).stdout


@pytest.mark.slow
def test_distinction_without_its_counterpart_is_reported(kb: Run, copy: Path) -> None:
    link = "- `xid79-gpu-fallen-off-bus`: Does it hang without a message?"
    copy.write_text(copy.read_text().replace("## Distinguish\n", f"## Distinguish\n\n{link}", 1))
    assert b"IDS404" not in kb("lint", copy).stdout  # the other one is shipped, so not theirs
    shutil.copy(next(Path("incidents").glob("*/xid79-gpu-fallen-off-bus.md")), copy.parent)
    report = kb("lint", copy.parent).stdout.decode()
    assert "error[IDS404]: `xid79-gpu-fallen-off-bus` does not name" in report


def test_thief_is_named(kb: Run, copy: Path) -> None:
    theirs = next(Path("incidents").glob("*/xid79-gpu-fallen-off-bus.md")).read_text()
    evidence = theirs.split("## Evidence\n\n")[1].split("```\n")[0] + "```\n\n"
    copy.write_text(copy.read_text().replace("## Evidence\n\n", f"## Evidence\n\n{evidence}", 1))
    report = kb("lint", copy).stdout.decode()
    assert "error[EVD301]: this evidence ranks `xid79-gpu-fallen-off-bus` first" in report


def test_two_files_with_one_id_are_reported(kb: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{FOUNDING}.md").write_text(SOURCE.read_text())
    assert "error[IDS401]" in kb("lint", tmp_path).stdout.decode()


@pytest.mark.parametrize("name", ["missing.md", "empty"])
def test_nothing_to_check_is_wrong_use(kb: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    run = kb("lint", tmp_path / name)
    assert run.returncode == 2
    assert name.encode() in run.stderr


@pytest.mark.slow
def test_store_that_another_version_left_is_made_again(kb: Run, good: Path, tmp_path: Path) -> None:
    assert kb("lint", good, cache=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "lint" / "index.sqlite")) as connection:
        connection.execute("UPDATE meta SET value = 1 WHERE key = 'schema'")
        connection.execute("DROP TABLE tags")
        connection.commit()
    run = kb("lint", good, cache=tmp_path)
    assert (run.returncode, run.stdout) == (0, b""), run.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("signatures:\n", "signatures:\n- pattern: 'INFO '\n  strength: weak\n", "SIG204"),
        ("signatures:\n", "signatures:\n- pattern: NCCL INFO\n  strength: strong\n", "SIG204"),
        (
            "signatures:\n",
            "signatures:\n- pattern: loss.*is nan\n  strength: weak\n  regex: true\n",
            "SIG206",
        ),
        ("## Cause\n\n", "## Cause\n\nSee [this](file:///srv/wiki).\n\n", "IDS405"),
        ("## Cause\n\n", "## Cause\n\nSee [this](javascript:alert(1)).\n\n", "IDS405"),
        ("## Fix\n\n1. ", "## Fix\n\n1. Larger memory for everybody.\n\n1. ", "PRO601"),
        ("## Fix\n\n1. ", "## Fix\n\n1. Check the logs for errors.\n\n1. ", "PRO602"),
        ("## Verify\n\n", "## Verify\n\nTODO: how\n\n", "DFT501"),
        ("## Cause\n\n", f"## Cause\n\nRun with HF_TOKEN=hf_{'a1B2' * 9}.\n\n", "SEC801"),
        ("```text\n", "```text\ndgx-h100-042.hpc.corp: starting\n", "SEC802"),
        ("```text\n", "```text\nconnected to 52.14.3.9 port 29500\n", "SEC802"),
        ("```text\n", "```text\nmail of jane.doe@cluster.edu\n", "SEC802"),
    ],
)
def test_every_family_reports_what_is_wrong(
    kb: Run, copy: Path, old: str, new: str, code: str
) -> None:
    text = copy.read_text()
    assert old in text
    copy.write_text(text.replace(old, new, 1))
    run = kb("lint", "--format", "json", copy)
    found = {problem["code"]: problem for problem in json.loads(run.stdout)["problems"]}
    assert code in found
    is_wrong = any(problem["severity"] == "error" for problem in found.values())
    assert run.returncode == int(is_wrong)


@pytest.mark.slow
@pytest.mark.xdist_group("lint")
def test_signature_that_fires_on_many_records_is_reported(shipped_kb: Run, copy: Path) -> None:
    line = "- pattern: Error\n  strength: weak\n"
    copy.write_text(copy.read_text().replace("signatures:\n", f"signatures:\n{line}", 1))
    found = json.loads(shipped_kb("lint", "--format", "json", copy).stdout)["problems"]
    assert "SIG205" in {problem["code"] for problem in found}


def test_near_duplicate_shows_both_titles_and_why(kb: Run, copy: Path) -> None:
    other = copy.with_name("gpt-fast-copied.md")
    text = copy.read_text().replace(f"id: {FOUNDING}", "id: gpt-fast-copied")
    other.write_text(without_distinctions(text))
    copy.unlink()
    report = kb("lint", other).stdout.decode()
    assert f"error[DUP701]: this record nearly duplicates `{FOUNDING}`" in report
    assert report.count("gpt-fast speculative decoding with tensor parallelism freezes") >= 2
    assert "have the same meaning" in report or "evidence lines are the same" in report


def test_thief_among_the_checked_files_is_reported(kb: Run, copy: Path) -> None:
    theirs = next(Path("incidents").glob("*/xid79-gpu-fallen-off-bus.md")).read_text()
    thief = copy.with_name("thief.md")
    thief.write_text(
        theirs.replace("id: xid79-gpu-fallen-off-bus", "id: thief").replace(
            "aliases:\n", "aliases:\n- Xid 79 GPU has fallen off the bus, as everybody writes it\n"
        )
    )
    codes = re.findall(r"error\[(\w+)\]", kb("lint", thief).stdout.decode())
    assert {"EVD301", "EVD302"} & set(codes)


@pytest.mark.slow
def test_shared_line_without_caution_is_reported(shipped_kb: Run, tmp_path: Path) -> None:
    name = "pytorch-fsdp-flatten-mixed-dtype"
    source = next(Path("incidents").glob(f"*/{name}.md")).read_text()
    path = tmp_path / f"{name}.md"
    path.write_text(re.sub(r"caution: .*\n", "", source))
    assert "error[PRO603]" in shipped_kb("lint", path).stdout.decode()


def test_github_format_names_file_line_and_code_on_one_line(kb: Run, copy: Path) -> None:
    copy.write_text(copy.read_text().replace("## Cause", "## Be%cause"))
    lines = kb("lint", "--format", "github", copy).stdout.decode().splitlines()
    assert any(
        re.match(rf"::error file={re.escape(str(copy))},line=\d+,title=SHP106::", line)
        for line in lines
    )
    assert all(line.startswith("::error ") for line in lines)
    assert any("Be%25cause" in line for line in lines)


def test_control_characters_of_a_file_do_not_reach_the_terminal(kb: Run, copy: Path) -> None:
    copy.write_text(copy.read_text().replace("## Cause", "## Be\x1b[2Jcause"))
    assert b"\x1b" not in kb("lint", copy).stdout


@pytest.mark.slow
def test_fix_mends_form_doubles_secrets_and_names_and_keeps_every_word(kb: Run, copy: Path) -> None:
    good = copy.read_text()
    bad = good.replace("aliases:\n", "aliases:\n- same words\n- same words\n")
    bad = bad.replace("## Cause\n\n", "##   Cause\n\n\n\n")
    secret = f"to 52.14.3.9 HF_TOKEN=hf_{'a1B2' * 9}"
    copy.write_text(bad.replace("```text\n", f"```text\n{secret}\n", 1))
    run = kb("lint", "--fix", copy)
    said = run.stderr.decode()
    for change in ("canonical form", "duplicate entries", "secrets", "neutral"):
        assert change in said
    mended = copy.read_text()
    assert mended.count("same words") == 1
    assert "52.14.3.9" not in mended
    assert "a1B2" not in mended
    kept = mended.replace("- same words\n", "")
    assert [line for line in good.split("\n") if line not in kept] == []
    assert kb("lint", "--fix", copy).stderr.decode().count(str(copy)) == 0


def test_fix_leaves_a_file_alone_whose_words_it_could_not_keep(kb: Run, copy: Path) -> None:
    copy.write_text(
        copy.read_text().replace("kind: incident", "kind: incident  # ask the storage team")
    )
    before = copy.read_bytes()
    run = kb("lint", "--fix", copy)
    assert b"not changed" in run.stderr
    assert copy.read_bytes() == before


def test_fix_writes_through_a_link_and_keeps_who_may_read(kb: Run, copy: Path) -> None:
    link = copy.parent / "linked" / copy.name
    link.parent.mkdir()
    link.symlink_to(copy)
    copy.write_text(copy.read_text().replace("## Cause\n\n", "##   Cause\n\n\n\n"))
    copy.chmod(0o640)
    assert b"canonical form" in kb("lint", "--fix", link).stderr
    assert link.is_symlink()
    assert copy.stat().st_mode & 0o777 == 0o640


def test_fix_needs_to_be_told_what_it_may_rewrite(kb: Run) -> None:
    run = kb("lint", "--fix")
    assert run.returncode == 2
    assert b"kb lint --fix PATH" in run.stderr
