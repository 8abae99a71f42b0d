"""The optional voice for the faces: what it needs of the service, and what it would send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kb.conversation import Conversation
from kb.errors import KbError, SettingsError
from kb.incident import Incident, Kind
from kb.llm.given import given_for
from kb.llm.request import to_request
from kb.paths import config_file
from kb.service.reply import WireVoice, WireWords
from kb.service.service import Service, SupersededError, result_of
from kb.settings import LlmSettings, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from index.progress import Notify
    from kb.llm.voice import Voice, Words

_RECORDS = (Kind.INCIDENT, Kind.CASCADE, Kind.HARMLESS)
_MAX_NEAREST = 4
"""Records that a sentence is compared with: two of them may be those that it is about."""


class Speaker:
    """The voice of one conversation."""

    def __init__(self, settings: LlmSettings, service: Service, notify: Notify) -> None:
        """Load the client of the model's server meanwhile; `notify` is told once why it is silent.

        Raises:
            KbError: it cannot speak, with one sentence for the user.
        """
        from kb.llm.voice import Voice

        self._service = service
        self.voice: Voice = Voice(settings, self._nearest, notify)

    def words(
        self,
        conversation: Conversation,
        before: Conversation | None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Words:
        """What it says of the turns since `before`, as long as that is wanted."""
        return self.voice.words(given_for(conversation, before), wanted)

    def whole(self, conversation: Conversation, before: Conversation | None) -> WireVoice:
        """The same for programs, when all is there."""
        words = self.words(conversation, before)
        said = [WireWords(one.text, list(one.rests_on)) for one in words]
        return WireVoice(self.voice.model, said, words.dropped)

    def _nearest(self, text: str) -> list[tuple[str, str]]:
        try:
            found = result_of(self._service.search(text, _RECORDS, _MAX_NEAREST))
        except (KbError, SupersededError):
            return []
        records = [one.record for one in found if isinstance(one.record, Incident)]
        return [(record.id, _told_by(record)) for record in records]


def _told_by(record: Incident) -> str:
    body = record.body
    return "\n".join([record.title, body.symptom, body.setting, body.cause])


def prompt_of(
    conversation: Conversation, before: Conversation | None, settings: Settings
) -> dict[str, Any]:
    """The body of the request that the voice would send for the turns since `before`.

    Raises:
        SettingsError: no voice is configured.
    """
    return to_request(given_for(conversation, before), configured(settings).model)


def configured(settings: Settings) -> LlmSettings:
    """The table `[llm]`.

    Raises:
        SettingsError: there is none.
    """
    if settings.llm is None:
        raise SettingsError(
            f"no voice is configured; add a table [llm] to {config_file()}, see docs/llm.md"
        )
    return settings.llm


def as_text(request: dict[str, Any]) -> str:
    """A request as people read it: its messages, one after the other."""
    parts = [f"[{message['role']}]\n{message['content']}" for message in request["messages"]]
    return "\n\n".join(parts)
