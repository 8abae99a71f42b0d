"""The colours: calm, with one accent, and the same words in every theme."""

from dataclasses import replace

from textual.theme import BUILTIN_THEMES, Theme

DARK = Theme(
    name="dark",
    primary="#7aa2c8",
    secondary="#8f9fb3",
    accent="#e0b060",
    success="#8fbf7f",
    warning="#e0b060",
    error="#e08080",
    foreground="#d5d9de",
    background="#14171b",
    surface="#191d22",
    panel="#232930",
    dark=True,
    variables={
        "border": "#7aa2c8",
        "border-blurred": "#353d47",
        "footer-key-foreground": "#e0b060",
    },
)

LIGHT = Theme(
    name="light",
    primary="#2f5f8f",
    secondary="#5a6675",
    accent="#9a5b00",
    success="#2f7030",
    warning="#9a5b00",
    error="#b03030",
    foreground="#22272e",
    background="#fbfaf7",
    surface="#f5f3ee",
    panel="#e8e5de",
    dark=False,
    variables={
        "border": "#2f5f8f",
        "border-blurred": "#c9c4b8",
        "footer-key-foreground": "#9a5b00",
    },
)

TERMINAL = replace(BUILTIN_THEMES["ansi-dark"], name="terminal")
"""The sixteen colours that the user has set for the terminal."""

THEMES = (DARK, LIGHT, TERMINAL)
