"""Recognises the outputs of checks in what the user gave, and says what they show."""

from kb.checks.model import Observation
from kb.checks.read import observe
from kb.checks.recognise import OutputKeeper

__all__ = ["Observation", "OutputKeeper", "observe"]
