"""What is wrong with a value of a request or a command, in words of ours: by the kind of the framework's error.

The value is no part of it: it may be a password.
"""

from collections.abc import Mapping
from typing import Any

_WHOLE_NUMBER = "a whole number is wanted"
_TIME = "a time is wanted, with its zone: 2031-12-24T18:00:00Z"
_DATE = "a date is wanted: 2031-12-24"
_OBJECT = "an object is wanted: {{…}}"

# What is in braces, the error tells.
_TOLD = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field here",
    "none_required": "null is wanted",
    "int_type": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_parsing_size": "the number is too large",
    "int_from_float": _WHOLE_NUMBER,
    "float_type": "a number is wanted",
    "float_parsing": "a number is wanted",
    "finite_number": "a finite number is wanted",
    "bool_type": "true or false is wanted",
    "bool_parsing": "true or false is wanted",
    "string_type": "a text is wanted",
    "string_unicode": "it has something that is no character",
    "string_too_long": "it may have {max_length} characters at most",
    "string_too_short": "it has {min_length} characters at least",
    "string_pattern_mismatch": "it is not of the form {pattern}",
    "list_type": "a list is wanted: […]",
    "too_long": "there may be {max_length} at most",
    "too_short": "there are {min_length} at least",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "literal_error": "one of these is wanted: {expected}",
    "greater_than": "it is more than {gt}",
    "greater_than_equal": "it is {ge} at least",
    "less_than": "it is less than {lt}",
    "less_than_equal": "it is {le} at most",
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "timezone_aware": _TIME,
    "date_type": _DATE,
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_from_datetime_inexact": _DATE,
    "time_delta_type": "a span of time is wanted",
    "time_delta_parsing": "a span of time is wanted",
    "value_error": "{error}",
}


def told(error: Mapping[str, Any]) -> str:
    """One line."""
    kind = error["type"]
    if kind in ("too_long", "too_short") and isinstance(error["input"], str):
        kind = f"string_{kind}"
    known = _TOLD.get(kind)
    if known is None:
        return str(error["msg"]) if kind == "json_invalid" else "it cannot be read"
    if kind == "string_too_short" and error["ctx"]["min_length"] == 1:
        return "it may not be empty"
    given = error.get("ctx", {})
    if "expected" in given:
        given = {"expected": given["expected"].replace("'", "")}
    return known.format_map(given)
