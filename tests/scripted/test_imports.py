"""What the two processes of the extender load: neither has what only the other one needs."""

import subprocess
import sys

import pytest

from tools.kit.programs import CHECKOUT, python_environ

HTTP_FOR_PEOPLE = {"flask", "werkzeug", "jinja2", "prometheus_client"}
API_SERVER = {
    "urllib3",
    "kubernetes",
    "kube.client",
    "kube.reflector",
    "extender.process.services",
    "extender.cluster.decider",
}
LOOP = {"httptools", "extender.serve.loop", "extender.process.server", "extender.process.worker"}


@pytest.mark.parametrize(
    ("module", "conf", "without"),
    [
        pytest.param("extender.process.server", "extender/process/gunicorn.conf.py", HTTP_FOR_PEOPLE, id="scheduler"),
        pytest.param("extender.web.server", "extender/web/gunicorn.conf.py", API_SERVER | LOOP, id="status API"),
    ],
)
def test_a_process_loads_only_what_it_needs(module, conf, without):
    code = f"import {module}, runpy, sys; runpy.run_path({conf!r}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, env=python_environ(), capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) & without == set()
