"""The real `python -m extender.people` beside an extender, by the same configuration file."""

import re
import signal
import time
from pathlib import Path

from tests.kit.programs import Program


class PeopleProcess(Program):
    """config: the extender's. A context manager; does not wait until it follows."""

    def __init__(self, config, folder: Path):
        super().__init__("extender.people", config | {"people": {"port": 0}}, folder, name="people")

    def __enter__(self):
        self.start()
        self.process.wait_ready(lambda: self.port, timeout_s=20)
        return self

    def __exit__(self, *_):
        self.process.kill()

    @property
    def port(self):
        """0 until it listens."""
        found = re.findall(r"listening address=\"127\.0\.0\.1\" port=(\d+)", self.process.text())
        return int(found[-1]) if found else 0

    def stop(self, number=signal.SIGTERM):
        """Exit code, and the seconds it took."""
        began = time.monotonic()
        return self.process.stop(number=number, grace_s=15), time.monotonic() - began
