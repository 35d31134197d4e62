"""The agent beside the kubelet's own packages, on the same random histories (`make differential HISTORIES=n SEED=s`).

    worlds    random pods and statuses, as JSON
    targets/  one module a target: what a history is, and what the agent answers to it
    target    what a target is
    build     makes the driver: a Go program with copies of the kubelet's packages
    driver/   its source: how each target is answered by the kubelet
    build_1_16, driver116/, worlds_1_16, errors_1_16  the same for kubelet 1.16
    kubelet   the driver as a process: batches of histories in, answers out
    compare   runs a target: draws, asks both, stops at the first difference
    shrink    cuts a history down to what is needed for a difference; pure
    loopback  a network of its own, and servers there
    virtual   threads that take turns, by a clock that passes when all of them wait
    scripted  a server there that says what a history has
    places    random paths, hosts and URLs
    pod_world a runtime, probes and statuses of the pod workers' histories
    runtimes  random pods of a runtime, as JSON and as the agent has them
    kept/     histories that an error has told from the kubelet, with its answers; `make test-fast` replays them
    fixed/    the rows of docs/kubelet-parity.md as histories, played before those by chance
    fixes     named fixes switched on: do exactly their differences appear?
    errors    errors for a copy of the agent, a table (one of them is a planted_error; errors_around has some of them)
    planted   puts them there: does the comparison find them?
    judge     the agent beside answers that are known: what looks for a planted error
    __main__  the command

What differs on purpose is a field of `agent.wire.semantics.Semantics`, off here, never an exception in the comparison.
"""
