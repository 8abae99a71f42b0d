"""The Markdown of records as HTML that is safe in a page: no HTML of its own, no images, and links
to the web only."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from mdit_py_plugins.front_matter import front_matter_plugin

from kb.markdown import is_web_link

FindPage = Callable[[str], str | None]
"""Where the page of a record is, by its id."""

_TARGET = re.compile(
    r"(?:(?:incident|check|playbook):)?(?P<id>[a-zA-Z0-9][a-zA-Z0-9.-]*)(?::[a-z0-9-]+)?"
)
"""How records name others: an id, what kind it is of in front, the key of a cause behind."""


def no_page(_identifier: str) -> None:
    """For where records have no pages of their own."""


def to_html(markdown: str, *, deeper: int = 0, find_page: FindPage = no_page) -> Markup:
    """The HTML; headings stand `deeper` levels below those of the text, and a code that names a
    record leads to its page."""
    parser = _parser()
    tokens = parser.parse(markdown)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + deeper, 6)}"
        if token.children:
            token.children = _linked(token.children, find_page)
    html = str(parser.renderer.render(tokens, parser.options, {}))
    return Markup(html)  # noqa: S704  HTML of the text is off above


def to_inline_html(markdown: str) -> Markup:
    """The HTML of a sentence, in which only codes and links are more than text."""
    return Markup(_parser().renderInline(markdown))  # noqa: S704  HTML of the text is off


@cache
def _parser() -> MarkdownIt:
    """Stars and underscores are what they are: records name files and options with them."""
    parser = _Markdown("commonmark", {"html": False}).use(front_matter_plugin)
    return parser.disable(["image", "emphasis"])


class _Markdown(MarkdownIt):
    """Only what is on the web is a link: another one would lead to a place beside the page."""

    def validateLink(self, url: str) -> bool:  # noqa: N802
        return is_web_link(url)


def _linked(tokens: Sequence[Token], find_page: FindPage) -> list[Token]:
    linked: list[Token] = []
    for token in tokens:
        named = _TARGET.fullmatch(token.content) if token.type == "code_inline" else None
        page = named and find_page(named["id"])
        if page:
            link = Token("link_open", "a", 1, attrs={"href": page})
            linked += [link, token, Token("link_close", "a", -1)]
        else:
            linked.append(token)
    return linked
