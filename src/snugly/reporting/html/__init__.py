"""The page: one offline file that shows where memory goes, predicted or measured.

`page_of_prediction` and `page_of_record` say what is on it, as plain data; `render` makes the text
of the file from that, and `write_page` the file. Nothing on the page is fetched from anywhere, and
every name out of a program is shown as text.
"""

from snugly.reporting.html.contents import page_of_prediction, page_of_record
from snugly.reporting.html.page import Page
from snugly.reporting.html.render import refuse_unwritable, render, write_page

__all__ = [
    "Page",
    "page_of_prediction",
    "page_of_record",
    "refuse_unwritable",
    "render",
    "write_page",
]
