"""What a contributor and a team follow: pages, template, hook, workflow, `kb diff`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from kb.contribute.lint import ALL_RULES
from kb.contribute.pages import FAMILIES, pages
from tests.conftest import Run
from tests.e2e.conftest import Small

pytestmark = pytest.mark.slow


DOCS = Path("docs")
LOG = """\
2026-11-20 22:14:24 INFO train.main: step 1190 loss 2.102 lr 2.9e-04 tokens/s 40098
22:14:31 ERROR zarrstream.reader: chunk c/118/4 of s3://lake/t.zarr failed its crc32c check
Traceback (most recent call last):
  File "/home/mwang/llm/train.py", line 208, in main
    batch = next(loader)
zarrstream.errors.ShardCorruptError: shard 118 has 1 corrupt chunks; host dgx-h100-042.hpc.corp
"""
WRITTEN = {
    "systems: [todo]": "systems: [datasets]",
    "https://TODO:where-the-facts-come-from": "https://example.org/zarrstream/issues/7",
    r"'?TODO: which GPUs.*": "any",
    r"'TODO: the symptom as.*": "zarr shard is corrupt",
    r"^1\. TODO:.*": "1. Upload the shard that the message names again.",
    r"title: .*": "title: zarrstream stops with ShardCorruptError, as an upload was cut off",
    r"TODO: the mechanism.*": "The rest of a chunk whose upload was cut off reads as zeros.",
    r"TODO: .*": "Training stops at the same step after each restart.",
}
"""What a contributor writes in the place of the marks."""


def test_pages_and_schema_are_what_the_rules_say() -> None:
    written = pages()
    there = {str(path.relative_to(DOCS)) for path in DOCS.glob("lint/*.md")}
    assert there == {name for name in written if name.startswith("lint/")}
    for name, text in written.items():
        assert (DOCS / name).read_text() == text, "run: python -m kb.contribute.pages docs"


def test_every_page_has_a_wrong_and_a_right_example() -> None:
    for path in DOCS.glob("lint/???[0-9]*.md"):
        text = path.read_text()
        assert "\nWrong" in text, path
        assert "\nRight" in text, path
        assert text.count("```") % 2 == 0, path


def test_every_code_in_the_program_has_a_page_and_a_family() -> None:
    source = "".join(path.read_text() for path in Path("kb").glob("**/*.py"))
    codes = set(re.findall(r"\"([A-Z]{3}\d{3})\"", source))
    assert codes == {path.stem for path in DOCS.glob("lint/*.md")} - {"README"}
    assert {code[:3] for code in codes} == set(FAMILIES)
    assert len({rule.code for rule in ALL_RULES}) == len(ALL_RULES)


def test_schema_accepts_what_is_shipped_and_names_what_is_wrong() -> None:
    validators = {
        kind: jsonschema.Draft202012Validator(
            json.loads((DOCS / f"{kind}.schema.json").read_text())
        )
        for kind in ("incident", "check", "playbook")
    }
    for path in sorted(Path("incidents").glob("*/*.md")):
        header = yaml.load(path.read_text().split("---\n")[1], Loader=yaml.CBaseLoader)
        for pattern in (*header.get("signatures", []), *header.get("lines", [])):
            if "regex" in pattern:
                pattern["regex"] = pattern["regex"] == "true"
        if header["kind"] == "check":
            header["cost"]["seconds"] = int(header["cost"]["seconds"])
            for flag in ("in_log", "alike"):
                header[flag] = header.get(flag) == "true"
        validator = validators.get(header["kind"], validators["incident"])
        assert list(validator.iter_errors(header)) == [], path
    for validator in validators.values():
        assert list(validator.iter_errors({"id": "a b", "mood": "bad"}))


def test_template_only_waits_to_be_written(kb: Run, tmp_path: Path) -> None:
    path = tmp_path / "template.md"
    path.write_text((DOCS / "examples/template.md").read_text())
    found = json.loads(kb("lint", "--format", "json", path).stdout)["problems"]
    assert {problem["code"] for problem in found} <= {"DFT501", "IDS404"}
    assert len(found) > 10


def test_from_a_log_to_a_record_that_is_found_first(kb: Run, tmp_path: Path) -> None:
    log, team = tmp_path / "job.log", tmp_path / "team"
    log.write_text(LOG)
    team.mkdir()
    path = team / "zarrstream-shard-cut-off.md"
    assert kb("new", "--from-log", log, "-o", path).returncode == 0
    text = path.read_text()
    for blank, words in WRITTEN.items():
        text = re.sub(blank.replace("[", r"\["), words, text, flags=re.MULTILINE)
    path.write_text(text)
    run = kb("lint", "--fix", path)
    assert run.returncode == 0, run.stdout.decode()
    answer = json.loads(kb("ask", "--json", "-f", log, "--incidents", team).stdout)
    assert answer["verdict"] == "match"
    assert answer["matches"][0]["id"] == path.stem


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A repository of incidents with one record, as `origin/main` has it."""
    records = tmp_path / "incidents"
    records.mkdir()
    name = "nccl-shm-too-small-container"
    shipped = next(Path("incidents").glob(f"*/{name}.md")).read_text()
    # It leads to records that the small installation does not have.
    alone = re.sub(r"## Distinguish\n.*?(?=## Evidence)", "", shipped, flags=re.DOTALL)
    (records / f"{name}.md").write_text(alone)
    (records / "README.md").write_text("# Ours\n")
    _git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "first")
    _git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    return tmp_path


def _git(directory: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Team", "-c", "user.email=team@example.org")
    subprocess.run(["git", "-C", directory, *who, *arguments], check=True, capture_output=True)


def test_workflow_checks_a_repository_of_incidents(team: Path, small_installation: Small) -> None:
    """Its own `kb` commands, on a change that spoils a record."""
    workflow = yaml.safe_load((DOCS / "examples/incidents.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    lint, diff = (run for run in steps if run.startswith("kb "))
    variables = {**workflow["env"], "BASE": "origin/main"}
    shell = f'kb() {{ "{sys.executable}" -m kb "$@"; }}; set -o pipefail; '

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", shell + command],
            cwd=team,
            env=small_installation.environment(**variables),
            capture_output=True,
            text=True,
        )

    checked = run(lint)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert run(diff).stdout.splitlines()[0] == "records: 0 added, 0 changed, 0 removed"
    record = next((team / "incidents").glob("nccl*.md"))
    spoilt = re.sub(r"signatures:\n.*?(?=references:)", "", record.read_text(), flags=re.DOTALL)
    record.write_text(re.sub(r"(?<=## Symptom\n\n).*?(?=\n\n## )", "?", spoilt, flags=re.DOTALL))
    compared = run(diff)
    assert "records: 0 added, 1 changed, 0 removed" in compared.stdout
    assert compared.returncode == int("worse: " in compared.stdout)
    assert (team / "ranking.txt").read_text() == compared.stdout


def test_diff_shows_what_a_thief_does_to_others(kb: Run, tmp_path: Path) -> None:
    """Against a directory: the records as they were."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    victim = next(Path("incidents").glob("*/xid79-gpu-fallen-off-bus.md")).read_text()
    thief = victim.replace("id: xid79-gpu-fallen-off-bus", "id: thief")
    (after / "thief.md").write_text(thief)
    (after / "xid79-gpu-fallen-off-bus.md").write_text(
        re.sub(r"signatures:\n.*?(?=fixed_in:|references:)", "", victim, flags=re.DOTALL)
    )
    run = kb("diff", before, "--incidents", after)
    text = run.stdout.decode()
    assert run.returncode == 1, text
    assert "worse: xid79-gpu-fallen-off-bus" in text
    assert "before  position 1" in text
    assert "`thief` is first" in text
    assert "new: thief" in text
    assert "records: 1 added, 1 changed, 0 removed" in text


def test_diff_with_a_base_that_is_none_is_one_sentence(kb: Run) -> None:
    run = kb("diff", "no-such-revision")
    assert run.returncode == 2
    assert b"no-such-revision" in run.stderr
    assert b"Traceback" not in run.stderr


def test_hook_takes_records_and_no_other_pages() -> None:
    (hook,) = yaml.safe_load(Path(".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "kb lint"
    for name, is_record in {"incidents/a/b.md": True, "incidents/README.md": False}.items():
        taken = re.search(hook["files"], name) and not re.search(hook["exclude"], name)
        assert bool(taken) is is_record


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A team's records under git, with what a hostile repository brings along."""
    records = tmp_path / "repository" / "incidents"
    records.mkdir(parents=True)
    text = next(Path("incidents").glob("*/xid79-gpu-fallen-off-bus.md")).read_text()
    (records / "team.md").write_text(text.replace("id: xid79-gpu-fallen-off-bus", "id: team"))
    (records / "absolute.md").symlink_to("/etc/hostname")
    (records / "outside.md").symlink_to("../../../outside.md")
    (records / "folder").symlink_to("/")
    (records / ".gitattributes").write_text("*.md filter=odd diff=odd text\n")
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(records)]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*run, *arguments], check=True, capture_output=True)
    return records


def test_diff_leaves_out_links_that_lead_anywhere(kb: Run, repository: Path) -> None:
    run = kb("diff", "HEAD", "--incidents", repository)
    assert b"Traceback" not in run.stderr
    assert run.returncode == 0, run.stderr
    assert b"records: 0 added, 0 changed, 0 removed" in run.stdout


def test_diff_runs_nothing_that_a_repository_configures(
    kb: Run, repository: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    script = f"touch {mark}; cat"
    hook = tmp_path / "hooks" / "post-index-change"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)
    for key, value in {
        "core.fsmonitor": f"touch {mark}; false",
        "core.hooksPath": str(hook.parent),
        "filter.odd.smudge": script,
        "filter.odd.clean": script,
        "diff.odd.textconv": script,
    }.items():
        subprocess.run(["git", "-C", str(repository), "config", key, value], check=True)
    run = kb("diff", "HEAD", "--incidents", repository)
    assert run.returncode == 0, run.stderr
    assert not mark.exists()


def test_diff_takes_no_repository_that_lies_among_the_files(kb: Run, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    run = kb("diff", "HEAD", "--incidents", bare)
    assert run.returncode == 2
    assert b"neither a directory nor a git revision" in run.stderr
