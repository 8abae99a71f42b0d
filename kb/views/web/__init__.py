"""Pages of records and answers: of the server and of the static site, from the same templates.

Every link is relative to the page, so the pages work below any prefix of a proxy, and in a
directory. Nothing needs a script; what logs and records say is text.
"""

from kb.views.web.answer import answer_page
from kb.views.web.pages import (
    DIRECTORIES,
    STATIC,
    Pages,
    Row,
    place_of,
    row_of,
    style_sheet,
)
from kb.views.web.record import record_page
from kb.views.web.site import check_directory, write_site

__all__ = [
    "DIRECTORIES",
    "STATIC",
    "Pages",
    "Row",
    "answer_page",
    "check_directory",
    "place_of",
    "record_page",
    "row_of",
    "style_sheet",
    "write_site",
]
