"""What the check `podNetwork` costs its agent: three connections a run, 1 % of a core in the profile `fast`, 2 MiB.

The check runs in a process of its own, beside 100 peers in its list, of which three are asked.
"""

import json
import subprocess
import sys

from tests.agent.checks.builtin.test_pod_network import API, DNS, Cluster
from tools.fakes.dns import dns_servers

RUNS = 50
PERIOD_S = 2.0  # of the profile `fast`
MOST_OF_A_CORE, MOST_BYTES = 0.01, 2 * 2**20
PEERS_IN_LIST = 100
PROGRAM = """
import gc, json, socket, sys, time
# What an agent has without it: the other checks of the network, its server, its client.
import agent.checks.builtin.dns, agent.checks.builtin.service_path, agent.report.metrics, kube.client, kube.listing

def held():
    gc.collect()
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(fields["RssAnon"].split()[0]) * 1024

before = held()
import agent.modes.peer_source
from agent.checks.builtin.pod_network import Check, Settings
from agent.checks.peer_answer import Board
from agent.checks.surroundings import Surroundings
from agent.wire.endpoint_slice import Endpoint, EndpointSlice
from kube.objects import BareMeta

given = json.loads(sys.argv[1])

class Source:
    def page(self, more):
        ends = [Endpoint((f"127.0.6.{n + 1}",), node_name=f"node-{n + 1}") for n in range(given["agents"])]
        far = [Endpoint(("127.0.7.1",), node_name=f"far-{n}", conditions=not_ready) for n in range(given["others"])]
        own = Endpoint(("127.0.6.99",), node_name="own")
        return [EndpointSlice(BareMeta(name="a"), "IPv4", (*ends, *far, own))], ""
    def slice(self, name): return self.page("")[0][0]
    def policies(self): return []
    def close(self): pass

from agent.wire.endpoint_slice import EndpointConditions
not_ready = EndpointConditions(ready=False)
opened = []
def open_socket(family, kind):
    opened.append(kind)
    return socket.socket(family, kind)

settings = Settings(port=given["port"], api_server=given["api"], api_port=given["api_port"], dns=given["dns"],
                    dns_port=given["dns_port"])
check = Check(settings, 20.0).placed(Surroundings("own", "ns", Board(time.monotonic), lambda s: Source(), open_socket))
states = {str(check().state)}
most, began = 0, time.process_time()
for _ in range(given["runs"]):
    opened.clear()
    states.add(str(check().state))
    most = max(most, sum(kind == socket.SOCK_STREAM for kind in opened))
cpu = (time.process_time() - began) / given["runs"]
print(json.dumps({"states": sorted(states), "connections": most, "cpu_s": cpu, "bytes": held() - before}))
check.close()
"""


def test_it_costs_three_connections_a_hundredth_of_a_core_and_two_mebibytes() -> None:
    with dns_servers({DNS: "answers"}, {DNS: "answers"}) as dns_port:
        cluster = Cluster(dns_port)
        with cluster.stack:
            for number in (1, 2, 3):
                cluster.agent(number)
            given = {
                "agents": 3,
                "others": PEERS_IN_LIST - 3,
                "port": cluster.port,
                "api": API,
                "dns": DNS,
                "runs": RUNS,
            }
            given |= {"api_port": cluster.api_port, "dns_port": dns_port}
            program = [sys.executable, "-c", PROGRAM, json.dumps(given)]
            done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(f"a run: {1000 * found['cpu_s']:.1f} ms of processor, in all {found['bytes'] / 2**20:.2f} MiB")
    assert (found["states"], found["connections"]) == (["passed"], 3)
    assert found["cpu_s"] <= MOST_OF_A_CORE * PERIOD_S
    assert found["bytes"] <= MOST_BYTES
