import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from extender.process import huge_pages
from extender.process.huge_pages import AGAIN_S, DENSE_BYTES, HUGE_BYTES, HugePages, candidates

MIB = 2**20
LINE = "{:x}-{:x} {} 00000000 00:00 {} {}\n"


def line(begin, end, rights="rw-p", inode=0, name=""):
    return LINE.format(begin, end, rights, inode, name)


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        pytest.param([line(4 * MIB, 8 * MIB)], [4 * MIB, 6 * MIB], id="each whole one in what is ours alone"),
        pytest.param([line(3 * MIB, 7 * MIB)], [4 * MIB], id="none that begins before it or ends after it"),
        pytest.param([line(3 * MIB, 5 * MIB)], [], id="none in as much memory, wrongly placed"),
        pytest.param([line(2 * MIB, 4 * MIB, name="[heap]")], [2 * MIB], id="the heap"),
        pytest.param([line(2 * MIB, 4 * MIB, name="[stack]")], [], id="not the stack"),
        pytest.param([line(2 * MIB, 4 * MIB, inode=7, name="/usr/lib/libc.so.6")], [], id="no file's"),
        pytest.param([line(2 * MIB, 4 * MIB, name="/a b (deleted)", inode=9)], [], id="no deleted file's"),
        pytest.param([line(2 * MIB, 4 * MIB, rights="r--p")], [], id="not what is only read"),
        pytest.param([line(2 * MIB, 4 * MIB, rights="rw-s")], [], id="not what is shared"),
    ],
)
def test_what_could_be_one_huge_page(maps, expected):
    assert expected == list(candidates(maps))


class Kernel:
    """resident: bytes by address. refuses: addresses for which it has none."""

    def __init__(self, resident, refuses=()):
        self.resident, self.refuses = resident, set(refuses)
        self.asked = []

    def maps(self):
        return [line(address, address + HUGE_BYTES) for address in self.resident]

    def resident_bytes(self, address):
        return self.resident[address]

    def collapse(self, address):
        self.asked.append(address)
        if address in self.refuses:
            raise OSError(errno.EAGAIN, "huge pages")


def turns(kernel, count):
    pauses = []
    one = HugePages(kernel, sleep=pauses.append)
    return [one.turn() for _ in range(count)], pauses


@pytest.mark.parametrize(
    ("resident", "refuses", "expected"),
    [
        pytest.param({2 * MIB: HUGE_BYTES, 8 * MIB: HUGE_BYTES}, [], [2 * MIB, 8 * MIB], id="held once, not again"),
        pytest.param({2 * MIB: DENSE_BYTES, 8 * MIB: DENSE_BYTES - 4096}, [], [2 * MIB], id="not where much is unused"),
        pytest.param({2 * MIB: HUGE_BYTES}, [2 * MIB], [2 * MIB] * 2, id="asked for again where none was free"),
    ],
)
def test_what_is_asked_for_in_two_looks(resident, refuses, expected):
    kernel = Kernel(resident, refuses)
    assert [AGAIN_S, AGAIN_S] == turns(kernel, 2)[0]
    assert expected == kernel.asked


def test_a_call_waits_for_one_at_most():
    kernel = Kernel({address * HUGE_BYTES: HUGE_BYTES for address in range(1, 4)})
    assert [huge_pages.APART_S] * 3 == turns(kernel, 1)[1]


def test_what_was_given_back_and_taken_again_is_asked_for_again():
    kernel = Kernel({2 * MIB: HUGE_BYTES})
    one = HugePages(kernel, sleep=lambda _: None)
    one.turn()
    taken = kernel.resident
    kernel.resident = {}
    one.turn()
    kernel.resident = taken
    one.turn()
    assert [2 * MIB, 2 * MIB] == kernel.asked


def test_nothing_is_asked_for_where_an_operator_has_switched_them_off(monkeypatch, tmp_path):
    switch = tmp_path / "enabled"
    switch.write_text("always madvise [never]\n")
    monkeypatch.setattr(huge_pages, "_SWITCH", switch)
    assert huge_pages.of_this_process(lambda _: None) is None


def test_nothing_is_asked_for_of_a_kernel_without_them(monkeypatch, tmp_path):
    monkeypatch.setattr(huge_pages, "_SWITCH", tmp_path / "none")
    assert huge_pages.of_this_process(lambda _: None) is None


SIXTEEN_MIB = """
import time
from extender.process import huge_pages
ours = bytearray(b"x") * (16 * 2**20)
pages = huge_pages.of_this_process(time.sleep)
if pages is not None:
    pages.turn()
print(open("/proc/self/smaps_rollup").read())
"""


def test_this_kernel_holds_what_is_full_in_huge_pages_if_it_can():
    version = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
    switch = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    can = version >= (6, 1) and switch.exists() and "[never]" not in switch.read_text()
    said = subprocess.run([sys.executable, "-c", SIXTEEN_MIB], capture_output=True, text=True, check=True).stdout
    huge_kib = int(re.findall(r"AnonHugePages:\s+(\d+)", said)[0])
    assert can == (huge_kib >= huge_pages.HUGE_BYTES // 1024)
