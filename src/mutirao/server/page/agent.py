"""Which browser somebody sits at, in short: what browsers say of themselves is long, and mostly about others."""

import re

# In this order: each says what those after it say, too.
_BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Version", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_LONGEST = 80


def short_agent(said: str) -> str:
    """Such as `Firefox 140, Linux`; of what is no browser, the beginning."""
    for word, name in _BROWSERS:
        if found := re.search(rf"{word}/(\d+)", said):
            system = next((known for part, known in _SYSTEMS if part in said), "")
            return f"{name} {found[1]}" + (f", {system}" if system else "")
    return said[:_LONGEST]
