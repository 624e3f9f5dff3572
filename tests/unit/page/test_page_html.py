"""What comes from outside stands on a page as text: no markup, no turned or hidden characters."""

from shardaudit.page.page_html import html_page
from tests.builders import NOW


def test_a_page_shows_what_a_browser_would_obey() -> None:
    hostile = "\x00\x1b[2J\u202egpj.exe<b>\u2028\v a\\\\b"
    page = html_page("problem.html", {"title": hostile, "problem": hostile, "now": NOW})
    assert page.count(r"\x00\x1b[2J\u202egpj.exe&lt;b&gt;\u2028\x0b a\\b") >= 1
    assert all(line.isprintable() for line in page.split("\n"))
