"""`python -m agent --config FILE` in mode `kubelet`: it is the runtime too, so its containers end with it."""

import subprocess
import sys

from tests.agent.runtime.test_process import marked
from tests.fakes.api_server import FakeApiServer
from tests.kit.ports import free_port
from tests.kit.waiting import wait_until


def config(folder, kubeconfig, root):
    path = folder / "agent.yaml"
    path.write_text(
        f"""
mode: kubelet
listen: {{address: 127.0.0.1, port: {free_port()}}}
kubernetes: {{kubeconfig: {kubeconfig}}}
kubelet: {{nodeName: node-1, podCIDR: 127.22.2.0/24, rootDir: {root}}}
"""
    )
    return path


def start(path):
    return subprocess.Popen(
        [sys.executable, "-m", "agent", "--config", str(path)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_sigterm_ends_it_and_its_containers(tmp_path):
    with FakeApiServer() as api:
        agent = start(config(tmp_path, api.write_kubeconfig(tmp_path / "kubeconfig"), tmp_path / "run"))
        try:
            api.put(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "p", "namespace": "default", "uid": "u"},
                    "spec": {"nodeName": "node-1", "containers": [{"name": "c"}]},
                }
            )
            wait_until(lambda: api.get("Pod", "p").get("status", {}).get("phase") == "Running", timeout_s=40)
            container = api.get("Pod", "p")["status"]["containerStatuses"][0]["containerID"]
            assert len(marked(container)) == 1
            agent.terminate()
            _, errors = agent.communicate(timeout=30)
            assert (0, []) == (agent.returncode, marked(container))
            assert "Traceback" not in errors
            assert "terminated" in api.get("Pod", "p")["status"]["containerStatuses"][0]["state"]
        finally:
            agent.kill()
            agent.communicate()
