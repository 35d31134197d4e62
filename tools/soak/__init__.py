"""`make soak`: rows of the scorecard (docs/reliability.md) that take load and time, not faults.

`rows`: what a row is, how rows are run, printed and saved; `tools.chaos` uses it too. `updates`, `fuzz`,
`slow_clients`, `unkind`, `keep_alive`: the rows. Everything runs on loopback and ends by itself.
"""
