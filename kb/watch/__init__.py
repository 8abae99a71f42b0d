"""Growing logs: follows files over rotation, and says each incident once when it appears."""

from kb.watch.event import Event
from kb.watch.follow import allow_open_files
from kb.watch.notify import Notifier
from kb.watch.watcher import Watcher

__all__ = ["Event", "Notifier", "Watcher", "allow_open_files"]
