"""Conditions by chance: such as are allowed, such as are not quite, and such as nobody would write."""

import random
import re
from collections.abc import Callable, Sequence

import fuzz.stage  # noqa: F401 finds the next one
from condition_attacks import ATTACKS, NAMES, SLIPS

_PIECE = re.compile(r"'(?:[^']|'')*'|\w+|\s+|[<>=!|~+\-*/%?#@&^]+|.", re.DOTALL)
_DEEPEST = 4
_STRANGE = ("\u00a0", "\u200b", "\u202e", "é", "ı", "\N{PILE OF POO}", "ﬀ", "\u0301", "\t", "\n", "\r", "\x0b", "\x01", "\\", "`", "’")
_WORDS = (
    *"and or not is null true false unknown distinct from between symmetric in any some all like ilike case when then else end".split(),
    *"coalesce nullif greatest least cast as extract position substring for trim leading both array year month day epoch week dow".split(),
    *"length lower upper btrim substr left right starts_with strpos abs round floor ceil trunc mod sign date_trunc jsonb_typeof".split(),
    *"text integer bigint numeric boolean date timestamptz timestamp with without time zone interval jsonb text[] numeric(10,2)".split(),
    *"select from where union now() current_user pg_sleep(1) nextval('canary_number') boom('x') count(*) row ctid collate".split(),
    *"( ) [ ] , :: . ; -- /* */ $$ $1 : + - * / % = <> != < > <= >= || ~ ~* !~ -> ->> #> #>> @> <@ ? ?| ?& ^ @ & | << !!".split(),
    *"'' 'x' '1' '{}' '[]' '{a,b}' '2024-01-01' '1 day' 'now' 'infinity' 'NaN' 0 1 -1 .5 1. 1e3 0x1 9223372036854775808".split(),
    '"a1"', '"', "'", "E'\\''", "U&'x'", "two words", "NaN", "'\\'", "%", "_",
    *NAMES,
)  # fmt: skip
_NUMBERS = ("0", "1", "2", "-1", "10", "2147483648", "9223372036854775807", "-9223372036854775808", "0.5", "100.25", ".000001", "9" * 40)
_TEXTS = ("''", "'x'", "'X'", "' x '", "'failed'", "'5'", "'1.5'", "'true'", "'ß'", "'ÄÖ'", "'%'", "'a_b\\%'", "'İ'", "'a''b'", "'{}'", "'[1]'", "'ÿ'")
_DATES = ("'2024-01-01'", "'2024-02-29'", "'0001-01-01'", "'9999-12-31'", "'2024-13-01'", "date '2024-01-01'", "'today'")
_TIMES = ("'2024-01-01 12:00Z'", "'2024-01-01T00:00:00+05'", "timestamptz '2024-01-01 10:00+00'", "'now'", "'9999-12-31 23:59Z'")
_SPANS = ("interval '1 day'", "interval '1 month'", "interval '-3 hours'", "interval '100 years'", "interval '1 fortnight'")
_JSONS = ("""'{"a": 1}'""", "'[1, 2]'", "'null'", "'1'", "'\"x\"'", "'{}'", """'{"a": {"b": [1, null, "é"]}}'""", "'{'")
_PATTERNS = ("'^a'", "'a*'", "'(a|b)+$'", "'[[:alpha:]]'", "'%a%'", "'_'", "'\\d+'", "'(a'", "'((a{9}){9})'", "'\\'", "'[^x]'", "'.*'")
_FIELDS = "year month day hour minute second epoch quarter week dow doy isodow isoyear century".split()


class Predicates:
    """Always the same ones for a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 it is to be the same again
        self._known = [each.condition for part in (ATTACKS, SLIPS) for family in part.values() for each in family]
        self._kinds: Sequence[Callable[[], str]] = (
            *[self._allowed] * 6,
            *[self._almost] * 3,
            *[self._attack] * 3,
            *[self._soup] * 2,
            self._deep,
            self._huge,
        )

    def next(self) -> str:
        made = self._pick(self._kinds)().replace("\0", "")
        return made.encode("utf-8", "replace").decode()

    def _pick[T](self, choices: Sequence[T]) -> T:
        return self._chance.choice(choices)
