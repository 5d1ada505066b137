"""A mistake on purpose, behind doors that only coverage opens one after another: whoever fuzzes must find it."""

_WORD = "bug"


def trip(text: str) -> None:
    if len(text) < len(_WORD):
        return
    if text[0] == "b":
        if text[1] == "u":
            if text[2] == "g":
                raise ZeroDivisionError("the planted mistake")
            return
        return
