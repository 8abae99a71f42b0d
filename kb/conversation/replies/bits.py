"""A number whose bits are asked for, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator

from kb.conversation.acts import Acted
from kb.conversation.bit_masks import BitMask, bit_masks, mask_named, number_asked, set_bits
from kb.conversation.language import Language, say
from kb.conversation.replies.answer import Answer, paragraphs
from kb.conversation.state import Conversation, ReplyAct

_MAX_BITS = 24
"""A number with more that are set is no set of flags, but an address or a checksum."""


def bits(acted: Acted, conversation: Conversation, _knowledge: object) -> Answer | None:
    """What each bit stands for, in the mask that the message or the case names; of an unnamed one
    what it would be. None where no number is named."""
    value, language = number_asked(acted.text), conversation.language
    if value is None or len(set_bits(value)) > _MAX_BITS:
        return None
    number = f"0x{value:x}"
    named = mask_named(_said(acted, value, conversation))
    mask = named or next((one for one in bit_masks() if value and one.holds(value)), None)
    if mask is None:
        row = ", ".join(map(str, set_bits(value))) or "0"
        text = say("bits-unknown", language, number=number, bits=row)
        return Answer(text, act=ReplyAct.EXPLAIN)
    key = "bits" if named else "bits-if"
    if not value:
        key = "bits-none"
    head = say(key, language, number=number, mask=mask.name(language))
    is_fault = any(bit not in mask.harmless for bit in set_bits(value))
    verdict = "" if is_fault or not value else say("bits-harmless", language)
    source = say("term-source", language, source=mask.source)
    text = paragraphs([head, *_rows(value, mask, language), verdict, source])
    return Answer(text, act=ReplyAct.EXPLAIN)


def _said(acted: Acted, value: int, conversation: Conversation) -> Iterator[str]:
    """Where the mask may be named: in the message, beside the number in the case, and before."""
    yield acted.text
    earlier = [turn.text for turn in reversed(conversation.turns)]
    lines = [line.text for line in conversation.diagnosis.evidence.lines]
    whole = [*earlier, *lines]
    digits = f"{value:x}"
    yield from (text for text in whole if f"0{digits}" in text or f"0x{digits}" in text)
    yield from whole


def _rows(value: int, mask: BitMask, language: Language) -> Iterator[str]:
    for bit in set_bits(value):
        meaning = mask.meaning(bit, language) or say("bit-unknown", language)
        yield say("bit", language, bit=bit, value=f"0x{1 << bit:x}", meaning=meaning)
