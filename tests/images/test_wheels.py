"""Which entries of the lock file go into the image."""

import pytest

from images import wheels
from images.commands import BuildError
from images.wheels import locked

_LOCK = """\
alpha==1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:ab
    # via readygate
beta-x==2.0 ; sys_platform == 'linux' \\
    --hash=sha256:bb
gamma==3 \\
    --hash=sha256:cc
"""


def test_the_image_takes_only_its_own_part_of_the_lock_file():
    expected = "alpha==1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:ab\n"
    assert expected == locked({"alpha"}, _LOCK)
    assert locked({"beta-x", "gamma"}, _LOCK).startswith("beta-x==2.0 ; sys_platform == 'linux' \\\n")


def test_a_dependency_outside_the_lock_file_stops_the_build():
    with pytest.raises(BuildError, match="lacks delta: run make lock"):
        locked({"delta"}, _LOCK)


def test_what_the_sources_need_is_in_the_image_whatever_was_installed_here(monkeypatch):
    class Old:
        requires = ("msgspec",)

    installed = wheels.distribution
    monkeypatch.setattr(wheels, "distribution", lambda name: Old if name == "readygate" else installed(name))
    assert {"gunicorn", "httptools", "flask", "msgspec"} <= wheels.runtime_names()
