"""The targets: what their histories are, and how the agent answers them.

actions computePodActions, grace periods, and who waits for whom at the end
admission which pods a node refuses, and why: resources, labels, taints, ports, declared features
backoff how long a container that keeps ending waits, and what is told of it
cni     how a file of CNI configuration is read: any bytes as JSON, by Go, and the types of its fields
configs what a container runtime is asked to make, and how often a container was restarted by its logs
drivers is a plugin taken, by its name and its versions
events  which Events are written, and how: counted, combined, or not at all
eviction when a node is under pressure: thresholds, grace periods, minimum reclaim, transition period
grpc    the handler for grpc, with a server that says what the history has
handlers probes by the prober: commands, connections on loopback, ports, retries, events
hooks   one lifecycle hook: a command, a request, a sleep
http    the handler for httpGet: what is sent, and what is made of any bytes that come back, or do not, over TLS or not
images  is a container's image there, and may it be pulled, and now
intake  which pods a node with little room takes, and how far each is
lease   the renewals of a node's Lease
loops   workers of the prober as they run: pauses, ticks, triggers, ends, with probes that take their time
node    its registration, and when its status is written, with what
pleg    what is told of a runtime's containers, by lists and by events, and what is kept of them
plugins the plugin manager: what is registered, deregistered, told and tried again, in what order
pods    what is made of the answers of a container runtime over the CRI
prober  workers, results and manager: AddPod to UpdatePodStatus, doProbe by doProbe
generate-1.16, loops-1.16, node-1.16, pleg-1.16, prober-1.16, sources-1.16, status-1.16  kubelet 1.16
sources pods of manifest files and of the API server, merged, with the mirrors of static pods
starts  environment and command line of a container
status  generateAPIPodStatus, and the status manager up to its writes
"""

from tools.differential.target import Target
from tools.differential.targets.actions import ActionsTarget
from tools.differential.targets.admission import AdmissionTarget
from tools.differential.targets.backoff import BackOffTarget
from tools.differential.targets.cni import CniTarget
from tools.differential.targets.configs import ConfigsTarget
from tools.differential.targets.drivers import DriversTarget
from tools.differential.targets.events import EventsTarget
from tools.differential.targets.eviction import EvictionTarget
from tools.differential.targets.generate_1_16 import OldGenerateTarget
from tools.differential.targets.grpc import GrpcTarget
from tools.differential.targets.handlers import HandlersTarget
from tools.differential.targets.hooks import HooksTarget
from tools.differential.targets.http import HttpTarget
from tools.differential.targets.images import ImagesTarget
from tools.differential.targets.intake import IntakeTarget
from tools.differential.targets.lease import LeaseTarget
from tools.differential.targets.loops import LoopsTarget
from tools.differential.targets.loops_1_16 import OldLoopsTarget
from tools.differential.targets.node import NodeTarget
from tools.differential.targets.node_1_16 import OldNodeTarget
from tools.differential.targets.pleg import PlegTarget
from tools.differential.targets.pleg_1_16 import OldPlegTarget
from tools.differential.targets.plugins import PluginsTarget
from tools.differential.targets.pods import PodsTarget
from tools.differential.targets.prober import ProberTarget
from tools.differential.targets.prober_1_16 import OldProberTarget
from tools.differential.targets.sources import SourcesTarget
from tools.differential.targets.sources_1_16 import OldSourcesTarget
from tools.differential.targets.starts import StartsTarget
from tools.differential.targets.status import StatusTarget
from tools.differential.targets.status_1_16 import OldStatusTarget

TARGETS: tuple[Target, ...] = (
    ActionsTarget(),
    AdmissionTarget(),
    BackOffTarget(),
    CniTarget(),
    ConfigsTarget(),
    DriversTarget(),
    EventsTarget(),
    EvictionTarget(),
    OldGenerateTarget(),
    GrpcTarget(),
    HandlersTarget(),
    HooksTarget(),
    HttpTarget(),
    ImagesTarget(),
    IntakeTarget(),
    LeaseTarget(),
    LoopsTarget(),
    OldLoopsTarget(),
    NodeTarget(),
    OldNodeTarget(),
    PlegTarget(),
    OldPlegTarget(),
    PluginsTarget(),
    PodsTarget(),
    ProberTarget(),
    OldProberTarget(),
    SourcesTarget(),
    OldSourcesTarget(),
    StartsTarget(),
    StatusTarget(),
    OldStatusTarget(),
)
