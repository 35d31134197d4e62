"""A run of the tests: which of them the gate has, where the time went, and the table of it.

`selection`: pytest's option `--gate` and the list `tests/whole_only.txt`.
`durations`: the pytest plugin that records what each test cost.
`table`: `build/durations.json` as a table (`make durations`).

Guarantees: without `--gate` every test that is named on the command line runs; recording costs a test less than 10 ms.
`tools/run.py`, `tools/power` and `tests/conftest.py` import it; it imports `tools.kit` only.
"""
