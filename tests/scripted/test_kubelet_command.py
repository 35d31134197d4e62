"""`python -m agent --config FILE` in mode `kubelet`: it is the runtime too, so its containers end with it."""

from pathlib import Path

from tests.agent.kubelet.runtime.test_process import marked
from tools.fakes.api_server import FakeApiServer
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.kit.waiting import wait_until


def agent(api: FakeApiServer, folder: Path) -> Program:
    settings = {
        "mode": "kubelet",
        "listen": {"address": "127.0.0.1", "port": free_port()},
        "kubernetes": {"kubeconfig": str(api.write_kubeconfig(folder / "kubeconfig"))},
        "kubelet": {"nodeName": "node-1", "podCIDR": "127.22.2.0/24", "rootDir": str(folder / "run")},
    }
    return Program("agent", settings, folder)


def test_sigterm_ends_it_and_its_containers(tmp_path):
    with FakeApiServer() as api:
        program = agent(api, tmp_path)
        program.start()
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
            assert (0, []) == (program.process.stop(grace_s=30), marked(container))
            assert "Traceback" not in program.process.text()
            # A stop waits one second for each service. On a busy machine it may be too short, which the log must show.
            if "did not end in time" not in program.process.text():
                assert "terminated" in api.get("Pod", "p")["status"]["containerStatuses"][0]["state"]
        finally:
            program.process.kill()
