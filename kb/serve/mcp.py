"""The Model Context Protocol, with the SDK of its authors: tools, resources and a prompt, over
stdio and over streamable HTTP. All that they answer comes from the desk."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import anyio
import msgspec
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListRootsRequest,
    ListRootsResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.routing import Route

from kb import __version__
from kb.containment import reason
from kb.errors import KbError, unknown
from kb.evidence.secrets import mask_secrets
from kb.log.clean import drop_controls, replace_surrogates
from kb.serve.desk import Desk
from kb.serve.last_calls import answered_to_the_last
from kb.serve.roots import roots_of
from kb.serve.token import App, with_token
from kb.serve.tools import (
    INSTRUCTIONS,
    PROMPT,
    PROMPT_DESCRIPTION,
    RESOURCES,
    TOOLS,
    prompt,
)
from kb.serve.unreadable import identifier, readable, to_refuse
from kb.service.input import bounded_lines
from kb.service.service import Service

if TYPE_CHECKING:
    from kb.serve.talks import Talks

Context = ServerRequestContext[Any, Any]

PATH = "/mcp"
"""Where a server of its own answers."""
MAX_MESSAGE_BYTES = 1 << 22
"""Of a call, as the SDK has it over HTTP; a longer one is not read."""
_TOO_LARGE = f"the call has more than {MAX_MESSAGE_BYTES >> 20} MB; name a large log in `paths`"
_TOO_LARGE_TOOL = "(too large)"
"""The tool that is called in the place of a call that is not read: so a model is told why."""
_ROOTS = "roots"
"""The key by which a client answers what its roots are."""
_PATIENCE_SECONDS = 10.0
"""For a client to say what its roots are."""
_MAX_ERROR_CHARACTERS = 600
"""Of the sentence on what was wrong, which may quote the call."""
_ADVICE = f"Allowed: {', '.join(TOOLS)}\nExample: {TOOLS['search'].call()}"
"""Told where a tool is called that there is not."""
_EXAMPLE = "incident://nccl-shm-too-small-container"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


_TOOLS = [
    Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema(),
        annotations=ToolAnnotations(read_only_hint=True),
    )
    for tool in TOOLS.values()
]
_TEMPLATES = [
    ResourceTemplate(
        name=scheme,
        uri_template=f"{scheme}://{{id}}",
        description=description,
        mime_type="text/markdown",
    )
    for scheme, description in RESOURCES.items()
]
_PROMPT = Prompt(
    name=PROMPT,
    description=PROMPT_DESCRIPTION,
    arguments=[PromptArgument(name="error", description="The error or log, as printed.")],
)


class McpApp(msgspec.Struct, frozen=True):
    """The server as an ASGI application for one path, to be routed to while `running` is entered.
    One application runs once."""

    asgi: StreamableHTTPASGIApp
    _manager: StreamableHTTPSessionManager

    def running(self) -> AbstractAsyncContextManager[None]:
        """Its lifespan."""
        return self._manager.run()


def mcp_app(
    service: Service,
    roots: Sequence[Path] = (),
    *,
    loopback: bool = True,
    talks: Talks | None = None,
) -> McpApp:
    """The server over streamable HTTP. What a client announces as its roots lies on its own
    machine, so only `roots` are read.

    With `loopback`, calls by another name than this machine's own are refused, so that no page in a
    browser reaches the server; without it, who routes here checks a token. Where several processes
    answer at one address, any of them takes the next request of a client: there are no sessions,
    and `talks` keeps the cases for all.
    """
    guard = TransportSecuritySettings(
        enable_dns_rebinding_protection=loopback,
        allowed_hosts=[f"{host}:*" for host in _LOOPBACK],
        allowed_origins=[f"http://{host}:*" for host in _LOOPBACK],
    )
    server = mcp_server(service, roots, ask_client=False, talks=talks)
    manager = StreamableHTTPSessionManager(
        server, stateless=talks is not None, security_settings=guard
    )
    return McpApp(StreamableHTTPASGIApp(manager), manager)


def mcp_alone(service: Service, roots: Sequence[Path], token: str) -> App:
    """A whole application with the server at `/mcp`; where there is a token, for who knows it."""
    mcp = mcp_app(service, roots, loopback=not token)
    routes = [Route(PATH, endpoint=mcp.asgi)]
    app = Starlette(routes=routes, lifespan=lambda _app: mcp.running())
    return with_token(app, token) if token else app


async def serve_stdio(service: Service, roots: Sequence[Path] = ()) -> None:
    """The server over stdin and stdout, until stdin ends. Reads below `roots`, and below those that
    the client announces: it runs on the same machine, as the same user.

    Raises:
        KbError: stdin or stdout is closed.
        OSError: one of them cannot be read or written any more.
    """
    server = mcp_server(service, roots, ask_client=True)
    stdin = anyio.wrap_file(cast(IO[str], _Messages(sys.stdin.buffer)))
    sys.stdout.buffer.write(b"")  # where it is closed, the SDK would answer nobody
    try:
        async with (
            stdio_server(stdin) as streams,
            answered_to_the_last(*streams) as (reading, writing),
        ):
            await server.run(reading, writing, server.create_initialization_options())
    except BaseExceptionGroup as failed:  # of the tasks that read and write
        raise _first(failed) from None


def _first(error: BaseException) -> BaseException:
    """An error of a group, or the error itself."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def mcp_server(
    service: Service, roots: Sequence[Path], *, ask_client: bool, talks: Talks | None = None
) -> Server[Any]:
    """The server of the SDK. With `ask_client`, the roots that a client announces are read too."""
    protocol = _Protocol(Desk(service, talks), tuple(roots), ask_client=ask_client)
    return Server(
        "incident-kb",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=protocol.list_tools,
        on_call_tool=protocol.call_tool,
        on_list_resources=protocol.list_resources,
        on_list_resource_templates=protocol.list_templates,
        on_read_resource=protocol.read_resource,
        on_list_prompts=protocol.list_prompts,
        on_get_prompt=protocol.get_prompt,
    )


def definitions() -> dict[str, Any]:
    """All that a client is told before it asks, as docs/mcp.json holds it."""
    listed = (
        ("tools", _TOOLS),
        ("resourceTemplates", _TEMPLATES),
        ("prompts", [_PROMPT]),
    )
    told: dict[str, Any] = {
        name: [one.model_dump(by_alias=True, exclude_none=True) for one in values]
        for name, values in listed
    }
    return {"instructions": INSTRUCTIONS, **told}


class _Messages:
    """The lines of a stream for the SDK, which reads one at a time whatever its length."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines = bounded_lines(stream, MAX_MESSAGE_BYTES, _too_large)

    def readline(self) -> str:
        """The next line with its end, or nothing at the end of the stream."""
        return next((f"{readable(line or '')}\n" for line in self._lines), "")


def _too_large(beginning: bytes, end: bytes) -> str:
    """In the place of a call, one with its id that is refused."""
    found = identifier(beginning, end)
    if found is None:
        return to_refuse([None])
    params = {"name": _TOO_LARGE_TOOL}
    return json.dumps({"jsonrpc": "2.0", "id": found, "method": "tools/call", "params": params})


class _Protocol:
    """What a client can ask for, in the types of the SDK."""

    def __init__(self, desk: Desk, roots: tuple[Path, ...], *, ask_client: bool) -> None:
        self._desk = desk
        self._roots = roots
        self._ask_client = ask_client

    async def list_tools(
        self, _context: Context, _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=_TOOLS)

    async def call_tool(
        self, context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        if params.name == _TOO_LARGE_TOOL:
            return _refused(_TOO_LARGE, _ADVICE)
        tool = TOOLS.get(params.name)
        if tool is None:
            sentence = unknown("tool", params.name, TOOLS, "call one that is allowed")
            return _refused(sentence, _ADVICE)
        try:
            arguments = tool.read(params.arguments or {})
            roots = await self._allowed(context, params) if getattr(arguments, "paths", ()) else ()
            if isinstance(roots, InputRequiredResult):
                return roots
            return CallToolResult(content=[_text(await self._desk.answer(arguments, roots))])
        except KbError as error:
            return _refused(str(error), tool.advice())
        except Exception as error:  # noqa: BLE001  one call that fails must not end the others
            return _refused(f"the tool failed: {reason(error)}", tool.advice())

    async def _allowed(
        self, context: Context, params: CallToolRequestParams
    ) -> tuple[Path, ...] | InputRequiredResult:
        """The roots, after the client was asked for its own, if it has any."""
        capabilities = context.session.client_capabilities
        if not (self._ask_client and capabilities and capabilities.roots):
            return self._roots
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            told = await context.session.send_request(
                ListRootsRequest(), ListRootsResult, _PATIENCE_SECONDS
            )
        else:
            answer = (params.input_responses or {}).get(_ROOTS)
            if not isinstance(answer, ListRootsResult):
                return InputRequiredResult(input_requests={_ROOTS: ListRootsRequest()})
            told = answer
        return (*self._roots, *roots_of(str(root.uri) for root in told.roots))

    async def list_resources(
        self, _context: Context, _params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """None: there are hundreds, and `search` finds them."""
        return ListResourcesResult(resources=[])

    async def list_templates(
        self, _context: Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=_TEMPLATES)

    async def read_resource(
        self, _context: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        scheme, _, rest = params.uri.partition("://")
        identifier, _, section = rest.partition("#")
        if scheme not in RESOURCES:
            raise _unread("no such resource")
        try:
            markdown = await self._desk.record(identifier, section)
        except KbError as error:
            raise _unread(str(error)) from error
        contents = TextResourceContents(uri=params.uri, mime_type="text/markdown", text=markdown)
        return ReadResourceResult(contents=[contents])

    async def list_prompts(
        self, _context: Context, _params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        return ListPromptsResult(prompts=[_PROMPT])

    async def get_prompt(
        self, _context: Context, params: GetPromptRequestParams
    ) -> GetPromptResult:
        if params.name != PROMPT:
            raise MCPError(INVALID_PARAMS, f"no such prompt; allowed: {PROMPT}")
        error = mask_secrets(replace_surrogates((params.arguments or {}).get("error", "")))
        message = PromptMessage(role="user", content=_text(prompt(error)))
        return GetPromptResult(description=PROMPT_DESCRIPTION, messages=[message])


def _refused(sentence: str, advice: str) -> CallToolResult:
    return CallToolResult(content=[_text(f"{_quoted(sentence)}\n{advice}")], is_error=True)


def _unread(sentence: str) -> MCPError:
    allowed = ", ".join(f"{scheme}://ID" for scheme in RESOURCES)
    advice = f"Allowed: {allowed}, #SECTION behind it.\nExample: {_EXAMPLE}"
    return MCPError(INVALID_PARAMS, f"{_quoted(sentence)}\n{advice}")


def _quoted(sentence: str) -> str:
    """A sentence that may quote the call."""
    return drop_controls(mask_secrets(replace_surrogates(sentence)))[:_MAX_ERROR_CHARACTERS]


def _text(text: str) -> TextContent:
    return TextContent(text=text)
