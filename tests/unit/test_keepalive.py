"""What a connection is made with, beside its URL."""

import pytest

from mutirao.database.keepalive import NOTICED_WITHIN, parameters

FAR = "postgresql://mutirao@db.internal/workflows"


def test_both_sides_of_a_connection_over_the_network_notice_a_vanished_host() -> None:
    found = parameters(FAR)
    waited = found["keepalives_idle"] + found["keepalives_interval"] * found["keepalives_count"]
    assert found["keepalives"] == 1
    assert waited <= NOTICED_WITHIN.total_seconds()
    assert found["tcp_user_timeout"] <= NOTICED_WITHIN.total_seconds() * 1000
    assert found["connect_timeout"] <= NOTICED_WITHIN.total_seconds()
    for name in ("tcp_keepalives_idle", "tcp_user_timeout", "client_connection_check_interval"):
        assert f"-c {name}=" in found["options"]


def test_what_the_address_says_wins() -> None:
    found = parameters(f"{FAR}?keepalives_idle=60&connect_timeout=3&options=-c%20tcp_keepalives_idle%3D90")
    assert "keepalives_idle" not in found
    assert "connect_timeout" not in found
    # PostgreSQL takes the last word.
    assert found["options"].endswith("-c tcp_keepalives_idle=90")


def test_what_the_engine_needs_is_the_last_word() -> None:
    found = parameters(f"{FAR}?options=-c%20statement_timeout%3D1", options="-c statement_timeout=10000")
    assert found["options"].endswith("-c statement_timeout=1 -c statement_timeout=10000")


def test_what_the_environment_says_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "3")
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=8MB")
    found = parameters(FAR)
    assert "connect_timeout" not in found
    assert found["options"].endswith("-c work_mem=8MB")


@pytest.mark.parametrize("url", ["postgresql://mutirao@/orders?host=%2Frun%2Fsocket", "postgresql:///orders"])
def test_a_socket_needs_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    assert parameters(url) == {"target_session_attrs": "read-write"}


def test_one_server_of_several_is_one_that_writes_unless_the_address_says_otherwise() -> None:
    several = "postgresql://mutirao@one,two/workflows"
    assert parameters(several)["target_session_attrs"] == "read-write"
    assert "target_session_attrs" not in parameters(f"{several}?target_session_attrs=any")
