"""Servers that ask the service: the Model Context Protocol, and HTTP. Needs the extra `serve`."""
