"""A folder of the cache is whole or not there."""

import pytest

from images.cache import cached
from images.commands import BuildError


def test_a_build_that_failed_is_not_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fails(folder):
        (folder / "half").touch()
        raise BuildError("cause")

    with pytest.raises(BuildError):
        cached("thing", "k", fails, print)
    whole = cached("thing", "k", lambda folder: (folder / "whole").touch(), print)
    assert [path.name for path in whole.iterdir()] == ["whole"]
