"""Records as Markdown: `parse` reads, `render` writes, a round trip loses nothing."""

from kb.markdown.blocks import fenced
from kb.markdown.frontmatter import AnyHeader
from kb.markdown.parse import MAX_BYTES, parse, parse_source, read, read_source
from kb.markdown.reader import as_written
from kb.markdown.render import is_web_link, render
from kb.markdown.rules import unforeseen

__all__ = [
    "MAX_BYTES",
    "AnyHeader",
    "as_written",
    "fenced",
    "is_web_link",
    "parse",
    "parse_source",
    "read",
    "read_source",
    "render",
    "unforeseen",
]
