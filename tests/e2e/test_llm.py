"""The optional voice, against scripted servers: `kb chat` with a model that fails, lies or obeys
whatever stands in a log."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from textual.pilot import Pilot

from kb.service.input import UserInput
from kb.settings import LlmSettings
from tests.conftest import Run
from tests.e2e.conftest import ANSWER, QUESTION, Small, killed_in_the_end, wait_until
from tests.llm_server import (
    Handler,
    ModelServer,
    Script,
    answer_of,
    begin,
    configuration,
    finish,
    honest,
    in_turn,
    passages,
    saying,
    saying_honestly,
    send,
    writing,
)
from tests.tui.conftest import SHM as SCREEN_SHM
from tests.tui.conftest import WATCHDOG as SCREEN_WATCHDOG
from tests.tui.conftest import Start, app_of, small_cache, start  # noqa: F401  the fixtures of the screen
from tui.widgets.talk import Talk, TalkInput

SCHEMA = json.loads(Path("docs/chat.schema.json").read_text(encoding="utf-8"))
INJECTIONS = tomllib.loads(Path("tests/e2e/injections.toml").read_text(encoding="utf-8"))
SHM = QUESTION.decode().strip()
EXTEND = "NCCL WARN Error: failed to extend /dev/shm/nccl-c7XQ2w to 9637892 bytes"
LONG_S = 30.0
"""More than an answer takes, also on a busy machine."""
SHORT_S = 0.3
TOKEN = "hf_" + "a1B2c3" * 6
"""Made here."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer().running() as running:
        yield running


@pytest.fixture
def config(tmp_path: Path, server: ModelServer) -> dict[str, str]:
    """The environment of a user of the voice."""
    return {"KB_CONFIG": str(configuration(tmp_path / "config.toml", server, LONG_S))}


def talk(run: Run, *arguments: str | Path, said: tuple[str, ...], env: dict[str, str]) -> Any:
    """The replies, and what was said on stderr."""
    lines = "".join(f"{json.dumps(one)}\n" for one in said)
    done = run("chat", "--jsonl", *arguments, stdin=lines.encode(), env=env)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    replies = [json.loads(line) for line in done.stdout.decode().splitlines()]
    for reply in replies:
        jsonschema.validate(reply, SCHEMA)
    return replies, done.stderr.decode()


def without_voice(replies: list[Any]) -> list[Any]:
    return [{key: value for key, value in reply.items() if key != "voice"} for reply in replies]


def words(reply: Any) -> list[str]:
    return [one["text"] for one in reply["voice"]["sentences"]]


def test_a_grounded_sentence_is_shown_beside_the_answer_of_the_engine(
    kb: Run, server: ModelServer, config: dict[str, str]
) -> None:
    server.script = saying_honestly
    plain, _ = talk(kb, SHM, said=("why", "what next"), env={})
    replies, _ = talk(kb, SHM, said=("why", "what next"), env=config)
    assert without_voice(replies) == plain
    opening = replies[0]["voice"]
    assert opening["model"] == "scripted"
    (said,) = opening["sentences"]
    assert said["rests_on"] == ["record 1 cause"]
    assert "NCCL exchanges data through files in `/dev/shm`" in said["text"]
    assert ANSWER in said["text"]
    assert opening["dropped"] == 0
    assert all("voice" not in reply for reply in plain)


def test_an_answer_below_the_bar_is_worded_with_its_confidence(
    kb: Run, server: ModelServer, config: dict[str, str]
) -> None:
    server.script = saying_honestly
    (opening,), _ = talk(kb, "Error while creating a memory segment", said=(), env=config)
    share = f"({round(opening['matches'][0]['confidence'] * 100)}%)"
    assert opening["matches"][0]["confidence"] < 0.75
    assert words(opening)[0].startswith(f"If it is [{ANSWER}] {share}: ")


def test_a_terminal_shows_the_words_below_the_answer_and_how_many_were_left_out(
    kb: Run, server: ModelServer, config: dict[str, str]
) -> None:
    lie = {"text": "A switch is broken.", "rests_on": ["record 1 cause"]}
    server.script = lambda s, handler, request: saying([honest(request), lie])(s, handler, request)
    plain = kb("chat", SHM, stdin=b"quit\n")
    spoken = kb("chat", SHM, stdin=b"quit\n", env=config)
    assert spoken.returncode == plain.returncode
    shown = spoken.stdout.decode()
    answer = plain.stdout.decode().removesuffix("> quit\n").rstrip()
    assert shown.startswith(answer)
    below = shown.removeprefix(answer)
    assert "In other words, by the model scripted:" in below
    assert "NCCL exchanges data" in below
    assert "kb left out 1 of the model's sentences" in below
    assert "switch" not in below


def test_nothing_of_it_is_loaded_or_sent_without_a_configuration(
    kb: Run, small: Small, tmp_path: Path
) -> None:
    code = (
        "import sys, os\n"
        "leave = os._exit\n"
        "def end(code):\n"
        "    found = {'openai', 'httpx2', 'kb.llm', 'pydantic'} & set(sys.modules)\n"
        "    os.write(2, f'LOADED {sorted(found)}'.encode())\n"
        "    leave(code)\n"
        "os._exit = end\n"
        "from kb.__main__ import main\n"
        "main()\n"
    )
    program = tmp_path / "loaded.py"
    program.write_text(code)
    for command in (["chat", SHM], ["chat", "--jsonl", SHM], ["ask", SHM]):
        run = small.kb(program=(sys.executable, str(program), *command))
        assert run.returncode == 0
        assert b"LOADED []" in run.stderr, command


def flooding(_server: ModelServer, handler: Handler, _request: Any) -> None:
    begin(handler)
    while True:
        send(handler, '{"sentences": [' + " " * 4_000)


def flooding_without_an_end_of_line(server: ModelServer, handler: Handler, _request: Any) -> None:
    begin(handler)
    while not server.closing.is_set():
        handler.wfile.write(b"data: " + b"x" * 100_000)


def hanging(server: ModelServer, _handler: Handler, _request: Any) -> None:
    server.closing.wait()


def hanging_after_headers(server: ModelServer, handler: Handler, _request: Any) -> None:
    begin(handler)
    server.closing.wait()


def hanging_in_a_sentence(server: ModelServer, handler: Handler, request: Any) -> None:
    begin(handler)
    send(handler, answer_of([honest(request)])[:-20])
    server.closing.wait()


def breaking_off(_server: ModelServer, handler: Handler, request: Any) -> None:
    begin(handler)
    send(handler, answer_of([honest(request)])[:-20])


def status(code: int, body: bytes = b"{}", location: str = "") -> Script:
    def script(_server: ModelServer, handler: Handler, _request: Any) -> None:
        handler.send_response(code)
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("Retry-After", "60")
        if location:
            handler.send_header("Location", location)
        handler.end_headers()
        handler.wfile.write(body)

    return script


def raw(body: bytes, kind: str = "text/event-stream") -> Script:
    def script(_server: ModelServer, handler: Handler, _request: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return script


def odd_contents(_server: ModelServer, handler: Handler, _request: Any) -> None:
    begin(handler)
    for odd in (None, 7, {"a": []}, ["x"], "\ud800"):
        send(handler, odd)
    finish(handler)


FAULTS: dict[str, Script] = {
    "rate limit": status(429),
    "server error": status(500, b"<html>oops</html>"),
    "wrong key": status(401),
    "no such model": status(404, b'{"error": {"message": "\x1b[2J"}}'),
    "endless text": flooding,
    "half a stream": breaking_off,
    "no stream": raw(b'{"choices": []}', "application/json"),
    "a page": raw(b"<html>hello</html>", "text/html"),
    "no JSON": raw(b"data: {{{\n\n"),
    "an error in the stream": raw(b'data: {"error": {"message": "overloaded"}}\n\n'),
    "no choices": raw(b'data: {"choices": null}\n\ndata: [DONE]\n\n'),
    "no bytes of text": raw(b"data: \xff\xfe\x00\n\n"),
    "nothing": raw(b""),
    "odd contents": odd_contents,
    "refusal": writing("I am sorry, but I cannot help with that."),
    "other JSON": writing('{"answer": "all is well"}'),
    "deep JSON": writing('{"sentences": [' + '{"text": [' * 1_500),
    "sentences of another form": writing('{"sentences": [{"text": 7}, {"words": []}, "x", 3]}'),
    "closed at once": lambda _server, handler, _request: handler.connection.close(),
}


def test_whatever_the_server_does_the_answers_are_those_of_the_engine(
    kb: Run, server: ModelServer, config: dict[str, str]
) -> None:
    faults = list(FAULTS.values())
    scripts = [saying_honestly, *(one for fault in faults for one in (fault, saying_honestly))]
    server.script = in_turn(scripts)
    said = ("why",) * 2 * len(faults)
    plain, _ = talk(kb, SHM, said=said, env={})
    replies, notes = talk(kb, SHM, said=said, env=config)
    assert without_voice(replies) == plain
    assert notes.count("voice") == 1
    assert len(server.requests) == len(scripts)
    for name, broken, fine in zip(FAULTS, replies[1::2], replies[2::2], strict=True):
        assert words(broken) == [], name
        assert words(fine), f"the turn after: {name}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [hanging, hanging_after_headers, hanging_in_a_sentence, flooding_without_an_end_of_line],
)
def test_a_server_that_is_too_slow_is_asked_twice_and_then_no_more(
    kb: Run, server: ModelServer, tmp_path: Path, fault: Script
) -> None:
    server.script = fault
    env = {"KB_CONFIG": str(configuration(tmp_path / "config.toml", server, SHORT_S))}
    replies, notes = talk(kb, SHM, said=("why",) * 4, env=env)
    assert [words(reply) for reply in replies] == [[]] * 5
    assert notes.strip() == (
        "The voice says nothing: no sentence came within `wait_seconds`, 0.3 s."
        " The answers are kb's own"
    )
    assert len(server.requests) <= 2


def test_a_server_that_is_gone_is_told_once(kb: Run, tmp_path: Path) -> None:
    server = ModelServer()
    with server.running():
        pass
    env = {"KB_CONFIG": str(configuration(tmp_path / "config.toml", server, LONG_S))}
    replies, notes = talk(kb, SHM, said=("why", "why"), env=env)
    assert [words(reply) for reply in replies] == [[]] * 3
    assert notes.count("cannot be reached") == 1


def test_no_other_host_is_asked(kb: Run, server: ModelServer, config: dict[str, str]) -> None:
    with ModelServer().running() as other:
        server.script = status(307, location=f"{other.url}/chat/completions")
        proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY"), other.url)
        talk(kb, SHM, said=(), env={**config, **proxies})
        assert server.paths == ["/v1/chat/completions"]
        assert other.paths == []


def test_the_key_comes_from_its_variable_and_nothing_else_of_this_machine_is_told(
    kb: Run, server: ModelServer, tmp_path: Path
) -> None:
    server.script = saying_honestly
    path = configuration(tmp_path / "config.toml", server, LONG_S, 'key_variable = "VOICE_KEY"')
    mine = {"OPENAI_API_KEY": "other", "OPENAI_ORG_ID": "mine", "OPENAI_PROJECT_ID": "mine"}
    env = {"KB_CONFIG": str(path), "VOICE_KEY": "key-of-the-voice", **mine}
    talk(kb, SHM, said=(), env=env)
    (headers,) = server.headers
    assert headers["authorization"] == "Bearer key-of-the-voice"
    assert set(headers) <= {
        "host", "accept", "accept-encoding", "authorization", "connection", "content-length",
        "content-type",
    }  # fmt: skip


def test_without_a_key_none_is_sent(kb: Run, server: ModelServer, config: dict[str, str]) -> None:
    talk(kb, SHM, said=(), env={**config, "OPENAI_API_KEY": "other"})
    assert "authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (['url = "http://x/v1"', 'model = "m"', 'key_variable = "NO_SUCH"'], "NO_SUCH"),
        (['url = "http://user:word@x/v1"', 'model = "m"'], "user name"),
        (['url = "http://:0/v1"', 'model = "m"'], "names no host"),
        (['url = "file:///x"', 'model = "m"'], "docs/configuration.md"),
        (['url = "http://x/v1"'], "model"),
        (['url = "http://x/v1"', 'model = "m"', "wait_seconds = 0"], "wait_seconds"),
        (['url = "http://x/v1"', 'model = "m"', "temperature = 1"], "temperature"),
    ],
)
def test_a_wrong_configuration_is_one_sentence(
    kb: Run, tmp_path: Path, lines: list[str], says: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("\n".join(["[llm]", *lines]))
    run = kb("chat", SHM, stdin=b"", env={"KB_CONFIG": str(path)})
    assert run.returncode == 2
    assert says in run.stderr.decode()
    assert b"Traceback" not in run.stderr


def test_without_the_extra_it_says_what_to_install(
    small: Small, server: ModelServer, config: dict[str, str], tmp_path: Path
) -> None:
    program = tmp_path / "bare.py"
    program.write_text(
        "import sys\nsys.modules['openai'] = None\nfrom kb.__main__ import main\nmain()\n"
    )
    run = small.kb(SHM, program=(sys.executable, str(program), "chat"), env=config)
    assert run.returncode == 2
    assert b"pip install 'incident-kb[llm]'" in run.stderr
    assert server.requests == []


def test_the_prompt_can_be_seen_and_is_not_sent(
    kb: Run, server: ModelServer, config: dict[str, str]
) -> None:
    run = kb("chat", SHM, "--show-prompt", stdin=b"why\nquit\n", env=config)
    shown = run.stdout.decode()
    assert shown.count("[system]") == 2
    assert '"record 1 cause"' in shown
    assert server.requests == []
    server.script = saying_honestly
    kb("chat", SHM, stdin=b"quit\n", env=config)
    for message in server.requests[0]["messages"]:
        assert message["content"] in shown


def test_the_prompt_needs_a_configuration_and_no_protocol(kb: Run, config: dict[str, str]) -> None:
    unset = kb("chat", SHM, "--show-prompt")
    assert unset.returncode == 2
    assert b"[llm]" in unset.stderr
    assert kb("chat", SHM, "--show-prompt", "--jsonl", env=config).returncode == 2


def test_no_secret_is_sent(
    kb: Run, server: ModelServer, config: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "job.log"
    log.write_text(f"HF_TOKEN={TOKEN}\n{SHM} HF_TOKEN={TOKEN}\n")
    server.script = saying_honestly
    for protocol in (("--jsonl",), ()):
        kb("chat", *protocol, "-f", log, stdin=f"my token is {TOKEN}\n".encode(), env=config)
    assert len(server.requests) == 4
    assert TOKEN not in json.dumps(server.requests)
    assert "<secret" in json.dumps(server.requests)


def obeying(planted: dict[str, Any]) -> Script:
    """Says it all with every source, and one honest sentence at the end."""
    says = planted["says"]

    def script(server: ModelServer, handler: Handler, request: Any) -> None:
        keys = list(passages(request))
        lies = [{"text": text, "rests_on": [key]} for text in says for key in keys]
        lies += [{"text": text, "rests_on": keys} for text in says]
        saying([*lies, honest(request, planted["text"])])(server, handler, request)

    return script


RECORD = """---
id: {id}
title: The widget of rack {letter} stops in the middle of a run after a torn cable
kind: incident
systems: [nccl]
environment:
  frameworks: {{nccl: any}}
  hardware: any
  topology: any
signatures:
- pattern: widget {letter} stopped with a torn cable
  strength: strong
references: ['https://example.org/{id}']
confidence: documented
created: 2026-01-01
updated: 2026-01-01
---

## Symptom

The widget of rack {letter} stops and prints its name. {text}

## Environment

Any.

## Cause

{text} The cable between widget {letter} and its socket tears under load.

## Fix

1. Replace the cable.

## Verify

The widget runs.

## Evidence

```text
widget {letter} stopped with a torn cable
```
"""


def letters(number: int) -> str:
    return chr(ord("a") + number // 5) + chr(ord("q") + number % 5) + "x"


@pytest.mark.slow
def test_nothing_that_is_planted_reaches_the_user(
    kb: Run, server: ModelServer, config: dict[str, str], tmp_path: Path
) -> None:
    """One conversation: a case for each log and record, and a message for each paste."""
    said: list[str] = []
    planted_texts: list[str] = [""]
    scripts: list[Script] = [saying_honestly]

    def turn(message: str, script: Script, planted: str = "") -> None:
        said.append(message)
        scripts.append(script)
        planted_texts.append(planted)

    lies = sum(len(injections) for injections in INJECTIONS.values())
    assert lies >= 60
    team = tmp_path / "team"
    team.mkdir()
    shutil.copy("incidents/checks/nccl-warn-lines.md", team)  # of which the engine quotes lines
    for number, planted in enumerate(INJECTIONS["record"]):
        letter = letters(number)
        path = team / f"team-widget-{letter}.md"
        path.write_text(RECORD.format(id=path.stem, letter=letter, text=planted["text"]))
        said.append("start over")
        turn(f"widget {letter} stopped with a torn cable", obeying(planted), planted["text"])
    for planted in INJECTIONS["log"]:
        said.append("start over")
        turn(f"{SHM}\n{planted['text']}", obeying(planted))
    for planted in INJECTIONS["log"]:
        said.append("start over")
        turn(f"{EXTEND}. {planted['text']}", obeying(planted))
    for planted in INJECTIONS["paste"]:
        turn(planted["text"], obeying(planted))
    server.script = in_turn(scripts)
    replies, _ = talk(kb, SHM, "--incidents", team, said=tuple(said), env=config)
    plain, _ = talk(kb, SHM, "--incidents", team, said=tuple(said), env={})
    assert without_voice(replies) == plain
    assert len(server.requests) == len(scripts)
    dropped = 0
    spoken = [reply for reply in replies if reply["act"] != "greet"]
    for request, reply, planted in zip(server.requests, spoken, planted_texts, strict=True):
        true = squeezed(worded(honest(request, planted)["text"]))
        for shown in words(reply):
            assert true in squeezed(shown)
        dropped += reply["voice"]["dropped"]
    assert dropped > 5 * lies
    assert sum(bool(words(reply)) for reply in replies) > len(INJECTIONS["log"])


def worded(text: str) -> str:
    """The most words between two slots of a sentence."""
    return max(re.split(r"\{[a-z]+ \d+\}", text), key=len)


def squeezed(text: str) -> str:
    return re.sub(r"\W+", "", text)


def test_who_types_on_waits_for_no_more_words(
    small: Small, server: ModelServer, tmp_path: Path
) -> None:
    """At a terminal, the next message ends the words about the last one."""
    server.script = hanging
    config = configuration(tmp_path / "config.toml", server, LONG_S)
    ours, theirs = pty.openpty()
    env = {**small.environment(), "KB_CONFIG": str(config), "TERM": "dumb"}
    chat = subprocess.Popen(
        [sys.executable, "-m", "kb", "chat", SHM],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=small.home,
        env=env,
    )
    os.close(theirs)
    with chat, killed_in_the_end(chat):
        wait_until(lambda: server.requests, "the voice is asked")
        os.write(ours, b"why\n")
        wait_until(lambda: len(server.requests) == 2, "the second message is answered")
        os.write(ours, b"quit\n")
        assert chat.wait(LONG_S) == 0
    os.close(ours)


async def test_the_screen_shows_the_words_below_the_turn(
    server: ModelServer,
    start: Start,  # noqa: F811
) -> None:
    lie = {"text": "A switch is broken.", "rests_on": ["record 1 cause"]}
    server.script = lambda s, handler, request: saying([honest(request), lie])(s, handler, request)
    llm = LlmSettings(server.url, "scripted", wait_seconds=LONG_S)
    async with start(user_input=UserInput(text=SCREEN_SHM), llm=llm) as pilot:
        await until(pilot, lambda: "left out 1 of the model's sentences" in voice_of(pilot))
        assert "In other words, by the model scripted:" in voice_of(pilot)
        assert "[shm-too-small]" in voice_of(pilot)
        assert "switch" not in voice_of(pilot)
        server.script = hanging
        await pilot.press("t", *"why", "enter")
        await until(pilot, lambda: len(server.requests) == 2)
        assert len(pilot.app.screen.query("VoiceRow")) == 1
        server.script = saying_honestly
        await pilot.press(*"why", "enter")
        await until(pilot, lambda: len(pilot.app.screen.query("VoiceRow")) == 2)


async def test_on_the_screen_it_speaks_only_into_the_case_it_is_about(
    server: ModelServer,
    start: Start,  # noqa: F811
) -> None:
    server.script = saying_honestly
    llm = LlmSettings(server.url, "scripted", wait_seconds=LONG_S)
    async with start(user_input=UserInput(text=SCREEN_SHM), llm=llm) as pilot:
        await until(pilot, lambda: "[shm-too-small]" in voice_of(pilot))
        await pilot.press("space")
        app_of(pilot).main.ask(UserInput(text=SCREEN_WATCHDOG))
        await until(pilot, lambda: len(app_of(pilot).main.cases) == 2 and voice_of(pilot))
        assert "[shm-too-small]" not in voice_of(pilot)
        asked = len(server.requests)
        main = app_of(pilot).main
        first, second = main.cases
        main.query_one(Talk).post_message(TalkInput.Said(second.key, "why"))
        main.action_next_case()  # before the voice says anything about it
        await until(pilot, lambda: "[shm-too-small]" in voice_of(pilot))
        await until(pilot, lambda: len(server.requests) == asked + 1)
        await until(pilot, lambda: len((main.cases.find(second.key) or second).voiced) == 2)
        assert main.case is not None
        assert main.case.key == first.key
        assert len(pilot.app.screen.query("VoiceRow")) == 1
        main.action_next_case()
        await until(pilot, lambda: len(pilot.app.screen.query("VoiceRow")) == 2)


def voice_of(pilot: Pilot[int]) -> str:
    return "\n".join(str(row.render()) for row in pilot.app.screen.query("VoiceRow").results())


async def until(pilot: Pilot[int], true: Callable[[], object]) -> None:
    """Let the screen work until something can be seen."""
    deadline = time.monotonic() + LONG_S
    while not true():
        assert time.monotonic() < deadline
        await pilot.pause(0.02)
