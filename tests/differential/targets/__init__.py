"""The targets: what their histories are, and how the agent answers them.

lease   the renewals of a node's Lease
prober  workers, results and manager: AddPod to UpdatePodStatus, doProbe by doProbe
"""

from tests.differential.target import Target
from tests.differential.targets.http import HttpTarget
from tests.differential.targets.lease import LeaseTarget
from tests.differential.targets.prober import ProberTarget

TARGETS: tuple[Target, ...] = (HttpTarget(), LeaseTarget(), ProberTarget())
