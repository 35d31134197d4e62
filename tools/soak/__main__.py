"""python -m tools.soak: the rows of the scorecard that take load and time. Loopback only."""

from tools.soak import caches, day, decisions, fuzz, histories, keep_alive, slow_clients, unkind, updates
from tools.soak.rows import Row, exit_with

ROWS = {
    "R02": Row("a million steps by chance between a server and a cache that follows it", caches.MINUTES, caches.hold),
    "R10": Row("10,000 pod updates a second beside 100 filter calls, 5,000 nodes", updates.MINUTES, updates.hold),
    "R17": Row("a million requests drawn by chance, of any kind, to all paths", fuzz.MINUTES, fuzz.hold),
    "R18": Row("the worst bodies that can be made", 1, fuzz.hold_worst),
    "R19": Row("200 slow clients of every kind, beside one who asks as kube-scheduler does", 5, slow_clients.hold),
    "unkind": Row("all else that a client can do to the port, each kind for a while", 2, unkind.hold),
    "decisions": Row("a million steps by chance of what decides", decisions.MINUTES, decisions.hold),
    "differential": Row(
        "a million random histories of each kind: the agent beside the kubelet's own packages",
        histories.MINUTES,
        histories.hold,
    ),
    "R31": Row("a day's work in half an hour: nothing grows", day.MINUTES, day.hold),
    "R29": Row("kept connections used again after 0.1 to 130 s", keep_alive.MINUTES, keep_alive.hold),
}

if __name__ == "__main__":
    exit_with("soak", ROWS)
