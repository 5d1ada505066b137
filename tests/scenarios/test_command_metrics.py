"""`--metrics-port`: what Prometheus reads from real workers and clocks, and how they say that they are well."""

import re
import socket
import urllib.error
import urllib.request
from pathlib import Path

import psycopg
import pytest
from command import FLOWS, Background, answer, assert_refused, mutirao, running
from prometheus_client.parser import text_string_to_metric_families
from psycopg import sql

from mutirao.testing.database import TestServer

PAGE = Path(__file__).parents[2] / "docs" / "observe.md"


def start(url: str, flow: str, *words: str) -> int:
    found: list[int] = answer("instance", "start", flow, *words, "--database", url)["instances"]
    return found[0]


def served(process: Background) -> str:
    return process.wait_for("Metrics: ").removeprefix("Metrics: ").removesuffix("/metrics")


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answered:
            return answered.status, answered.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


Sample = tuple[str, frozenset[tuple[str, str]]]


def scrape(base: str) -> dict[Sample, float]:
    status, text = get(f"{base}/metrics")
    assert status == 200
    return {
        (
            sample.name,
            frozenset((name, value) for name, value in sample.labels.items() if name != "database"),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def key(metric: str, **labels: str) -> Sample:
    return metric, frozenset(labels.items())


def wait_for(base: str, metric: str, **labels: str) -> dict[Sample, float]:
    """All values, once this one is there and not 0; the test's own timeout is the deadline."""
    while not (found := scrape(base)).get(key(metric, **labels)):
        pass
    return found


def test_metrics_of_a_worker(database_url: str, tmp_path: Path) -> None:
    flows = [f"{FLOWS}:{flow}" for flow in ("Order", "Flaky")]
    with running("worker", *flows, "--metrics-port", 0, "--concurrency", 7, "--database", database_url) as worker:
        base = served(worker)
        worker.wait_for("is ready")
        start(database_url, "flaky", f"marker={tmp_path / 'marker'}")
        start(database_url, "order")
        start(database_url, "order", "customer=bankrupt")
        wait_for(base, "mutirao_attempts_total", flow="order", task="ship", outcome="done")
        wait_for(base, "mutirao_failures_total", flow="order", task="pay", fate="given_up")
        wait_for(base, "mutirao_failures_total", flow="flaky", task="step", fate="retried")
        wait_for(base, "mutirao_clock_done_total", duty="retries")
        wait_for(base, "mutirao_attempts_total", flow="flaky", task="step", outcome="done")
        found = wait_for(base, "mutirao_exceptions_open", flow="order")
        assert get(f"{base}/healthz") == (200, "ok\n")
        assert get(f"{base}/elsewhere")[0] == 404
    assert found[key("mutirao_attempts_total", flow="order", task="pay", outcome="done")] == 1
    assert found[key("mutirao_attempts_total", flow="order", task="pay", outcome="failed")] == 1
    assert found[key("mutirao_job_seconds_count", flow="order", task="pay")] == 2
    assert found[key("mutirao_instances_open", flow="order", status="open.exception")] == 1
    assert found[key("mutirao_database_seconds_count", call="turn")] > 2
    assert found[key("mutirao_slots", state="used")] + found[key("mutirao_slots", state="free")] == 7
    assert found[key("mutirao_database_up")] == 1
    assert found[key("process_resident_memory_bytes")] > 10_000_000


def test_metrics_of_a_clock(database_url: str) -> None:
    with running("clock", "--metrics-port", 0, "--database", database_url) as clock:
        base = served(clock)
        clock.wait_for("ready")
        assert mutirao("flow", "apply", f"{FLOWS}:Order", "--database", database_url).returncode == 0
        for _ in range(3):
            start(database_url, "order")
        found = wait_for(base, "mutirao_jobs", flow="order", task="pay", status="ready")
        while found[key("mutirao_jobs", flow="order", task="pay", status="ready")] < 3:
            found = scrape(base)
        assert found[key("mutirao_job_oldest_age_seconds", flow="order", task="pay")] > 0
        assert found[key("mutirao_database_seconds_count", call="turn_clock")] >= 3
        assert key("mutirao_clock_late_seconds", duty="leases") in found
        assert get(f"{base}/healthz") == (200, "ok\n")


async def test_healthz_says_when_the_database_is_gone(server: TestServer) -> None:
    async with server.clone() as url:
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        with running("clock", "--metrics-port", 0, "--database", url) as clock:
            base = served(clock)
            clock.wait_for("ready")
            assert get(f"{base}/healthz")[0] == 200
            with psycopg.connect(server.superuser_url("postgres"), autocommit=True) as superuser:
                superuser.execute(
                    sql.SQL("alter database {} allow_connections false").format(sql.Identifier(str(name)))
                )
                superuser.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
            status, problem = get(f"{base}/healthz")
            while status == 200:
                status, problem = get(f"{base}/healthz")
            assert status == 503
            assert problem.count("\n") == 1
            assert scrape(base)[key("mutirao_database_up")] == 0


def test_docs_tell_of_every_metric_and_of_no_other(database_url: str) -> None:
    with running("worker", f"{FLOWS}:Order", "--metrics-port", 0, "--database", database_url) as worker:
        base = served(worker)
        worker.wait_for("is ready")
        _, text = get(f"{base}/metrics")
    kinds = {"mutirao_" + name: kind for name, kind in re.findall(r"^# TYPE mutirao_(\w+) (\w+)$", text, re.MULTILINE)}
    page = dict(re.findall(r"^\| `(mutirao_\w+)`[^|]*\| (\w+) \|", PAGE.read_text("utf-8"), re.MULTILINE))
    assert page == kinds


def test_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = mutirao("worker", f"{FLOWS}:Order", "--metrics-port", port)
    assert_refused(said, "port_unavailable", exit_code=3)
    assert str(port) in said.stderr


def test_address_that_is_not_ours_is_one_line() -> None:
    said = mutirao("clock", "--metrics-port", 0, "--metrics-address", "192.0.2.1")
    assert_refused(said, "port_unavailable", exit_code=3)


@pytest.mark.parametrize("port", ["many", "-1", "70000"])
def test_port_that_is_none_is_one_line(port: str) -> None:
    assert_refused(mutirao("clock", "--metrics-port", port), "usage", exit_code=2)
