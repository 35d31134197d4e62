"""Our programs as processes: started by their command line, with a configuration file, as by anybody."""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path

from tools.kit.child import Child
from tools.kit.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
# Makes a child of (name, command line, environ=..., cwd=...), not started.
Launch = Callable[..., Child]


def python_environ() -> dict[str, str]:
    """So that `python -m agent` finds this checkout from any working directory."""
    named = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(CHECKOUT), *([named] if named else [])]), "PYTHONUNBUFFERED": "1"}


class Program:
    """`python -m WORDS --config FILE`. The file is written at each start from `settings`, which a test may change.

    folder: of the file, and of the log where `launch` does not say otherwise.
    """

    def __init__(
        self,
        words: str | Sequence[str],
        settings: Mapping[str, object],
        folder: Path,
        *,
        name: str = "",
        environ: Mapping[str, str] | None = None,
        launch: Launch | None = None,
    ):
        words = [words] if isinstance(words, str) else list(words)
        name = name or words[0]
        self.folder = folder
        self.settings = dict(settings)
        self.config = folder / f"{name}.yaml"
        argv = [sys.executable, "-m", *words, "--config", self.config]
        options = {"environ": {**python_environ(), **(environ or {})}, "cwd": folder}
        self.process = launch(name, argv, **options) if launch else _child(name, argv, **options)

    def write(self) -> Path:
        """JSON is YAML."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(json.dumps(self.settings, indent=1))
        return self.config

    def start(self, **environ: str) -> None:
        """Does not wait."""
        self.write()
        self.process.start(**environ)

    @property
    def port(self) -> int:
        return self.settings["listen"]["port"]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> tuple[int, str]:
        return fetch(self.url + path)

    def ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def wait_page(self, path: str, status: int, *, timeout_s: float = 40.0) -> str:
        """The page, once it has that status."""
        page = (0, "")

        def answered() -> bool:
            nonlocal page
            page = self.get(path)
            return page[0] == status

        wait_until(answered, lambda: f"{path} is {page}; {self.process.text()[-1000:]}", timeout_s=timeout_s)
        return page[1]

    def stop(self) -> int | None:
        return self.process.stop()


def _child(name: str, argv: Sequence[str | Path], *, environ: Mapping[str, str], cwd: Path) -> Child:
    return Child(name, argv, log=cwd / f"{name}.log", environ=environ, cwd=cwd)


def fetch(url: str) -> tuple[int, str]:
    """(status, body); status 0 without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode(errors="replace")
    except (urllib.error.URLError, TimeoutError, ConnectionError, HTTPException):  # the last of one that is cut
        return 0, ""
