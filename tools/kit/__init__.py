"""What tests of several rings need, one of each.

`scope`: whether this run is the gate or the whole proof; `causes`: on what a test spends its time.
`cases`: a parametrized test as a table of one-line rows.
`clock`: a clock that a test sets. `waiting`: for what another thread or process does.
`pid`: a process known for ever, and processes found by what they carry.
`whole`: a command that ends with all that it started; `endings`: Ctrl-C, kill and a closed terminal are one thing.
`child`: a child process with a log; `guardian`: ends it when whoever started it was killed.
`programs`: ours, started by their command line as by anybody.
`ports`: free ports for servers that must be told theirs.
`commands`: runs a long command with progress and an error in one line; `cache`: folders that are built once;
`mmdebstrap`: file systems from Debian's archive.
`kubeconfig`: kubeconfig files for one cluster, one user, one context.

Guarantees: nothing here knows how readygate decides, nothing waits without a limit, no port is given twice.
Every ring, the testbed, the image build, the demo and the benchmark may import it; it imports none of them, and nothing
of the product.
"""
