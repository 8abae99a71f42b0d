"""The measure of what the tools add: it counts what agents say, and drives a model by the API that
servers of models have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks.uplift import Agent, Model, Statement, by_model, by_rote, by_tools, compare
from kb.evaluate.cases import LabelledReport
from kb.serve.mcp import mcp_server
from kb.service.service import Service
from kb.settings import Settings
from tests.conftest import environment

XID = "NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus."
REPORTS = (
    LabelledReport(XID, ("xid79-gpu-fallen-off-bus",), "log"),
    LabelledReport("KeyError: 'amount'", (), "log"),
)

pytestmark = pytest.mark.xdist_group("service")


@pytest.fixture(scope="module")
def service(built_cache: Path) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(built_cache).items():
            patch.setenv(name, value)
        with Service(Settings()) as opened:
            yield opened


def said(cause: str | None, *commands: str) -> Agent:
    async def answer(_text: str) -> Statement:
        return Statement(cause, commands, 10)

    return answer


@pytest.mark.slow
async def test_what_is_stated_is_counted(service: Service) -> None:
    async with Client(mcp_server(service, (), ask_client=False)) as tools:
        agents = {
            "right": said("A GPU has fallen off the bus, Xid 79", "nvidia-smi"),
            "silent": said(None),
            "inventive": said(
                "the disk is full", "nvidia-smi --reset-the-bus", "NCCL_BE_FAST=1 run"
            ),
            "script, without": by_rote(service.incidents().result()),
            "script, with": by_tools(tools),
        }
        tallies = await compare(service, REPORTS, agents)
    seen = {name: (one.solved, one.wrong, one.invented) for name, one in tallies.items()}
    assert seen["right"] == (1, 1, 0)
    assert seen["silent"] == (0, 0, 0)
    assert seen["inventive"] == (0, 2, 4)
    assert seen["script, with"] == (1, 0, 0)
    assert seen["script, without"][1] >= 1
    assert tallies["right"].row("x") == "| x | 1 of 1 | 1 of 2 | 0 of 2 | 10 |"


async def scripted(request: Request) -> JSONResponse:
    """A model that calls `diagnose` where it has tools, at first in a wrong way, and tells the
    first incident; without tools it talks."""
    asked = json.loads(await request.body())
    last = asked["messages"][-1]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if "tools" not in asked:
        message["content"] = "Reinstall everything."
    elif last["role"] == "user" or last["content"].startswith("wrong arguments"):
        wrong = last["role"] == "user"
        arguments = "not json" if wrong else json.dumps({"text": XID})
        function = {"name": "diagnose", "arguments": arguments}
        message["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
    else:
        first = json.loads(last["content"])["matches"][0]["title"]
        stated = json.dumps({"cause": first, "commands": ["nvidia-smi"]})
        message["content"] = f"Here you are:\n{stated}\nGood luck."
    return JSONResponse({"choices": [{"message": message}]})


async def test_a_model_is_driven_through_its_calls_to_its_statement(service: Service) -> None:
    app = Starlette(routes=[Route("/v1/chat/completions", scripted, methods=["POST"])])
    transport = httpx2.ASGITransport(app)
    async with (
        Client(mcp_server(service, (), ask_client=False)) as tools,
        httpx2.AsyncClient(transport=transport, base_url="http://model/v1/") as http,
    ):
        model = Model(http, "scripted")
        stated = await by_model(model, tools)(XID)
        alone = await by_model(model, None)(XID)
    assert stated.cause
    assert "bus" in stated.cause
    assert stated.commands == ("nvidia-smi",)
    assert alone.cause == "Reinstall everything."
    assert stated.tokens > alone.tokens
