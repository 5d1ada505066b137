"""The first page: what somebody who is new here sees."""

from mutirao.server.page.shell import pages

router = pages()
