"""The one registry of actions: bindings, footer, command palette, help and docs/tui.md are made
from it, and a test holds them equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec
from textual.binding import Binding, BindingType

from kb.errors import SettingsError


class Place(StrEnum):
    """Where an action is at hand."""

    ANYWHERE = "Anywhere"
    BOX = "Paste box"
    ANSWER = "Answer"
    LIST = "Candidates"
    LOG = "Log"
    TALK = "Conversation"
    RANKS = "Ranks"
    BROWSE = "Browse"
    HISTORY = "History"
    BATCH = "Batch"
    DRAFT = "Draft of an incident"


class Action(msgspec.Struct, frozen=True):
    """Something the user can do; the method `action_<name>` of the place's screen does it."""

    name: str
    place: Place
    keys: str
    """As Textual names them, separated by commas. An action that is handed its key has `{key}` in
    its name."""
    hint: str
    """A word or two for the footer and the command palette."""
    help: str
    """One sentence."""
    in_footer: bool = False

    @property
    def identifier(self) -> str:
        """Its name in the configuration."""
        return self.name.partition("(")[0]

    def bound(self, keys: Mapping[str, str]) -> Action:
        """The action with the keys that the user has given it; `keys` by identifiers."""
        return msgspec.structs.replace(self, keys=keys.get(self.identifier, self.keys))

    @property
    def shown_keys(self) -> str:
        """The keys as a person reads them, the first two at most."""
        keys = self.keys.split(",")
        if "{key}" in self.name:
            return f"{keys[0]}-{keys[-1]}"
        return " ".join(_SHOWN.get(key, key) for key in keys[:2])

    def shown_key(self, place: Place) -> str:
        """The key shown in the footer; in a text field, a key that does not type a character."""
        keys = self.keys.split(",")
        usable = [key for key in keys if not (place in _TYPING and _is_typed(key))]
        return _SHOWN.get(key := (usable or keys)[0], key)


MAX_HINTS = 12
"""Maximum number of actions in the footer; shown are those that fit, from the first on."""

_TYPING = (Place.BOX, Place.TALK, Place.DRAFT)
_CHARACTERS = ("question_mark", "slash", "space", "greater_than_sign", "less_than_sign")
_SHOWN = {
    "question_mark": "?",
    "exclamation_mark": "!",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "slash": "/",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "up": "↑",
    "down": "↓",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "escape": "esc",
    "f1": "F1",
    "f4": "F4",
    "f5": "F5",
    "f8": "F8",
    "f9": "F9",
    "right_curly_bracket": "}",
    "left_curly_bracket": "{",
}
"""Names of keys that people call otherwise."""

ACTIONS = (
    Action("back", Place.ANYWHERE, "escape", "back", "Go back one level."),
    Action("help", Place.ANYWHERE, "question_mark,f1", "help", "Show all keys.", in_footer=True),
    Action("command_palette", Place.ANYWHERE, "ctrl+p", "commands", "Find an action by name."),
    Action("change_theme", Place.ANYWHERE, "f4", "theme", "Choose a colour theme."),
    Action(
        "suspend_process", Place.ANYWHERE, "ctrl+z", "suspend",
        "Go back to the shell for a while; fg returns. In a text field, undo.",
    ),
    Action("quit", Place.ANYWHERE, "q,ctrl+c", "quit", "Quit. In a text field, q is a letter."),
    Action(
        "search", Place.BOX, "enter,ctrl+enter", "search",
        "Search for the typed text. Pasted text is searched automatically.", in_footer=True,
    ),
    Action(
        "new_line", Place.BOX, "ctrl+j,alt+enter,shift+enter", "new line",
        "Begin a new line. Some terminals send shift+enter as enter; ctrl+j works everywhere.",
        in_footer=True,
    ),
    Action(
        "copy_command", Place.ANSWER, "c", "copy", "Copy the command of the step or check.",
        in_footer=True,
    ),
    Action(
        "run_here", Place.ANSWER, "exclamation_mark", "run",
        "Run the command here if it is read-only, after you have seen it and said yes.",
        in_footer=True,
    ),
    Action(
        "copy_for_all", Place.ANSWER, "a", "all nodes",
        "Copy the command for all nodes of the job: srun, kubectl or clush.",
    ),
    Action(
        "tick", Place.ANSWER, "space", "done",
        "Mark the step of the fix as done, or as not done.", in_footer=True,
    ),
    Action(
        "next_step", Place.ANSWER, "s", "step", "Go to the next step of the fix.", in_footer=True
    ),
    Action("previous_step", Place.ANSWER, "S", "previous step", "Go to the previous step."),
    Action(
        "next_candidate", Place.ANSWER, "right_square_bracket", "candidate",
        "Show the next candidate.", in_footer=True,
    ),
    Action(
        "previous_candidate", Place.ANSWER, "left_square_bracket", "previous candidate",
        "Show the previous candidate.",
    ),
    Action(
        "next_evidence", Place.ANSWER, "e", "evidence",
        "Show the next line of the log that supports this incident.", in_footer=True,
    ),
    Action(
        "previous_evidence", Place.ANSWER, "E", "previous evidence",
        "Show the previous line that supports this incident.",
    ),
    Action(
        "talk", Place.ANSWER, "t", "talk", "Go to the conversation.",
        in_footer=True,
    ),
    Action(
        "paste", Place.ANSWER, "p", "new search", "Go to the paste box.", in_footer=True
    ),
    Action(
        "log", Place.ANSWER, "l", "log", "Show the log on the whole screen, or go back.",
        in_footer=True,
    ),
    Action(
        "ranks", Place.ANSWER, "r", "ranks", "Show which rank failed first, and the others.",
        in_footer=True,
    ),
    Action("copy_note", Place.ANSWER, "C", "copy note", "Copy the hand-off note."),
    Action(
        "export", Place.ANSWER, "x", "export", "Write the hand-off note, as Markdown or JSON."
    ),
    Action(
        "answer('{key}')", Place.ANSWER, "1,2,3,4,5,6,7,8,9", "answer",
        "Pick an answer to the question; before the first search, pick a sample.",
    ),
    Action("undo", Place.ANSWER, "u", "undo", "Undo your last message or answer."),
    Action(
        "again", Place.ANSWER, "f5", "again", "Diagnose again what the log holds by now."
    ),
    Action("new", Place.ANSWER, "n", "new incident", "Draft a new record from this case."),
    Action(
        "browse", Place.ANSWER, "slash", "browse",
        "Search and filter all records. In the log, / searches the log.",
    ),
    Action("history", Place.ANSWER, "h", "history", "Show the last searches."),
    Action("open", Place.ANSWER, "o", "open", "Open a log, or the directory with one job's logs."),
    Action(
        "tour", Place.ANSWER, "T", "tour", "Show how kb works, with samples to try."
    ),
    Action("batch", Place.ANSWER, "b", "batch", "Classify all logs in a directory."),
    Action(
        "next_case", Place.ANSWER, "greater_than_sign,f9", "next case",
        "Show the next open case; its log, conversation and ticks are as you left them.",
        in_footer=True,
    ),
    Action(
        "previous_case", Place.ANSWER, "less_than_sign,f8", "previous case",
        "Show the previous open case.",
    ),
    Action(
        "close_case", Place.ANSWER, "D", "close case",
        "Close this case; kb cases lists those that are kept.",
    ),
    Action(
        "read_candidate", Place.LIST, "enter", "read", "Go to what the candidate says.",
        in_footer=True,
    ),
    Action(
        "page_down", Place.LIST, "pagedown", "scroll", "Scroll what the candidate says.",
        in_footer=True,
    ),
    Action("page_up", Place.LIST, "pageup", "scroll back", "Scroll it back."),
    Action(
        "find_text", Place.LOG, "slash", "search",
        "Search for words. Capitals count only if you type some.", in_footer=True,
    ),
    Action(
        "next_found", Place.LOG, "n", "next", "Go to the next line with these words.",
        in_footer=True,
    ),
    Action("previous_found", Place.LOG, "N", "previous", "Go to the line before with these words."),
    Action(
        "next_error", Place.LOG, "right_square_bracket", "error",
        "Go to the next line that tells of a failure.", in_footer=True,
    ),
    Action(
        "previous_error", Place.LOG, "left_square_bracket", "previous error",
        "Go to the one before.",
    ),
    Action(
        "filter_lines", Place.LOG, "f", "filter",
        "See only some lines: rank 3, host node-1, error, words; nothing for all.",
        in_footer=True,
    ),
    Action("wrap", Place.LOG, "w", "wrap", "Wrap long lines, or cut them.", in_footer=True),
    Action(
        "next_file", Place.LOG, "right_curly_bracket", "next file",
        "Show the next file of the job; with a filter, the next one that fits.",
    ),
    Action(
        "previous_file", Place.LOG, "left_curly_bracket", "previous file", "Show the one before."
    ),
    Action(
        "follow", Place.LOG, "F", "follow",
        "Follow a log that is still being written: stay at its end, and diagnose again when"
        " something fails.",
    ),
    Action("say", Place.TALK, "enter", "send", "Send the typed message.", in_footer=True),
    Action(
        "new_line", Place.TALK, "ctrl+j,alt+enter,shift+enter", "new line",
        "Begin a new line in the message.", in_footer=True,
    ),
    Action(
        "earlier", Place.TALK, "up", "earlier", "Bring back what you said before.",
        in_footer=True,
    ),
    Action("later", Place.TALK, "down", "later", "Bring back what you said after it."),
    Action(
        "turns_up", Place.TALK, "pageup", "scroll", "Scroll the conversation back.",
        in_footer=True,
    ),
    Action("turns_down", Place.TALK, "pagedown", "scroll on", "Scroll the conversation on."),
    Action(
        "show_line", Place.RANKS, "enter", "show line", "Show the line in the log.",
        in_footer=True,
    ),
    Action("filter", Place.BROWSE, "slash", "filter", "Go to the filter.", in_footer=True),
    Action(
        "read", Place.BROWSE, "enter", "read", "Switch between the list and the record.",
        in_footer=True,
    ),
    Action(
        "search_again", Place.HISTORY, "enter", "search again", "Repeat the selected search.",
        in_footer=True,
    ),
    Action(
        "open_result", Place.BATCH, "enter", "open", "Open the log and its answer.",
        in_footer=True,
    ),
    Action("sort", Place.BATCH, "s", "sort", "Sort by the next column.", in_footer=True),
    Action(
        "change_unit", Place.BATCH, "u", "jobs or files",
        "Classify each directory as a job, or each file by itself.", in_footer=True,
    ),
    Action(
        "save", Place.DRAFT, "ctrl+o", "save", "Write the draft to a new file.", in_footer=True
    ),
)  # fmt: skip


def _is_typed(key: str) -> bool:
    return len(key) == 1 or key in _CHARACTERS


def actions_of(place: Place) -> tuple[Action, ...]:
    """The actions of one place, in the order in which they are shown."""
    return tuple(action for action in ACTIONS if action.place is place)


def bindings(place: Place, owner: str = "") -> list[BindingType]:
    """The bindings of one place, to be changed by the user's keymap; `owner` as in `app.`, where
    another does the actions."""
    return [binding for action in actions_of(place) for binding in _bindings(action, owner)]


def hints(place: Place) -> tuple[Action, ...]:
    """What the footer says: the place's own actions, then help."""
    own = [action for action in actions_of(place) if action.in_footer]
    general = [action for action in actions_of(Place.ANYWHERE) if action.in_footer]
    return (*own[: MAX_HINTS - len(general)], *general)


def keys_table() -> str:
    """All actions as a table in Markdown, for docs/tui.md."""
    rows = [
        f"| {action.place} | {_written_keys(action)} | `{action.identifier}` | {action.help} |"
        for place in Place
        for action in actions_of(place)
    ]
    return "\n".join(["| where | keys | action | does |", "| --- | --- | --- | --- |", *rows])


def keymap(keys: Mapping[str, str]) -> dict[str, str]:
    """The user's keys by action, checked.

    Raises:
        SettingsError: there is no such action.
    """
    known = {action.identifier for action in ACTIONS if "{key}" not in action.name}
    for name in keys:
        if name not in known:
            raise SettingsError(
                f"the configuration binds keys to the unknown action '{name}';"
                f" choose one of: {', '.join(sorted(known))}"
            )
    return dict(keys)


def _written_keys(action: Action) -> str:
    return ", ".join(f"`{_SHOWN.get(key, key)}`" for key in action.keys.split(","))


def _bindings(action: Action, owner: str) -> Iterator[Binding]:
    if "{key}" not in action.name:
        yield Binding(action.keys, f"{owner}{action.name}", action.hint, id=action.identifier)
        return
    for key in action.keys.split(","):
        yield Binding(key, f"{owner}{action.name.format(key=key)}", action.hint)
