"""A run of the tests: its steps, which tests the gate has, and where the time went.

`steps`: the steps of `make test`, of `make test-all` and of each ring. `runner`: runs them.
`selection`: pytest's option `--gate` and the list `tests/whole_only.txt`.
`durations`: the pytest plugin that records what each test cost.
`table`: `build/durations.json` as a table (`make durations`).
`repeat`: runs the gate or some tests N times (`make test-repeat`).

Guarantees: without `--gate` every test that is named on the command line runs; recording costs a test less than 10 ms.
`tools/run.py`, `tools/power` and `tests/conftest.py` import it. It imports `tools.kit`, `steps` also `tools.testbed`.
"""
