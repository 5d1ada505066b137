"""One browser for all tests of the pages: a fixture that modules import is another one in each, and so would be its browser."""

from page_kit import chromium  # noqa: F401 gives the fixture
