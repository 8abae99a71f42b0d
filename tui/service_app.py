"""The app as its screens use it: settings, the service, the history, sentences for the user."""

from __future__ import annotations

import io
import re
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from textual import work
from textual.app import App
from textual.message import Message

from kb.service.service import Service

if TYPE_CHECKING:
    from kb.conversation import Conversation
    from kb.diagnosis import Diagnosis
    from kb.history import History
    from kb.outcomes import Outcomes
    from kb.service.input import UserInput
    from kb.service.voice import Speaker
    from kb.settings import Settings
    from tui.keeper import CaseKeeper


_STAYS_AWAY = (
    "In a browser, kb opens no files of its machine, keeps nothing there and runs nothing there:"
    " paste what you have, and copy what is to be run."
)
_ODD_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class ServiceApp(App[int]):
    """An app over the service. It knows no screen."""

    in_browser = False
    """Whether it is seen in a browser, by somebody at another machine."""

    class Building(Message):
        """The index is being built."""

        def __init__(self, done: int, total: int) -> None:
            super().__init__()
            self.done, self.total = done, total

        def can_replace(self, message: Message) -> bool:
            """Only how far it is now matters."""
            return isinstance(message, ServiceApp.Building)

    class Noticed(Message):
        """There is something that the user should know."""

        def __init__(self, sentence: str) -> None:
            super().__init__()
            self.sentence = sentence

    def __init__(self, settings: Settings) -> None:
        """Raise KbError where a voice is configured that cannot speak."""
        super().__init__()
        self.settings = settings
        self.service = Service(settings, self._report, self._notice)
        self.speaker = self._speaker()
        """The optional voice, where one is configured."""
        self.record_count = 0
        """Number of records that the service searches; 0 until it is open."""

    def _speaker(self) -> Speaker | None:
        if self.settings.llm is None:
            return None
        from kb.service.voice import Speaker

        return Speaker(self.settings.llm, self.service, self._notice)

    def readiness(self, elapsed_ms: float | None = None) -> str:
        """How much is known, and how long an answer took."""
        took = "" if elapsed_ms is None else f"{_duration(elapsed_ms)}, "
        known = f"{self.record_count} records, offline" if self.record_count else "no index"
        return f"{took}{known}"

    def tell(
        self,
        sentence: str,
        severity: Literal["information", "warning", "error"] = "information",
        title: str = "",
    ) -> None:
        """Show a sentence for a while. Names of files in it are hostile input."""
        from kb.log.clean import strip_controls

        self.notify(strip_controls(sentence), title=title, severity=severity, markup=False)

    def stays_away(self) -> bool:
        """Whether the files and programs of this machine are not the user's, which is said."""
        if self.in_browser:
            self.tell(_STAYS_AWAY)
        return self.in_browser

    def hand_over(self, name: str, text: str) -> str:
        """Give a text to the browser as a file, and return its name."""
        name = _ODD_IN_A_NAME.sub("_", name).strip("._") or "kb.md"
        self.deliver_text(io.StringIO(text), save_filename=name)
        return name

    def copy_to_clipboard(self, text: str) -> None:
        """Copy what is selected, and say how."""
        self._copy(text)

    @work(group="copy")
    async def _copy(self, text: str) -> None:
        from tui.clipboard import copy

        self.tell(await copy(text, self))

    def on_service_app_noticed(self, event: Noticed) -> None:
        """Say what the user should know."""
        self.tell(event.sentence, "warning")

    # Called in other threads, which must not wait for this one: it may be gone.

    def _report(self, done: int, total: int) -> None:
        if total:
            self.post_message(self.Building(done, total))

    def _notice(self, sentence: str) -> None:
        self.post_message(self.Noticed(sentence))

    @work(thread=True, group="history")
    def remember(self, user_input: UserInput, diagnosis: Diagnosis) -> None:
        """Keep a search in the history. In a thread: its directory may be a slow one."""
        from kb.history import Search

        self.history.add(Search.of(diagnosis, user_input.kept_text(), user_input.kept_paths()))

    @work(thread=True, group="history")
    def keep_outcome(self, before: Conversation, after: Conversation) -> None:
        """Keep how a case ended. In a thread, as for the history."""
        self.outcomes.take(before, after)

    @cached_property
    def keeper(self) -> CaseKeeper:
        """Keeps the open cases."""
        from tui.keeper import CaseKeeper

        return CaseKeeper(self.settings, self._notice)

    @cached_property
    def outcomes(self) -> Outcomes:
        """How other cases ended."""
        from kb.outcomes import Outcomes

        return Outcomes(self.settings, self._notice)

    @cached_property
    def history(self) -> History:
        """The last searches."""
        from kb.history import History

        return History(self.settings, self._notice)


def _duration(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"
