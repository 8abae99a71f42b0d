"""What agents are told and answered, through the SDK's own client in one process: budgets, errors
that can be corrected, hostile calls, files below roots only, and no secret in anything."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import ListRootsResult, Root

from kb.conversation import begin
from kb.errors import KbError
from kb.log import Log
from kb.serve.brief import MAX_TOKENS, tokens
from kb.serve.cases import MAX_CASES, Case, Cases
from kb.serve.listen import Address, listen, read_address
from kb.serve.mcp import definitions, mcp_server
from kb.serve.token import token_of_environment
from kb.serve.tools import MAX_TEXT_CHARACTERS, TOOLS
from kb.service.service import Service
from kb.service.wire import to_answer
from kb.settings import Settings
from tests.conftest import environment

MAX_DEFINITION_TOKENS = 2_500
TOKEN = "hf_" + "a1B2c3" * 6
"""Made here: it is not real."""
SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"
DF = (
    "Filesystem      Size  Used Avail Use% Mounted on\n"
    "shm              64M   64M     0 100% /dev/shm\n"
)
HANG = "my job hangs at the first all reduce"

pytestmark = pytest.mark.xdist_group("service")


@pytest.fixture(scope="module")
def service(built_cache: Path) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(built_cache).items():
            patch.setenv(name, value)
        with Service(Settings()) as opened:
            yield opened


def client(service: Service, *roots: Path, announced: tuple[Path, ...] | None = None) -> Client:
    """The SDK's, connected to the server as over stdio."""

    async def list_roots(_context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=root.as_uri()) for root in announced or ()])

    server = mcp_server(service, roots, ask_client=True)
    return Client(server, list_roots_callback=list_roots if announced is not None else None)


async def told(agent: Client, tool: str, **arguments: Any) -> str:
    """What a tool answers, which is no error."""
    result = await agent.call_tool(tool, arguments)
    text = str(result.content[0].text)
    assert not result.is_error, text
    return text


async def answered(agent: Client, tool: str, **arguments: Any) -> Any:
    return json.loads(await told(agent, tool, **arguments))


async def refused(agent: Client, tool: str, **arguments: Any) -> str:
    """The error of a call, which says what is allowed and shows a call that is right."""
    result = await agent.call_tool(tool, arguments)
    text = str(result.content[0].text)
    assert result.is_error, text
    sentence, allowed, example = text.rsplit("\n", 2)
    assert allowed.startswith("Allowed: ")
    name, _, shown = example.removeprefix("Example: ").partition(" ")
    TOOLS[name].read(json.loads(shown))
    return sentence


def test_the_definitions_are_those_of_the_documentation_and_within_the_budget() -> None:
    written = json.loads(Path("docs/mcp.json").read_text(encoding="utf-8"))
    assert written == definitions(), (
        "docs/mcp.json is not what is served; run: make mcp-definitions"
    )
    assert tokens(written) <= MAX_DEFINITION_TOKENS
    assert [tool["name"] for tool in written["tools"]] == [
        *("diagnose", "read_output", "next_check", "search", "get_record", "draft_record")
    ]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_the_example_of_a_tool_is_a_call_of_it(tool: Any) -> None:
    assert isinstance(tool.read(tool.example), tool.arguments)


async def test_a_case_goes_from_a_symptom_over_a_check_to_its_fix(service: Service) -> None:
    async with client(service) as agent:
        opened = await answered(agent, "diagnose", text="NCCL fails, something with shared memory")
        step = await answered(agent, "next_check", case=opened["case"])
        assert step["next"]["command"]
        assert step["findings"][0]["means"]
        read = await answered(agent, "read_output", case=opened["case"], text=DF)
        assert read["observations"][0]["check"] == "df-shm"
        assert read["observations"][0]["cite"] == "check://df-shm#Findings"
        before = {match["id"]: match["confidence"] for match in opened.get("matches", ())}
        best = read["matches"][0]
        assert "shm" in best["id"]
        assert best["confidence"] > before.get(best["id"], 0)


async def test_next_check_gives_the_fix_of_a_match(service: Service) -> None:
    log = Path("benchmarks/samples/nccl-shm.log").read_text(encoding="utf-8")
    async with client(service) as agent:
        case = (await answered(agent, "diagnose", text=log))["case"]
        step = await answered(agent, "next_check", case=case)
        assert step["verdict"] == "match"
        assert step["fix"][0]["command"].startswith("df -h /dev/shm")


async def test_more_of_an_answer_is_had_by_its_case(service: Service) -> None:
    async with client(service) as agent:
        answer = await answered(agent, "diagnose", text=SHM)
        assert "matches" in answer["cut"]
        ids: list[str] = []
        total = 1
        while len(ids) < total:
            page = await answered(
                agent, "diagnose", case=answer["case"], part="matches", start=len(ids)
            )
            ids += [match["id"] for match in page["items"]]
            total = page["of"]
        assert ids[0] == answer["matches"][0]["id"]
        assert len(ids) == len(set(ids)) > 1
        assert "expired" in await refused(agent, "diagnose", case="0" * 16, part="matches")


async def test_records_are_found_and_read_whole_and_by_section(service: Service) -> None:
    async with client(service) as agent:
        found = await answered(agent, "search", query="size of /dev/shm", kind="check")
        assert "df-shm" in [one["id"] for one in found["found"]]
        whole = await told(agent, "get_record", id="df-shm")
        section = await told(agent, "get_record", id="df-shm", section="normal")
        assert section.startswith("check://df-shm#Normal\n")
        assert section.partition("## Normal")[2].strip() in whole
        assert "Cannot see" in await refused(agent, "get_record", id="df-shm", section="Poetry")
        assert "did you mean `df-shm`" in await refused(agent, "get_record", id="df-shn")


@pytest.mark.slow
async def test_leads_of_the_own_backlog_are_found_and_marked(
    built_cache: Path, tmp_path: Path
) -> None:
    issue = tmp_path / "issues" / "pump.md"
    issue.parent.mkdir()
    issue.write_text(
        "# The flux pump of the trainer stops\n\nRuntimeError: flux pump 7 ran dry\n\n"
        f"## Resolution\n\nWe filled the tank with {TOKEN}, and it works again.\n"
    )
    own = environment(built_cache, KB_DATA=str(tmp_path / "data"))
    words = [sys.executable, "-m", "kb", "import", str(issue.parent), "--into", "team"]
    subprocess.run(words, env=own, check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch, Service(Settings()) as opened:
        patch.setenv("KB_DATA", str(tmp_path / "data"))
        patch.setenv("KB_CACHE", str(built_cache))
        async with client(opened) as agent:
            text = "RuntimeError: flux pump 9 ran dry"
            found = await answered(agent, "search", query=text, kind="lead")
            opened_case = await answered(agent, "diagnose", text=text)
    assert found.keys() == {"leads"}
    for answer in (found, opened_case):
        (lead,) = answer["leads"]
        assert lead["title"] == "The flux pump of the trainer stops"
        assert lead["reviewed"] is False
        assert TOKEN not in str(lead)


async def test_resources_and_the_prompt_are_served(service: Service) -> None:
    async with client(service) as agent:
        for scheme, identifier in (
            ("incident", "nccl-shm-too-small-container"),
            ("check", "df-shm"),
            ("playbook", "hang-at-start"),
        ):
            read = await agent.read_resource(f"{scheme}://{identifier}")
            assert f"id: {identifier}\n" in read.contents[0].text
        for uri in ("file:///etc/passwd", "incident://no-such-record", "incident://../../x"):
            with pytest.raises(MCPError, match="Example: incident://"):
                await agent.read_resource(uri)
        prompt = await agent.get_prompt("investigate-this-failure", {"error": f"a\n{TOKEN}"})
        text = prompt.messages[0].content.text
        assert TOKEN not in text
        assert text.endswith('"a\\n<secret: hugging face token>"')


async def test_a_draft_is_text_and_writes_nothing(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with client(service) as agent:
        draft = await told(agent, "draft_record", text=f"RuntimeError: the flux pump broke {TOKEN}")
    assert "pattern: 'RuntimeError: the flux pump broke" in draft
    assert TOKEN not in draft
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("diagnose", {}, "nothing to diagnose"),
        ("diagnose", {"text": 5}, "Expected `str`, got `int` - at `$.text`"),
        ("diagnose", {"text": SHM, "shell": "rm"}, "unknown field `shell`"),
        ("diagnose", {"paths": "/etc/passwd"}, "Expected `array`"),
        ("diagnose", {"paths": ["x"] * 65}, "length <= 64"),
        ("diagnose", {"paths": [""]}, "length >= 1"),
        ("draft_record", {"paths": ["a", ""]}, "length >= 1"),
        ("diagnose", {"text": "a" * (MAX_TEXT_CHARACTERS + 1)}, "length <= 1000000"),
        ("diagnose", {"case": "x", "part": "secrets"}, "Invalid enum value"),
        ("diagnose", {"case": "x"}, "case goes with part"),
        ("read_output", {}, "missing required field `text`"),
        ("next_check", {"case": "\x1b[31mred"}, "expired"),
        ("search", {"query": "x", "limit": 10**9}, "Expected `int` <= 20"),
        ("get_record", {"id": "\x1b]0;x\x07"}, "unknown record"),
        ("get_record", {"id": "../../etc/passwd"}, "unknown record"),
        ("draft_record", {"text": " \n"}, "nothing to diagnose"),
        ("diagnoze", {}, "did you mean `diagnose`"),
    ],
)
async def test_a_wrong_call_is_told_how_it_is_right(
    service: Service, tool: str, arguments: dict[str, Any], says: str
) -> None:
    async with client(service) as agent:
        sentence = await refused(agent, tool, **arguments)
    assert says in sentence
    assert sentence.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "\x1b[2J\u202e", "[bold]x[/bold]", "]}\"'`", "é" * 9]
)
@pytest.mark.parametrize("tool", ["read_output", "search"])
async def test_odd_texts_are_answered(service: Service, tool: str, text: str) -> None:
    async with client(service) as agent:
        name = "query" if tool == "search" else "text"
        assert (await told(agent, tool, **{name: text})).isprintable()


async def test_secrets_and_controls_are_in_no_answer(service: Service, tmp_path: Path) -> None:
    key = ["-----BEGIN RSA " + "PRIVATE KEY-----", "q1W2e3R4a" * 7, "-----END RSA PRIVATE KEY-----"]
    log = "\n".join([f"\x1b[31mlogin {TOKEN}", *key, f"{SHM} {TOKEN}", DF])
    (tmp_path / f"{TOKEN}.log").write_text(log)
    async with client(service, tmp_path) as agent:
        answers = [await told(agent, "diagnose", text=log)]
        case = json.loads(answers[0])["case"]
        answers += [
            await told(agent, "diagnose", paths=[f"{TOKEN}.log"]),
            await told(agent, "diagnose", case=case, part="matches"),
            await told(agent, "read_output", text=log, case=case),
            await told(agent, "next_check", case=case, said=f"my token is {TOKEN}"),
            await told(agent, "draft_record", case=case),
            await refused(agent, "diagnose", paths=[f"{TOKEN}.txt"]),
            await refused(agent, "get_record", id=TOKEN),
        ]
    for answer in answers:
        assert TOKEN not in answer
        assert "q1W2e3R4a" not in answer
        assert "\x1b" not in answer


EVERY = 40
"""Of the records; all of them take a minute."""
LONG = "RuntimeError: " + "训练" * 400


@pytest.mark.parametrize(
    "text",
    [SHM, HANG, f"{SHM}\n{DF}", LONG, "\n".join(f"[rank{n}]: {SHM} {LONG}" for n in range(64))],
    ids=["error", "symptom", "output", "long", "ranks"],
)
@pytest.mark.slow
async def test_every_answer_about_a_case_is_within_the_budget(service: Service, text: str) -> None:
    async with client(service) as agent:
        opened = await answered(agent, "diagnose", text=text)
        case = opened["case"]
        others = [
            await answered(agent, "next_check", case=case),
            await answered(agent, "read_output", case=case, text=DF),
        ]
    for answer in (opened, *others):
        assert tokens(answer) <= MAX_TOKENS


@pytest.mark.slow
async def test_the_diagnoses_of_records_are_within_the_budget(service: Service) -> None:
    async with client(service) as agent:
        for incident in service.incidents().result()[::EVERY]:
            answer = await answered(agent, "diagnose", text=incident.body.evidence_text)
            assert tokens(answer) <= MAX_TOKENS, incident.id


async def test_the_case_not_used_for_longest_goes(service: Service) -> None:
    diagnosis = service.diagnose(lambda: Log.from_text(SHM)).result()
    case = Case(to_answer(diagnosis), begin(diagnosis), [SHM])
    cases = Cases()
    first, second = await cases.keep(case), await cases.keep(case)
    await cases.find(first)
    for _ in range(MAX_CASES - 1):
        last = await cases.keep(case)
    assert await cases.find(first) is await cases.find(last) is case
    with pytest.raises(KbError, match="expired"):
        await cases.find(second)


@pytest.mark.slow
async def test_many_calls_at_once_are_each_answered_rightly(service: Service) -> None:
    texts = {
        SHM: "nccl-shm-too-small-container",
        "NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.": "xid79-gpu-fallen-off-bus",
    }
    async with client(service) as agent:
        calls = [(text, answered(agent, "diagnose", text=text)) for text in [*texts] * 20]
        answers = await asyncio.gather(*(call for _text, call in calls))
    for (text, _), answer in zip(calls, answers, strict=True):
        assert answer["matches"][0]["id"] == texts[text]
    assert len({answer["case"] for answer in answers}) == len(answers)


@pytest.mark.slow
async def test_what_is_told_of_one_case_at_once_is_all_taken_in(service: Service) -> None:
    async with client(service) as agent:
        case = (await answered(agent, "diagnose", text=SHM))["case"]
        await asyncio.gather(
            *(answered(agent, "read_output", case=case, text=DF) for _ in range(4)),
            answered(agent, "next_check", case=case, said="it runs in Docker"),
        )
        after = await answered(agent, "next_check", case=case)
    assert after.get("next", {}).get("check") != "df-shm", "what was pasted is lost"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A root with a log and a directory of two ranks; a file lies beside it."""
    root = tmp_path / "logs"
    (root / "job").mkdir(parents=True)
    (root / "train.log").write_text(f"{SHM}\n")
    for rank in range(2):
        (root / "job" / f"rank{rank}.log").write_text(f"[rank{rank}]: {SHM}\n")
    (tmp_path / "secret.log").write_text(f"{SHM}\n")
    return root


async def test_files_below_a_root_are_read(service: Service, logs: Path) -> None:
    (logs / "link.log").symlink_to("train.log")
    async with client(service, logs) as agent:
        for path in ("train.log", "job", str(logs / "train.log"), "link.log"):
            answer = await answered(agent, "diagnose", paths=[path])
            assert answer["matches"][0]["id"] == "nccl-shm-too-small-container"
        assert answer["matches"][0]["why"][0]["file"] == "train.log"


async def test_a_root_that_is_a_link_is_one(service: Service, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(logs)
    async with client(service, tmp_path / "current") as agent:
        for path in (tmp_path / "current" / "train.log", logs / "train.log"):
            await answered(agent, "diagnose", paths=[str(path)])


async def test_nothing_outside_of_the_roots_is_read(service: Service, logs: Path) -> None:
    outside = logs.parent / "secret.log"
    (logs / "leads-out.log").symlink_to(outside)
    (logs / "up").symlink_to("..")
    (logs / "loop").symlink_to("loop")
    (logs / "links").mkdir()
    (logs / "links" / "out.log").symlink_to(outside)
    os.mkfifo(logs / "pipe")
    (logs / "device").symlink_to("/dev/zero")
    paths = [
        *("/etc/passwd", "/dev/zero", "/proc/self/environ", str(outside), "../secret.log"),
        *("job/../../secret.log", "leads-out.log", "up/secret.log", "links", "loop", "pipe"),
        *("device", "", "~/.ssh/id_rsa", "a\0b", "\x1b[31m", "x" * 4096, "no-such.log"),
        str(logs.parent),
    ]
    async with client(service, logs) as agent:
        for path in paths[:-1]:
            if path:
                sentence = await refused(agent, "diagnose", paths=[path])
                assert sentence.startswith("cannot read "), path
        same = {
            (await refused(agent, "diagnose", paths=[str(path)])).replace(str(path), "")
            for path in (outside, outside.with_name("none.log"))
        }
        assert len(same) == 1, "it tells which files exist"


async def test_a_link_that_leads_out_costs_no_other_file(service: Service, logs: Path) -> None:
    (logs / "job" / "nowhere.log").symlink_to("/nowhere")
    (logs / "job" / "out.log").symlink_to(logs.parent / "secret.log")
    (logs / "job" / "within.log").symlink_to("gone")
    (logs / "job" / "out.tar.gz").symlink_to(logs.parent / "secret.tar.gz")
    async with client(service, logs) as agent:
        answer = await answered(agent, "diagnose", paths=["job"])
    assert answer["matches"][0]["id"] == "nccl-shm-too-small-container"
    why = "it is a link that leads out of its directory"
    assert answer["notices"][:3] == [
        f"cannot read nowhere.log: {why}",
        f"cannot read out.log: {why}",
        f"cannot read out.tar.gz: {why}",
    ]
    assert answer["notices"][3] == "cannot read within.log: No such file or directory"


async def test_without_a_root_no_file_is_read(service: Service, logs: Path) -> None:
    async with client(service) as agent:
        sentence = await refused(agent, "diagnose", paths=[str(logs / "train.log")])
        assert "--root DIR" in sentence


async def test_roots_that_a_client_announces_count_where_they_are_its_own(
    service: Service, logs: Path
) -> None:
    path = str(logs / "train.log")
    async with client(service, announced=(logs,)) as agent:
        await answered(agent, "diagnose", paths=[path])
    remote = mcp_server(service, (), ask_client=False)

    async def list_roots(_context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=logs.as_uri())])

    async with Client(remote, list_roots_callback=list_roots) as agent:
        await refused(agent, "diagnose", paths=[path])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8765", Address("127.0.0.1", 8765)),
        ("0.0.0.0:80", Address("0.0.0.0", 80)),
        ("[::1]:9", Address("::1", 9)),
        ("localhost:0", Address("localhost", 0)),
    ],
)
def test_an_address_is_read(text: str, address: Address) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize("text", ["", "x", "70000", "127.0.0.1", "1:2:x", "²", "-1"])
def test_no_address_is_told(text: str) -> None:
    with pytest.raises(KbError, match="is no address"):
        read_address(text)


def test_others_reach_the_server_only_with_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("0.0.0.0", "example.org", "::"):
        with pytest.raises(KbError, match="a token is needed"):
            listen(Address(host, 0), "")
    for token in ("short", "é" * 20, "a b\n" * 9):
        monkeypatch.setenv("KB_TOKEN", token)
        with pytest.raises(KbError, match="at least 16"):
            token_of_environment()
