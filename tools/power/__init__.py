"""Detection power: plants faults in a copy of the checkout, one at a time, and reports which tests catch them.

`make test-power` is the command.

`catalogue`: the faults. `mutator` makes those of Python from the syntax tree; `by_hand_*` list those of charts,
playbooks, units, policies and the image. `equivalent` lists changes that are no faults.
`copied`: the copies in which faults are planted and coverage is measured.
`contexts`, `covering`: which tests cover a line, by coverage.py.
`choosing`: which tests run for a fault, and in which order. `chosen_tests`: the pytest plugin that runs them.
`campaign`: runs faults and appends a line for each to build/power/results.jsonl. `report`: the tables of it.

Guarantees: the user's checkout is never changed; an interrupted run can be continued.
Only its tests import it. It imports `tools.proof` and `tools.kit`, and no part of the product.
"""
