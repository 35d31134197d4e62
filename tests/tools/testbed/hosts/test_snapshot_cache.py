"""Snapshots are found by their key, made once, never used after their time, and removed when others need the room."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tools.kit.waiting import wait_until
from tools.testbed.hosts import snapshot_cache
from tools.testbed.hosts.snapshot import LIFE_S

DAY_S = 86400.0
LONG_AGO_S = 3 * DAY_S
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "readygate"
    folder.mkdir()
    return folder


def key(number: int) -> str:
    return f"{number:016x}"


def obtain(number: int = 1, name: str = "hosts", made: list | None = None) -> Path:
    def make(folder: Path) -> None:
        (folder / "control-1").mkdir()
        if made is not None:
            made.append(number)

    return snapshot_cache.obtain(name, key(number), make, lambda _: None)


def age(folder: Path, *, used_s: float = 0.0, made_s: float = 0.0) -> None:
    (folder / "snapshot.json").write_text(json.dumps({"made": time.time() - made_s}))
    os.utime(folder, (time.time() - used_s,) * 2)


def present(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if not path.name.endswith(".lock"))


def test_it_is_made_once_and_then_found():
    made: list[int] = []
    assert obtain(made=made) == obtain(made=made)
    assert [1] == made


@pytest.mark.parametrize(
    ("age_s", "expected"),
    [
        pytest.param(0, True, id="just made"),
        pytest.param(LIFE_S - 60, True, id="almost too old"),
        pytest.param(LIFE_S + 60, False, id="too old"),
        pytest.param(-3600, False, id="made in the future: the clock was set back"),
    ],
)
def test_it_is_used_for_two_weeks(age_s, expected):
    folder = obtain()
    age(folder, made_s=age_s)
    made: list[int] = []
    assert folder == obtain(made=made)
    assert ([] if expected else [1]) == made


@pytest.mark.parametrize("text", ["", "{", "[]", '{"made": "yesterday"}', "{}"])
def test_one_that_does_not_say_when_it_was_made_is_made_again(text):
    (obtain() / "snapshot.json").write_text(text)
    made: list[int] = []
    obtain(made=made)
    assert [1] == made


def test_one_that_cannot_be_made_is_not_there_and_the_next_is_made(cache):
    def fail(folder: Path) -> None:
        (folder / "control-1").mkdir()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        snapshot_cache.obtain("hosts", key(1), fail, lambda _: None)
    assert [f"cluster-hosts-{key(1)}.part"] == present(cache)
    made: list[int] = []
    obtain(made=made)
    assert ([1], [f"cluster-hosts-{key(1)}"]) == (made, present(cache))


KILLED = f"""
import os, signal, sys
from tools.testbed.hosts import snapshot_cache

def make(folder):
    (folder / "control-1").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)

snapshot_cache.obtain("hosts", "{key(1)}", make, print)
"""


def test_half_of_one_that_was_being_made_by_a_process_that_was_killed_is_removed_and_never_used(cache):
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=ROOT, check=False)
    assert -signal.SIGKILL == done.returncode
    assert [f"cluster-hosts-{key(1)}.part"] == present(cache)
    snapshot_cache.tidy()
    assert [] == present(cache)
    made: list[int] = []
    obtain(made=made)
    assert [1] == made


def test_two_at_once_make_one():
    made: list[int] = []
    begun, go = threading.Event(), threading.Event()

    def make(folder: Path) -> None:
        (folder / "control-1").mkdir()
        made.append(1)
        begun.set()
        go.wait(30)

    said: list[str] = []
    results: list[Path] = []

    def one() -> None:
        results.append(snapshot_cache.obtain("hosts", key(1), make, said.append))

    threads = [threading.Thread(target=one) for _ in range(2)]
    threads[0].start()
    assert begun.wait(30)
    threads[1].start()
    wait_until(lambda: said, "the second waits")
    go.set()
    for thread in threads:
        thread.join(30)
    assert ([1], 1) == (made, len(set(results)))


def test_what_is_being_made_is_not_removed_by_another_process(cache):
    half = cache / f"cluster-hosts-{key(1)}.part"
    half.mkdir()
    with (cache / "cluster-hosts.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        snapshot_cache.tidy()
        assert half.exists()
    snapshot_cache.tidy()
    assert not half.exists()


def test_of_one_set_of_hosts_the_three_used_last_stay(cache):
    for number in range(1, 6):
        age(obtain(number), used_s=DAY_S - number)
    age(obtain(1, name="second"), used_s=2 * DAY_S)
    snapshot_cache.tidy()
    snapshot_cache.tidy()  # the first has put them aside
    assert [*(f"cluster-hosts-{key(number)}" for number in (3, 4, 5)), f"cluster-second-{key(1)}"] == present(cache)


def test_an_expired_one_goes_though_there_is_room(cache):
    age(obtain(), used_s=DAY_S, made_s=LIFE_S + 1)
    snapshot_cache.tidy()
    assert [] == present(cache)


def test_one_that_was_used_a_moment_ago_stays_however_many_there_are(cache):
    for number in range(1, 6):
        obtain(number)
    snapshot_cache.tidy()
    assert 5 == len(present(cache))


def test_together_they_stay_below_the_limit(cache, monkeypatch):
    for number, name in ((1, "hosts"), (2, "hosts"), (1, "second")):
        folder = obtain(number, name=name)
        (folder / "db").write_bytes(b"x" * (1 << 20))
        age(folder, used_s=DAY_S - number)
    age(cache / f"cluster-second-{key(1)}", used_s=LONG_AGO_S)
    monkeypatch.setattr(snapshot_cache, "LIMIT_GIB", 2.5 / 1024)
    snapshot_cache.tidy()
    assert [f"cluster-hosts-{key(1)}", f"cluster-hosts-{key(2)}"] == present(cache)


def test_one_that_hosts_stand_on_stays(cache, monkeypatch):
    monkeypatch.setattr(snapshot_cache, "LIMIT_GIB", 0.0)
    for number in range(1, 6):
        age(obtain(number), used_s=DAY_S - number, made_s=LIFE_S + 1)
    monkeypatch.setattr(snapshot_cache, "_mounted", lambda: {f"cluster-hosts-{key(1)}"})
    snapshot_cache.tidy()
    assert [f"cluster-hosts-{key(1)}"] == present(cache)


def test_one_whose_hosts_have_failed_is_not_used_again_and_stays_on_the_disk_while_others_stand_on_it(
    cache, monkeypatch
):
    folder = obtain()
    snapshot_cache.discard(folder)
    snapshot_cache.discard(folder)
    made: list[int] = []
    monkeypatch.setattr(snapshot_cache, "_mounted", lambda: {folder.name})
    snapshot_cache.tidy()
    assert 1 == len(present(cache))
    obtain(made=made)
    assert ([1], 2) == (made, len(present(cache)))
    monkeypatch.setattr(snapshot_cache, "_mounted", set)
    snapshot_cache.tidy()
    assert [folder.name] == present(cache)


def test_what_an_overlay_stands_on_is_read_from_every_mount_namespace(tmp_path, monkeypatch):
    for pid, namespace, line in (
        ("1", "own", "22 1 0:1 / / rw - ext4 /dev/vda rw"),
        ("7", "other", f"99 1 0:9 / /r rw - overlay overlay rw,lowerdir=/c/cluster-hosts-{key(7)}/control-1:/c/base"),
        ("8", "other", ""),
        ("self", "own", f"/c/cluster-hosts-{key(9)}/"),
    ):
        (tmp_path / pid / "ns").mkdir(parents=True)
        (tmp_path / namespace).touch()
        (tmp_path / pid / "ns/mnt").hardlink_to(tmp_path / namespace)
        (tmp_path / pid / "mountinfo").write_text(line)
    monkeypatch.setattr(snapshot_cache, "_PROC", tmp_path)
    assert {f"cluster-hosts-{key(7)}"} == snapshot_cache._mounted()
