"""Stacks of several ranks, as py-spy prints them: who waits, and who stands elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from kb.checks.model import Found, Output, Reader, Unread
from kb.checks.readers.names import capital, named

_HEAD = re.compile(r"==+ ?\S|Process \d{1,10}: ")
_RANK = re.compile(r"\brank[ =:]?(\d{1,6})\b")
_PID = re.compile(r"(?:\bpid |^Process )(\d{1,10})")
_THREAD = re.compile(r"Thread \S+ \(.*?\)(?:: \"(.*)\")?")
_FRAME = re.compile(r"\s+(\S{1,200}) \((.{1,300}?):(\d{1,7})\)")
_WORLD = re.compile(r"WORLD_SIZE[=: ]+(\d{1,6})\b")

_COLLECTIVES = re.compile(
    r"(?:.*\.)?(?:all_reduce|all_gather\w*|_all_gather_base|reduce_scatter\w*|broadcast\w*"
    r"|all_to_all\w*|reduce|gather_object|scatter_object_list|batch_isend_irecv"
    r"|\w*barrier|wait_for_everyone)"
)
_GPU_WAITS = re.compile(r"(?:.*\.)?(?:synchronize|item|cpu|tolist|nonzero|wait)")
_LEAVING = re.compile(
    r"(?:.*\.)?(?:destroy_process_group|_shutdown|_exitfunc|_run_exitfuncs|print_exception"
    r"|print_exc|format_exception|excepthook|shutdown)"
)
_LIBRARY = re.compile(r"(?:^|/)(?:torch|deepspeed|accelerate|lightning|threading\.py|contextlib)")


class Frame(msgspec.Struct, frozen=True):
    """One call of a stack."""

    function: str
    file: str
    line: str

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


class Stack(msgspec.Struct, frozen=True):
    """The main thread of one process."""

    name: str
    rank: int | None
    row: int
    frames: tuple[Frame, ...]
    """Innermost first."""

    @property
    def wait(self) -> Frame | None:
        """The collective, barrier or wait for the GPU that it stands in."""
        collective = (frame for frame in self.frames if _COLLECTIVES.fullmatch(frame.function))
        inner = self.frames[0]
        return next(collective, inner if _GPU_WAITS.fullmatch(inner.function) else None)

    @property
    def leaving(self) -> Frame | None:
        """The frame of an exception that is printed, or of the end of the process."""
        return next((one for one in self.frames if _LEAVING.fullmatch(one.function)), None)

    @property
    def caller(self) -> Frame:
        """The innermost line that is the user's own."""
        own = (frame for frame in self.frames if not _LIBRARY.search(frame.file))
        return next(own, self.frames[-1])


def read_stacks(output: Output) -> Iterator[Found | Unread]:
    """Compare the main threads of the ranks."""
    stacks = []
    for stack in _stacks(output):
        if stack.frames:
            stacks.append(stack)
        else:
            yield Unread(f"the stack of {stack.name}", stack.row)
    missing = list(_missing(output, stacks))
    yield from missing
    if len(stacks) < 2:
        return
    leaving = [stack for stack in stacks if stack.leaving]
    if leaving:
        text = f"{capital(_names(leaving))}: failing or ending, in {leaving[0].leaving}."
        yield Found("rank-failing-blocks-clean", text, leaving[0].row)
    waiting = [stack for stack in stacks if stack.wait and not stack.leaving]
    others = [stack for stack in stacks if not stack.wait and not stack.leaving]
    if others and len(waiting) > len(others):
        text = (
            f"{capital(_names(others))} {_verb('stand', others)} in {others[0].frames[0]}, while"
            f" {_names(waiting)} {_verb('wait', waiting)} in {_common(waiting)}."
        )
        yield Found("waiting", text, others[0].row)
    elif not others and not leaving:
        yield from _all_wait(waiting, complete=not missing)
    elif not waiting and not leaving and not missing:
        first = others[0]
        text = f"None of the {len(stacks)} ranks waits: {first.name} stands in {first.frames[0]}."
        yield Found("none-waits", text, first.row)


def _all_wait(stacks: list[Stack], *, complete: bool) -> Iterator[Found]:
    places: dict[tuple[str, str], list[Stack]] = {}
    for stack in stacks:
        places.setdefault((str(stack.wait), str(stack.caller)), []).append(stack)
    if len(places) == 1:
        if not complete:
            return  # they wait for the ranks that have no stack
        text = (
            f"All {len(stacks)} ranks stand in {stacks[0].wait}: if a second look shows the same,"
            " the communication itself hangs."
        )
        yield Found("issued-work", text, stacks[0].row)
        return
    groups = sorted(places.values(), key=len)
    said = "; ".join(
        f"{_names(group)} in {group[0].wait}, called at {group[0].caller}" for group in groups[:3]
    )
    yield Found(
        "ranks-took-different-branches", f"The ranks stand apart: {said}.", groups[0][0].row
    )


def _missing(output: Output, stacks: list[Stack]) -> Iterator[Found]:
    ranks = {stack.rank for stack in stacks if stack.rank is not None}
    sizes = [int(match[1]) for line in output.lines if (match := _WORLD.search(line))]
    world = max(sizes, default=max(ranks, default=-1) + 1)
    if len(ranks) < 2 or world > 100_000:
        return
    missing = [str(rank) for rank in range(world) if rank not in ranks]
    if missing:
        text = f"There are stacks of {len(ranks)} of {world} ranks; none of rank {named(missing)}."
        yield Found("rank-not-running", text, 0)


def _stacks(output: Output) -> Iterator[Stack]:
    """The main threads with what stands above each."""
    name, rank, start = "", None, None
    frames: list[Frame] = []
    count = 0
    for row, line in enumerate((*output.lines, "== end")):
        head, thread = _HEAD.match(line), _THREAD.match(line)
        if (head or thread) and start is not None:
            yield Stack(name or f"process {count}", rank, start, tuple(frames))
            name, rank, start, frames = "", None, None, []
        if head and not (rank is not None and line.startswith("Process ")):
            rank_text, pid = _RANK.search(line), _PID.search(line)
            rank = int(rank_text[1]) if rank_text else None
            name = f"rank {rank}" if rank is not None else f"process {pid[1]}" if pid else ""
        elif thread and thread[1] in (None, "MainThread"):
            start, count = row, count + 1
        elif start is not None and (frame := _FRAME.fullmatch(line)):
            frames.append(Frame(*frame.groups()))


def _names(stacks: list[Stack]) -> str:
    return named([stack.name for stack in stacks])


def _verb(verb: str, stacks: list[Stack]) -> str:
    return f"{verb}s" if len(stacks) == 1 else verb


def _common(stacks: list[Stack]) -> str:
    return Counter(str(stack.wait) for stack in stacks).most_common(1)[0][0]


READERS: dict[str, Reader] = {
    "py-spy-all-ranks": read_stacks,
}
"""By the id of the check."""
