"""Reads logs: any bytes become blocks of clean lines, in bounded memory."""

from kb.log.archive import Collected
from kb.log.reader import Block, Log, Source

__all__ = ["Block", "Collected", "Log", "Source"]
