"""The optional voice at a terminal: its words stand below the answer of the engine."""

from __future__ import annotations

import select
import sys
from typing import TYPE_CHECKING

from kb.cli.talk import Speak
from kb.cli.terminal import put, say, show
from kb.conversation import Conversation
from kb.service.service import Service
from kb.settings import Settings

if TYPE_CHECKING:
    from kb.service.voice import Speaker


def speaker_of(settings: Settings, service: Service) -> Speaker | None:
    """The voice, where one is configured.

    Raises:
        KbError: it is configured and cannot speak.
    """
    if settings.llm is None:
        return None
    from kb.service.voice import Speaker

    return Speaker(settings.llm, service, say)


def speaking(speaker: Speaker) -> Speak:
    """Shows the words of the voice while they come, until somebody types on."""
    from kb.views.chat import voice_dropped, voice_heading, voice_words

    def speak(conversation: Conversation, before: Conversation | None) -> None:
        language = conversation.language
        words = speaker.words(conversation, before, _nothing_typed)
        for number, sentence in enumerate(words):
            if number == 0:
                put("")
                show(voice_heading(speaker.voice.model, language), paged=False)
            show(voice_words(sentence.text), paged=False)
        if words.dropped:
            show(voice_dropped(words.dropped, language), paged=False)

    return speak


def showing_prompts(settings: Settings) -> Speak:
    """Shows what would be sent, and sends nothing.

    Raises:
        SettingsError: no voice is configured.
    """
    from kb.service.voice import as_text, configured, prompt_of

    configured(settings)

    def speak(conversation: Conversation, before: Conversation | None) -> None:
        put(as_text(prompt_of(conversation, before, settings)) + "\n")

    return speak


def _nothing_typed() -> bool:
    """A person who says the next thing wants no more words about the last one."""
    return not (sys.stdin.isatty() and select.select([sys.stdin], [], [], 0)[0])
