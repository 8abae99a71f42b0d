"""One process that diagnoses units, one after the other."""

from __future__ import annotations

from typing import Self

from kb.classify.inputs import open_log
from kb.classify.result import Outcome, Result, Unreadable
from kb.errors import LogError
from kb.service.service import Service, result_of
from kb.settings import Settings


class Worker:
    """Opens the index once."""

    def __init__(self, settings: Settings) -> None:
        self._service = Service(settings, leads=False)
        result_of(self._service.open())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._service.close()

    def classify(self, unit: str) -> Outcome:
        """Diagnose a unit. A failure in one unit does not stop the others."""
        try:
            diagnosis = result_of(self._service.diagnose(lambda: open_log(unit), top=1))
            return Result.of(unit, diagnosis)
        except LogError as error:
            return Unreadable(unit, str(error))
        except Exception as error:  # noqa: BLE001  one broken file must not stop thousands
            failure = LogError(unit, f"{type(error).__name__}: {error}")
            return Unreadable(unit, str(failure))
