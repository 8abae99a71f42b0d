"""Incident records as Markdown: `parse` reads, `render` writes, a round trip loses nothing."""

from kb.markdown.parse import MAX_BYTES, parse, read
from kb.markdown.render import render

__all__ = ["MAX_BYTES", "parse", "read", "render"]
