"""What a killed agent left: its processes are ended, its instances become ended ones."""

import logging
from collections.abc import Callable

import msgspec

from agent.kubelet.runtime.addresses import Addresses, NoAddressError
from agent.kubelet.runtime.instances import ID_PREFIX, Instance, SandboxState
from agent.kubelet.runtime.records import InstanceRecord, Records, SandboxRecord
from agent.processes.proc import boot_id, end_container, start_ticks

log = logging.getLogger(__name__)

EXIT_CODE_KILLED = 137


def end_leftovers(records: Records, addresses: Addresses, wall: Callable[[], float]) -> dict[str, SandboxState]:
    """The pods that are kept, by uid: those with an address in the present block. Raises OSError as the disk does."""
    boot = boot_id()
    kept = {}
    for uid, found, instances in records.load():
        ended = [_end(records, uid, record, boot, wall) for record in instances]
        sandbox = _with_address(records, addresses, uid, found)
        if sandbox is None:
            records.remove_pod(uid)
        else:
            kept[uid] = SandboxState(sandbox, [Instance(uid, record) for record in ended])
    return kept


def _end(records: Records, uid: str, record: InstanceRecord, boot: str, wall: Callable[[], float]) -> InstanceRecord:
    if record.exit_code is not None:
        return record
    count = 0
    if record.boot == boot:
        same = start_ticks(record.pid) == record.start_ticks
        count = end_container(record.id.removeprefix(ID_PREFIX), record.pid if same else None)
    log.info("leftover container ended", extra={"container": record.name, "processes": count})
    message = "the agent that ran it was killed"
    ended = msgspec.structs.replace(
        record, finished_at=wall(), exit_code=EXIT_CODE_KILLED, reason="Error", message=message
    )
    records.put_instance(uid, ended)
    return ended


def _with_address(
    records: Records, addresses: Addresses, uid: str, found: SandboxRecord | None
) -> SandboxRecord | None:
    """The sandbox with an address of the present block, which may be another one now; None if it has none."""
    if found is None:
        return None
    try:
        ip = addresses.node if found.host_network else addresses.take(uid, found.ip)
    except NoAddressError as e:
        log.warning("leftover pod forgotten", extra={"uid": uid, "cause": type(e).__name__, "error": str(e)})
        return None
    kept = SandboxRecord(ip=ip, host_network=found.host_network)
    if kept != found:
        records.put_sandbox(uid, kept)
    return kept
