"""
Errors raised on purpose. Each message is one sentence for the user.

* KbError             the root of all errors raised on purpose, here and in `kb.errors`
  x EncoderError      the encoder cannot be loaded
  x PatternError      a signature does not compile
  x TooManyFiles      the process may open no more files
  x StoreError        the store cannot be opened or built
    * StoreMissing      nothing has been built in this directory yet
    * StoreDamaged      it is corrupt or of another version; building it again helps
    * StoreReplaced     another process removed its files meanwhile; to open it again helps
"""

import errno


class KbError(Exception):
    """The base of all errors that are raised on purpose."""


class EncoderError(KbError):
    """The encoder cannot be loaded."""


class PatternError(KbError):
    """A signature does not compile."""


class TooManyFiles(KbError):  # noqa: N818  a state, not a failure
    """The process may open no more files, so nothing is known of what it could not open."""

    def __init__(self) -> None:
        super().__init__("too many open files; raise the limit of open files (ulimit -n)")


def is_lack_of_files(error: BaseException) -> bool:
    """Whether something failed because the process, or the system, may open no more files."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


class StoreError(KbError):
    """The store cannot be opened or built."""


class StoreMissing(StoreError):  # noqa: N818  a state, not a failure
    """Nothing has been built in this directory yet."""


class StoreDamaged(StoreError):  # noqa: N818  a state, not a failure
    """The store is corrupt or of another version; building it again helps."""


class StoreReplaced(StoreError):  # noqa: N818  a state, not a failure
    """Another process removed the files of the store while they were being read."""
