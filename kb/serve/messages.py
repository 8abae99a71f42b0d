"""What the libraries of a server have to say, on the server's own messages."""

from __future__ import annotations

import logging

from index.progress import Notify
from kb.containment import reason
from kb.log.clean import strip_controls


def tell_by(notify: Notify, name: str) -> None:
    """Tell what a library says, by the name of its logger."""
    logger = logging.getLogger(name)
    logger.handlers = [_Messages(notify)]
    logger.setLevel(logging.INFO)
    logger.propagate = False


class _Messages(logging.Handler):
    """What a library warns of, on one line each: requests are hostile, and a log is read at a
    terminal."""

    def __init__(self, notify: Notify) -> None:
        super().__init__()
        self._notify = notify

    def emit(self, record: logging.LogRecord) -> None:
        """Tell one."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, Exception):
            trace = error.__traceback__
            while trace and trace.tb_next:
                trace = trace.tb_next
            place = f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
            self._notify(strip_controls(f"a request failed: {reason(error)}{place}"))
        elif record.levelno >= logging.ERROR:
            self._notify(strip_controls(record.getMessage()))
