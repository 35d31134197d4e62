"""python -m tools.chaos: the rows of the scorecard in which something fails. Loopback only."""

from tools.chaos import agent_kills, attacks, outages, restarts, status_api, watching
from tools.soak.rows import Row, exit_with

ROWS = {
    "R03": Row("200 schedules of faults: nothing lost, doubled or set back", 10, watching.hold_schedules),
    "R07": Row("packets of a watch dropped both ways, with keepalive and without", 5, watching.hold_black_hole),
    "R08": Row("a box in the middle acknowledges and passes nothing on", 4, watching.hold_silent_box),
    "R12": Row(
        "the API server restarted every 10 s, etcd compacted between, while pods come", outages.MINUTES, outages.hold
    ),
    "R26": Row(
        "the extender killed every 5 s under the real kube-scheduler, in both modes",
        restarts.KILLS_MINUTES,
        restarts.hold_kills,
    ),
    "R27": Row(
        "the extender stopped and started every 30 s, with kept connections",
        restarts.RESTARTS_MINUTES,
        restarts.hold_restarts,
    ),
    "R40": Row(
        "the agent killed a hundred times beside busy loops, its checks failing by chance",
        agent_kills.MINUTES,
        agent_kills.hold,
    ),
    "R46": Row(
        "clients attack the extender and its status port under the real kube-scheduler, in both modes",
        attacks.MINUTES,
        attacks.hold,
    ),
    "status-api": Row(
        "the status API of 5,000 nodes, attacked by all clients at once", status_api.MINUTES, status_api.hold
    ),
    "R13": Row("two API servers, one a minute behind, in turns", 10, watching.hold_replica_behind),
}

if __name__ == "__main__":
    exit_with("chaos", ROWS)
