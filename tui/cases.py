"""The open cases, one of them on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.case import Case

MAX_CASES = 9
"""Number of open cases: each has a digit, and its title some columns of a narrow terminal."""


class Cases:
    """Values in the order of their numbers; which one is on the screen; when each was used."""

    def __init__(self) -> None:
        self._cases: tuple[Case, ...] = ()
        self._used: tuple[int, ...] = ()
        """Keys; that of the case on the screen is the last."""

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    @property
    def current(self) -> Case | None:
        """The one on the screen."""
        return self.find(self._used[-1]) if self._used else None

    def find(self, key: int) -> Case | None:
        """The one with this key; None where it is open no more."""
        return next((case for case in self._cases if case.key == key), None)

    def number(self, key: int) -> int:
        """The number by which people call an open case, from 1."""
        return [case.key for case in self._cases].index(key) + 1

    def put(self, case: Case) -> None:
        """Let an open case go on as this value."""
        self._cases = tuple(case if one.key == case.key else one for one in self._cases)

    def open(self, case: Case, asked_in: int | None) -> Case | None:
        """Add a new case behind the one on the screen; give the one whose place it takes. That is
        the one in which it was asked for, by its key, if that is spare; of too many, the one not
        used for longest."""
        gone = self._making_room(asked_in)
        if gone:
            self._cases = tuple(case if one is gone else one for one in self._cases)
        else:
            self._cases = (*self._cases, case)
        on_screen = self._used[-1:]
        behind = [key for key in self._used[:-1] if gone is None or key != gone.key]
        is_seen = gone is not None and on_screen == (gone.key,)
        self._used = (*behind, case.key, *(() if is_seen else on_screen))
        return gone

    def _making_room(self, asked_in: int | None) -> Case | None:
        asked = None if asked_in is None else self.find(asked_in)
        if asked and asked.is_spare:
            return asked
        return self.find(self._used[0]) if len(self._cases) == MAX_CASES else None

    def show(self, key: int) -> None:
        """Bring one to the screen."""
        self._used = (*(used for used in self._used if used != key), key)

    def step(self, by: int) -> None:
        """Bring the one so many numbers further on, and after the last one the first."""
        if self.current:
            place = self.number(self.current.key) - 1 + by
            self.show(self._cases[place % len(self._cases)].key)

    def show_at(self, place: int) -> None:
        """Bring the one at this place to the screen, from 0, if there is one."""
        for case in self._cases[place : place + 1]:
            self.show(case.key)

    def close(self, key: int) -> None:
        """Close one; behind it is the one that was used last."""
        self._cases = tuple(case for case in self._cases if case.key != key)
        self._used = tuple(used for used in self._used if used != key)
