"""What happened in a job, in the words of the field: no line of a log says it, but records do."""

from __future__ import annotations

from enum import StrEnum


class Finding(StrEnum):
    """What a rule found out, as a sentence that is searched together with the lines."""

    EXCEPTION = (
        "one rank raised an exception before all others, in its own program, data or device; the"
        " other ranks lost their connection to it and failed after it"
    )
    EVERYWHERE = "all ranks fail by themselves in the same way"
    CRASH = (
        "one rank crashed with a signal such as a segmentation fault or abort in native code,"
        " without a Python traceback; the other ranks lost their connection to it"
    )
    KILLED = (
        "one rank was killed with SIGKILL and said nothing: out of memory killer, cgroup memory"
        " limit or an external kill"
    )
    QUIT = "one rank exited by itself with a nonzero exit code and no traceback"
    MEMORY = "the process of one rank ran out of host memory"
    GPU_MEMORY = "one rank ran out of GPU memory"
    DESYNC = (
        "ranks called different collectives or the same one with different shapes: one rank took"
        " another branch, or had other data or configuration"
    )
    HANG = (
        "one rank hangs outside of the collective that all other ranks wait in until their"
        " timeout; the hung rank printed no error"
    )
    NETWORK = "the network link of one host went down or the host cannot be reached by the others"
    STRANGER = "one node cannot connect to the rendezvous endpoint that the others wait at"
    NEVER_JOINED = "a node never joined the rendezvous and left no log"
    DIVERGED = "the values of one rank became nan or inf first and spread to all ranks"
    STRAGGLER = "one rank is a straggler: it is slower than the others, which wait for it"
