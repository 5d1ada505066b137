"""Figure 2 of the WED-SQL paper, word for word from psql, and an instance of it brought to its end by nothing but psql."""

import subprocess

import pytest

from mutirao.database.programs import bundled

# The paper's `al` is a slip for `a1`.
FIGURE_2 = r"""
INSERT INTO wed_attr (aname, adv) VALUES ('a1','ready');
INSERT INTO wed_attr (aname) VALUES ('a2'),('a3');
INSERT INTO wed_trig (tgname,trname,cname,cpred,timeout)
VALUES ('t1','tr_a2','c1', $$a1='ready' and (a2 is null)$$, '3d18h');
INSERT INTO wed_trig (tgname,trname,cname,cpred,timeout)
VALUES ('t2','tr_a3','c2', $$a1='ready' and (a3 is null)$$, '00:00:30');
INSERT INTO wed_trig (tgname,trname,cname,cpred,timeout)
VALUES ('t1','tr_final','c1', $$a1='ready'
and (a2 is not null)
and (a3 is not null)$$, '00:00:10');
INSERT INTO wed_trig (cpred,cfinal) VALUES ($$a1 <> 'ready'$$, True);
"""

WORKER = r"""
select attempt, wid from take('{task}') \gset
begin;
set local mutirao.attempt = :attempt;
update wed_flow set {change} where wid = :wid;
commit;
"""

IN_FLOW = "set search_path = fig2;\n"


def psql(url: str, script: str) -> str:
    done = subprocess.run(
        [bundled().path("psql"), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", url],
        input=script, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def flow(database_url: str) -> str:
    psql(database_url, f"select mutirao.create_flow('fig2'); {IN_FLOW} begin; {FIGURE_2} commit;")
    return database_url


async def test_the_figure_defines_a_flow(flow: str) -> None:
    shown = psql(flow, IN_FLOW + "select tgname, trname, cname, cfinal, enabled, timeout from wed_trig;")
    assert shown.splitlines() == [
        "t1|tr_a2|c1|f|t|3 days 18:00:00",
        "t2|tr_a3|c2|f|t|00:00:30",
        "t1|tr_final|c1|f|t|00:00:10",
        "|_FINAL||t|t|",
    ]
    assert psql(flow, IN_FLOW + "select aname, adv from wed_attr;").splitlines() == ["a1|ready", "a2|", "a3|"]
    assert psql(flow, "select count(*) from mutirao.version;") == "2"  # the empty one, and all of this


async def test_the_figure_also_runs_statement_by_statement(database_url: str) -> None:
    psql(database_url, f"select mutirao.create_flow('fig2'); {IN_FLOW} {FIGURE_2}")
    assert psql(database_url, IN_FLOW + "insert into wed_flow default values returning a1;") == "ready"


async def test_default_values_start_an_instance_with_two_jobs(flow: str) -> None:
    psql(flow, IN_FLOW + "INSERT INTO wed_flow DEFAULT VALUES;")
    assert psql(flow, IN_FLOW + "select trname, payload ->> 'a1', lckid from job_pool order by tgid;").splitlines() == [
        "tr_a2|ready|",
        "tr_a3|ready|",
    ]


async def test_psql_alone_brings_an_instance_to_its_final_state(flow: str) -> None:
    psql(flow, IN_FLOW + "INSERT INTO wed_flow DEFAULT VALUES;")
    for task, change in (("tr_a3", "a3 = 'y'"), ("tr_a2", "a2 = 'x'"), ("tr_final", "a1 = 'done'")):
        psql(flow, IN_FLOW + WORKER.format(task=task, change=change))
    assert psql(flow, IN_FLOW + "select a1, a2, a3 from wed_flow;") == "done|x|y"
    assert psql(flow, IN_FLOW + "select count(*) from job_pool;") == "0"
    assert psql(
        flow, IN_FLOW + "select trf, trw, status, state ->> 'a1' from wed_trace order by tstmp;"
    ).splitlines() == [
        "{tr_a2,tr_a3}||R|ready",
        "{}|tr_a3|R|ready",
        "{tr_final}|tr_a2|R|ready",
        "{}|tr_final|F|done",
    ]


async def test_an_initial_state_that_fires_nothing_is_rejected(flow: str) -> None:
    with pytest.raises(AssertionError, match="nothing_fires"):
        psql(flow, IN_FLOW + "insert into wed_flow (a1) values (null);")
    assert psql(flow, IN_FLOW + "select count(*) from wed_flow;") == "0"


async def test_two_transitions_that_write_at_once_are_merged(flow: str) -> None:
    psql(flow, IN_FLOW + "INSERT INTO wed_flow DEFAULT VALUES;")
    first = psql(flow, IN_FLOW + "select attempt from take('tr_a2');")
    psql(flow, IN_FLOW + WORKER.format(task="tr_a3", change="a3 = 'y'"))
    psql(flow, IN_FLOW + f"begin; set local mutirao.attempt = {first}; update wed_flow set a2 = 'x'; commit;")
    assert psql(flow, IN_FLOW + "select a1, a2, a3 from wed_flow;") == "ready|x|y"
    assert psql(flow, IN_FLOW + "select trname from job_pool;") == "tr_final"
