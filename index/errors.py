"""
Errors raised on purpose. Each message is one sentence for the user.

* SearchIndexError
  x EncoderError   the encoder cannot be loaded
  x PatternError   a signature does not compile
  x StoreError     the store cannot be opened or built
    * StoreMissing   nothing has been built in this directory yet
    * StoreDamaged   it is corrupt or of another version; building it again helps
"""


class SearchIndexError(Exception):
    """The base of all errors that `index` raises on purpose."""


class EncoderError(SearchIndexError):
    """The encoder cannot be loaded."""


class PatternError(SearchIndexError):
    """A signature does not compile."""


class StoreError(SearchIndexError):
    """The store cannot be opened or built."""


class StoreMissing(StoreError):  # noqa: N818  a state, not a failure
    """Nothing has been built in this directory yet."""


class StoreDamaged(StoreError):  # noqa: N818  a state, not a failure
    """The store is corrupt or of another version; building it again helps."""
