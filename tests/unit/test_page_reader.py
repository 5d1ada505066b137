"""How times are written for one reader, whatever somebody else has put in."""

from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from mutirao.server.page.reader import Reader

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def reader(zone: str, language: str = "en", accepted: str | None = None) -> Reader:
    return Reader(language, ZoneInfo(zone), "system", True, NOW, accepted)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Recife", "UTC"])
@pytest.mark.parametrize("at", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_the_first_and_the_last_moment_can_be_shown_everywhere(zone: str, at: datetime) -> None:
    assert reader(zone).moment(at)
    assert reader(zone).ago(at)


def test_a_time_is_told_in_the_zone_and_the_form_of_its_reader() -> None:
    assert reader("Asia/Tokyo", "en", "en-GB").moment(NOW) == "31 Jan 2026, 21:00:00"
    assert reader("America/Recife", "pt-BR").moment(NOW) == "31 de jan. de 2026 09:00:00"
    assert "9:00:00" in reader("America/Recife", "en", "en-US").moment(NOW)


@pytest.mark.parametrize(("count", "told"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (5 * 10**12, "5,000 GB")])
def test_sizes_are_told_in_units_that_one_can_read(count: int, told: str) -> None:
    assert reader("UTC").size(count) == told


@pytest.mark.parametrize(
    "value", [10**30, Decimal("1e26"), Decimal("-12345678901234567890.123456789"), Decimal("1e-30"), 1e300]
)
def test_a_number_of_any_size_can_be_shown(value: float | Decimal) -> None:
    assert reader("UTC").number(value)
    assert reader("UTC").value(value)


def test_numbers_that_are_equal_are_written_each_with_its_own_sign() -> None:
    assert [reader("UTC").number(each) for each in (0.0, -0.0, 0)] == ["0", "-0", "0"]
