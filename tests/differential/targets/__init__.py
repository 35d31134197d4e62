"""The targets: what their histories are, and how the agent answers them.

prober  workers, results and manager: AddPod to UpdatePodStatus, doProbe by doProbe
"""

from tests.differential.target import Target
from tests.differential.targets.http import HttpTarget
from tests.differential.targets.prober import ProberTarget

TARGETS: tuple[Target, ...] = (HttpTarget(), ProberTarget())
