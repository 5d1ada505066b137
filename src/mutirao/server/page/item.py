"""One work item."""

from mutirao.server.page.shell import pages

router = pages()
