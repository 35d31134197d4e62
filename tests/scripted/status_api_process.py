"""The real `python -m extender.web` beside an extender, by the same configuration file."""

from pathlib import Path

from tests.scripted.extender_process import START_LIMIT_S, Asked


class StatusApiProcess(Asked):
    """config: the extender's; status_api: that section of it. A context manager; does not wait until it follows."""

    def __init__(self, config, folder: Path, *, status_api=None, environ=None, launch=None):
        super().__init__(
            "extender.web",
            config | {"statusApi": status_api or {"port": 0, "processorPercent": 100}},
            folder,
            name="status-api",
            environ=environ,
            launch=launch,
        )

    def __enter__(self):
        self.start()
        self.process.wait_ready(lambda: self.port, timeout_s=START_LIMIT_S)
        return self

    def wait_follows(self):
        self.process.wait_ready(self.ready, timeout_s=START_LIMIT_S)
