"""Errors for a copy of the agent, one at a time: each must be found, or the comparison sees less than it says.
`planted` looks for them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Planted:
    """`was`, which the file holds once, becomes `becomes`; `target` is who should find it."""

    target: str
    file: str
    was: str
    becomes: str

    def __str__(self) -> str:
        return f"{self.target}: {self.file}: {self.was.strip()!r} -> {self.becomes.strip()!r}"


_HTTP, _REPLY, _URL = "probe/http.py", "probe/reply.py", "probe/url.py"
_TCP, _DIAL, _EXEC, _TARGETS = "probe/tcp.py", "probe/dial.py", "probe/exec.py", "probe/targets.py"
_GRPC, _BACKOFF, _ENVIRONMENT = "probe/grpc.py", "pods/backoff.py", "runtime/environment.py"
_LEASE, _FACTS, _REPORTS = "node/lease.py", "node/facts.py", "node/registration.py"
_WORLD, _PLUGINS = "plugins/world.py", "plugins/manager.py"
_FOUND, _PRESSURE = "node/found.py", "node/pressure.py"
_READINESS, _ADMISSION = "cri/readiness.py", "pods/admission.py"
_DECIDE, _MANAGER, _PROBER = "prober/decide.py", "prober/manager.py", "prober/prober.py"
_ACTIONS, _ENDING = "pods/actions.py", "pods/ending.py"
_EVENTS, _RELIST, _CACHE = "pleg/events.py", "pleg/relist.py", "pleg/cache.py"
_RESIZE = "status/resize.py"
_GENERATE, _MERGE, _KEPT = "status/generate.py", "status/merge.py", "status/manager.py"
ERRORS = (
    Planted("actions", _ACTIONS, "MIN_GRACE_S = 2.0", "MIN_GRACE_S = 1.0"),
    Planted(
        "actions", _ENDING, "container.pre_stop is None or left_s <= 0", "container.pre_stop is None or left_s < 0"
    ),
    Planted("actions", _ENDING, "math.ceil(round(left_s, 3))", "math.floor(round(left_s, 3))"),
    Planted("actions", _ENDING, "return not hook.over and left_s > 0", "return False"),
    Planted("actions", _ENDING, "if hook.over and hook.error is not None:", "if hook.over:"),
    Planted("actions", _ACTIONS, "if inputs.runtime.newest(c.name) is None)", "if inputs.runtime.newest(c.name))"),
    Planted("actions", _ACTIONS, "in (ContainerPhase.CREATED, ContainerPhase.RUNNING) for", "is not None for"),
    Planted("actions", _ACTIONS, "    if not kept and not actions.starts:", "    if False:"),
    Planted("actions", _ACTIONS, "        actions.init_starts = []", "        pass"),
    Planted("actions", _ACTIONS, "        if walk.begun and not sidecar:", "        if walk.begun:"),
    Planted(
        "actions",
        _ACTIONS,
        "    elif not walk.begun:\n        walk.starts.append(index + 1)",
        "    else:\n        walk.starts.append(index + 1)",
    ),
    Planted("actions", _ACTIONS, "waits[container.name] = before | later", "waits[container.name] = before"),
    Planted("actions", _ACTIONS, "return [*ordinary, *demanding]", "return [*demanding, *ordinary]"),
    Planted("actions", _ACTIONS, "    if grace_s is None and probe is not None:", "    if probe is not None:"),
    Planted("actions", _ACTIONS, "    if inputs.pod.deletion_timestamp is not None:\n        return False\n", ""),
    Planted("backoff", _BACKOFF, "FORGET_AFTER_S = 600.0", "FORGET_AFTER_S = 601.0"),
    Planted("backoff", _BACKOFF, "_Entry(min(INITIAL_S, limit_s), monotonic)", "_Entry(INITIAL_S, monotonic)"),
    Planted("backoff", _BACKOFF, "min(entry.delay_s * 2, limit_s)", "entry.delay_s * 2"),
    Planted("backoff", _BACKOFF, "            entry.updated_at = monotonic\n", ""),
    Planted("backoff", "pods/starts.py", "if remaining_s <= 0:", "if remaining_s < 0:"),
    Planted("grpc", _GRPC, "if answer is None:", "if False:"),
    Planted("grpc", _GRPC, "if answer.status == messages", "if answer.status <= messages"),
    Planted("grpc", _GRPC, "HealthCheckRequest(service=service)", "HealthCheckRequest()"),
    Planted("grpc", _GRPC, "if code is grpc.StatusCode.UNIMPLEMENTED:", "if False:"),
    Planted("grpc", _GRPC, '"Canceled" if name == "CANCELLED" else', ""),
    Planted("handlers", _EXEC, "(done.stdout + done.stderr)", "(done.stderr + done.stdout)"),
    Planted("handlers", _EXEC, "if done.exit_code == 0", "if done.exit_code <= 0"),
    Planted("handlers", "processes/command.py", "OUTPUT_LIMIT_BYTES = 10 * 2**10", "OUTPUT_LIMIT_BYTES = 10 * 1000"),
    Planted("handlers", _PROBER, "expand_command(command, container.env)", "command"),
    Planted("handlers", _TARGETS, "for p in container.ports if", "for p in reversed(container.ports) if"),
    Planted("handlers", _TARGETS, "if not 0 < number < 65536:", "if not 0 <= number < 65536:"),
    Planted("handlers", _TARGETS, 'r"[+-]?[0-9]+"', 'r"[0-9]+"'),
    Planted("handlers", _TCP, "connect(_split(where, host), port,", "connect(host, port,"),
    Planted("handlers", _DIAL, 'elif "\\0" in host or _NUMBERS.fullmatch(host):', "elif False:"),
    Planted("handlers", _DIAL, "if ipaddress.ip_address(host) == _NOWHERE:", "if False:"),
    Planted("eviction", _PRESSURE, "needed > observed.available", "needed >= observed.available"),
    Planted("eviction", _PRESSURE, "monotonic - at >= t.grace_s", "monotonic - at > t.grace_s"),
    Planted("eviction", _PRESSURE, "monotonic - at < transition_s", "monotonic - at <= transition_s"),
    Planted("eviction", _PRESSURE, "before.since.get(t, monotonic)", "monotonic"),
    Planted("eviction", _PRESSURE, "seen = {**before.seen, **{", "seen = {**{"),
    Planted("eviction", _PRESSURE, "for t in before.met if t not in met", "for t in before.since if t not in met"),
    Planted("eviction", _PRESSURE, "observations.get(t.signal), reclaims=True)", "observations.get(t.signal))"),
    Planted("eviction", _PRESSURE, "math.trunc(capacity * self.part)", "math.ceil(capacity * self.part)"),
    Planted(
        "eviction", _PRESSURE, "Threshold(signal, value, 0.0, reclaims.get(signal))", "Threshold(signal, value, 0.0)"
    ),
    Planted("eviction", _PRESSURE, 'if text in ("0%", "100%") else', 'if text == "0%" else'),
    Planted("eviction", _PRESSURE, "or (part == 0 and not zero)", ""),
    Planted("eviction", _PRESSURE, "        if signal not in periods:", "        if False:"),
    Planted("eviction", _PRESSURE, "seen.images_apart and not seen.containers_apart", "seen.images_apart"),
    Planted("eviction", _PRESSURE, "IMAGE_SIGNALS if shared else NODE_SIGNALS", "NODE_SIGNALS"),
    Planted("eviction", _PRESSURE, "for soft in (False, True):", "for soft in (False,):"),
    Planted("eviction", _PRESSURE, "                found.remove(ignored)", "                pass"),
    Planted(
        "eviction",
        _PRESSURE,
        "found += [replace(t, signal=signal)",
        "found += [replace(t, signal=signal, reclaim=None)",
    ),
    Planted("eviction", _PRESSURE, "if before.thresholds is None else before.thresholds", ""),
    Planted("pleg", _EVENTS, "(EventType.REMOVED,) if before is ContainerPhase.EXITED else ", ""),
    Planted("pleg", _EVENTS, "before = ContainerPhase.UNKNOWN", "before = ContainerPhase.RUNNING"),
    Planted("pleg", _EVENTS, "found.setdefault(container_id, phase)", "found[container_id] = phase"),
    Planted("pleg", _RELIST, "if elapsed_s <= self.pace.threshold_s:", "if elapsed_s < self.pace.threshold_s:"),
    Planted("pleg", _RELIST, "            self._marked.add(uid)\n            return e", "            return e"),
    Planted("pleg", _RELIST, "if not events and self._syncs_reinspected:", "if False:"),
    Planted("pleg", _RELIST, "self._cache.set(RuntimePod(uid), e, monotonic)", "pass"),
    Planted("pleg", _RELIST, "event.type is not EventType.CHANGED and not self._deliver", "not self._deliver"),
    Planted("pleg", _RELIST, " or any(sandbox.ready for sandbox in pod.sandboxes)", ""),
    Planted("pleg", _RELIST, "        self._cache.observe(uid, monotonic)\n", ""),
    Planted("pleg", _CACHE, "time > monotonic for time in times", "time >= monotonic for time in times"),
    Planted("pleg", _CACHE, "entry.modified > monotonic", "entry.modified >= monotonic"),
    Planted("pleg", "pleg/generator.py", "asked_at > listed_at", "asked_at >= listed_at"),
    Planted("pleg", "pleg/evented.py", "            return 0\n", "            pass\n"),
    Planted("plugins", _WORLD, "FIRST_PAUSE_S = 0.5", "FIRST_PAUSE_S = 0.6"),
    Planted("plugins", _WORLD, "monotonic - self.at > self.pause_s", "monotonic - self.at >= self.pause_s"),
    Planted("plugins", _WORLD, "min(2 * before.pause_s, LONGEST_PAUSE_S)", "FIRST_PAUSE_S"),
    Planted("plugins", _WORLD, "if wanted.get(socket) != one.version and", "if socket not in wanted and"),
    Planted("plugins", _WORLD, "(socket not in registered or registered[socket].version != version)", "True"),
    Planted("plugins", _WORLD, "return socket not in pending and (", "return ("),
    Planted("plugins", _PLUGINS, "self._failures.pop(socket, None)", "pass"),
    Planted("plugins", _PLUGINS, "                handler.deregister(info.name)\n", ""),
    Planted("plugins", _PLUGINS, "                self._registered.pop(socket, None)", "                pass"),
    Planted("plugins", _PLUGINS, "self._registered[socket] = Registered(version, taken)", "pass"),
    Planted("prober", _DECIDE, "RESTART_GRACE_S = 10.0", "RESTART_GRACE_S = 11.0"),
    Planted("prober", _DECIDE, "ProbeType.STARTUP: Result.UNKNOWN}", "ProbeType.STARTUP: Result.FAILURE}"),
    Planted("prober", _DECIDE, "started_at < manager_start - ", "started_at <= manager_start - "),
    Planted("prober", _DECIDE, "int(wall - began) < delay_s", "int(wall - began) <= delay_s"),
    Planted("prober", _DECIDE, "int(wall - began)", "round(wall - began)"),
    Planted("prober", _DECIDE, "on_hold=True, streak=replace(streak, run=0)", "on_hold=True"),
    Planted("prober", _DECIDE, "container_id=container_id, on_hold=False", "container_id=container_id"),
    Planted(
        "prober", _DECIDE, "status.phase in (PodPhase.FAILED, PodPhase.SUCCEEDED)", "status.phase == PodPhase.FAILED"
    ),
    Planted("prober", _DECIDE, "and target.type is not ProbeType.READINESS", "and target.type is ProbeType.LIVENESS"),
    Planted("prober", _DECIDE, "if found is not None and found.container_id:", "if found is not None:"),
    Planted(
        "prober",
        _MANAGER,
        "ADD_ORDER = (ProbeType.STARTUP, ProbeType.READINESS",
        "ADD_ORDER = (ProbeType.READINESS, ProbeType.STARTUP",
    ),
    Planted("prober", _MANAGER, "types = (ProbeType.LIVENESS, ProbeType.STARTUP)", "types = tuple(ProbeType)"),
    Planted(
        "prober",
        _MANAGER,
        "if result is Result.SUCCESS:\n            return True",
        "if result is not None:\n            return result is Result.SUCCESS",
    ),
    Planted("prober", _PROBER, "ATTEMPTS = 3", "ATTEMPTS = 2"),
    Planted("prober", "prober/results.py", "changed = self._results.get(container_id) is not result", "changed = True"),
    Planted("prober", "probe/streak.py", "last: Result = Result.SUCCESS", "last: Result = Result.FAILURE"),
    Planted(
        "prober",
        "status/restarts.py",
        'rule.operator == "NotIn" and exit_code not in',
        'rule.operator == "NotIn" and exit_code in',
    ),
    Planted(
        "lease",
        _LEASE,
        "            except _NoNodeError:\n                self._latest = None",
        "            except _NoNodeError:",
    ),
    Planted("lease", _LEASE, "if isinstance(e, Conflict):", "if False:"),
    Planted("lease", _LEASE, "node = None if has_owner(self._latest) else self._node(deadline_s)", "node = None"),
    Planted(
        "lease",
        _LEASE,
        "            except NotFound:\n                self._latest = None",
        "            except NotFound:",
    ),
    Planted("lease", _LEASE, "renew_time=self._wall()", "renew_time=self._wall() // 1"),
    Planted("lease", "wire/lease.py", 'if key != "holderIdentity"', "if key"),
    Planted("lease", "wire/lease.py", "return bool((lease", "return True or bool((lease"),
    Planted("starts", _ENVIRONMENT, "expand(variable.value, named)", "expand(variable.value, place.base_env)"),
    Planted("starts", _ENVIRONMENT, "        if not variable.absent:\n", "        if True:\n"),
    Planted(
        "starts",
        _ENVIRONMENT,
        "for variable in container.env if not variable.absent)",
        "for variable in container.env)",
    ),
    Planted("starts", _ENVIRONMENT, "(c if c.isprintable() else _code(c))", "c"),
    Planted("starts", _ENVIRONMENT, "in sorted(pairs.items())", "in pairs.items()"),
    Planted("status", _GENERATE, "restart_count = max(restart_count, old.restart_count)", "pass"),
    Planted("status", _GENERATE, "is ContainerPhase.EXITED and newest.exit_code == 0", "is ContainerPhase.EXITED"),
    Planted("status", _GENERATE, "1 if pod.deletion_timestamp is None else 0", "1"),
    Planted("status", _GENERATE, "newest is None and waits and not is_sidecar(container)", "newest is None and waits"),
    Planted("status", "runtime/base.py", "if not newest.ready or newest.host_network", "if newest.host_network"),
    Planted("status", "runtime/base.py", "not self.sandboxes or not self.sandboxes[0].ready", "not self.sandboxes"),
    Planted("status", "runtime/base.py", 'if c.sandbox_id in ("", self.sandboxes[0].id)', ""),
    Planted(
        "status", "runtime/base.py", 'in ("", self.sandboxes[0].id)', "in {s.id for s in self.sandboxes if s.ready}"
    ),
    Planted("status", _KEPT, "if status_uid is None:", "if False:"),
    Planted("status", _KEPT, "            pod = self._pods.mirror_of(pod)\n", "            pass\n"),
    Planted("status", _KEPT, "return pod.status if mirror is None else mirror.status", "return pod.status"),
    Planted("status", _MERGE, "    if pod.mirror:\n        return False\n", ""),
    Planted("status", "pods/index.py", "self._resolved.get(uid, uid)", "uid"),
    Planted("status", _GENERATE, "old.ephemeral_container_statuses", "()"),
    Planted("status", "status/deadline.py", "left_s is not None and left_s <= 0", "left_s is not None and left_s < 0"),
    Planted("status", _GENERATE, "past_active_deadline(pod, old,", "past_active_deadline(pod, pod.status,"),
    Planted("status", "status/phase.py", "if status.started is not True:", "if status.started is False:"),
    Planted("status", "status/phase.py", "(counts.sidecar_pending and not initialized)", "counts.sidecar_pending"),
    Planted(
        "status",
        "status/conditions.py",
        "phase == PodPhase.SUCCEEDED and not unknown:\n        return build",
        "False:\n        return build",
    ),
    Planted(
        "status",
        "status/restarting.py",
        "newest is None or newest.phase is not",
        "newest is not None and newest.phase is not",
    ),
    Planted("status", "status/termination.py", "return index + 1", "return index"),
    Planted("status", _MERGE, "float(math.floor(time_s))", "float(round(time_s))"),
    Planted("status", _MERGE, "if going_terminal and could_run:", "if could_run:"),
    Planted("status", _MERGE, "CONDITION_READY,\n    CONDITION_INITIALIZED,", "CONDITION_READY,"),
    Planted("status", _KEPT, "if kept is not None and kept.finished and not pod.static:", "if False:"),
    Planted(
        "status", _KEPT, "self._api_versions[pod.uid or uid] = kept.version", "self._api_versions[pod.uid or uid] = 0"
    ),
    Planted("status", "status/patch.py", "patch.update(dict.fromkeys(old.keys() - new.keys()))", "pass"),
    Planted("status", _RESIZE, "reason if reason == REASON_INFEASIBLE else REASON_DEFERRED", "reason"),
    Planted("status", _RESIZE, "before.observed_generation) != (reason, generation)", "0) != (reason, 0)"),
    Planted("status", _RESIZE, "        generation = before.observed_generation\n", ""),
    Planted("status", _RESIZE, "reason, message = before.reason, before.message", "pass"),
    Planted(
        "status", _RESIZE, "before is not None and before.reason == reason else wall", "before is not None else wall"
    ),
    Planted("status", _RESIZE, "said.message, said.observed_generation, wall)", "said.message, 0, wall)"),
    Planted(
        "status", _RESIZE, "for c in (self.pending, self.in_progress)", "for c in (self.in_progress, self.pending)"
    ),
    Planted("status", _RESIZE, "if generation or not any", "if not any"),
    Planted("node", _FACTS, "if name in capacity or not _is_extended(name)", "if name in capacity"),
    Planted("node", _FACTS, "capacity = {**old.capacity, **facts.capacity}", "capacity = {**facts.capacity}"),
    Planted("node", _FACTS, "before is None or before.status != condition.status", "before is None"),
    Planted("node", _FACTS, "return replace(before, last_heartbeat_time=wall)", "pass"),
    Planted("node", _FACTS, "if len(once) == 1 else", "if once else"),
    Planted("node", _FACTS, "old.info != new.info or ", ""),
    Planted("node", _FACTS, "if _of_runtime(old) != _of_runtime(new):", "if False:"),
    Planted("node", _FACTS, "STATUS_TRUE if under else STATUS_FALSE", "STATUS_FALSE"),
    Planted("node", _FACTS, "swap_bytes=facts.machine.swap_bytes or", "swap_bytes="),
    Planted("node", _FACTS, "old.volumes_in_use if found.volumes_in_use is None", "() if not found.volumes_in_use"),
    Planted("node", _FACTS, "return {ATTACHES: ours.get(ATTACHES)}", "return {ATTACHES: None}"),
    Planted("node", _FACTS, 'node.annotations.get(ATTACHES, "") ==', "node.annotations.get(ATTACHES) =="),
    Planted("node", _FACTS, "[*runtime, *network, *storage, *shutdown]", "[*runtime, *network, *shutdown, *storage]"),
    Planted("node", _FACTS, '"pods", "ephemeral-storage")', '"pods")'),
    Planted("node", _FACTS, "message + warning", "message"),
    Planted("node", _FACTS, "str(max(0, math.ceil(left)))", "str(math.ceil(left))"),
    Planted("node", _FACTS, "{**capacity, **gone}, {**allocatable, **gone}", "capacity, allocatable"),
    Planted("node", _FACTS, "{} if old.allocatable else dict(new.allocatable)", "{}"),
    Planted("node", _FACTS, 'amount(left.get(name, "0")) != amount(new.allocatable[name])', "False"),
    Planted("node", _ADMISSION, "pod.host_network and not pod.host_users", "pod.host_network"),
    Planted("node", _ADMISSION, "if all_containers_could_restart(pod) else []", "if False else []"),
    Planted("node", _READINESS, ">= DOWN_AFTER_S", "> DOWN_AFTER_S"),
    Planted("node", _READINESS, "ready_at=monotonic if is_ready else before.ready_at", "ready_at=monotonic"),
    Planted("node", _READINESS, 'NETWORK_UNKNOWN = "network state unknown"', 'NETWORK_UNKNOWN = ""'),
    Planted(
        "node",
        _READINESS,
        "*others, *([self.runtime] if self.runtime else [])",
        "*([self.runtime] if self.runtime else []), *others",
    ),
    Planted("node", _FACTS, "old.info != new.info or declared or", "old.info != new.info or"),
    Planted("node", _FACTS, "old.declared_features if facts.declared_features is None else", "()if 0 else"),
    Planted("node", _FACTS, "            old.supplemental_groups_policy\n", "            None\n"),
    Planted("node", _FACTS, "status.volumes_in_use, status.supplemental_groups_policy", "status.volumes_in_use"),
    Planted("node", _REPORTS, "if self._get_on_exists_only and isinstance(e, Forbidden):", "if False:"),
    Planted("node", _FOUND, "IMAGES = 50", "IMAGES = 51"),
    Planted("node", _FOUND, "NAMES = 5", "NAMES = 6"),
    Planted("node", _FOUND, "(image.size_bytes, image.id)", "image.size_bytes"),
    Planted("node", _FOUND, "image.digests + image.tags", "image.tags + image.digests"),
    Planted("node", _FACTS, "**processor, **facts.labels}", "**facts.labels, **processor}"),
    Planted("node", _REPORTS, "if changed or first else 0.0", "if changed else 0.0"),
    Planted("node", _REPORTS, "< REPORT_S + self._delay_s", "<= REPORT_S + self._delay_s"),
    Planted("node", _REPORTS, "TRIES = 5", "TRIES = 4"),
    Planted("node", "wire/node.py", "for name in _write_of_runtime(old) if name not in written", "for name in ()"),
    Planted("node", "wire/node.py", """    written["addresses"].append({"$patch": "replace"})\n""", ""),
    Planted("http", _HTTP, "REDIRECTS = (301, 302, 303, 307, 308)", "REDIRECTS = (301, 302, 307, 308)"),
    Planted("http", _HTTP, "REDIRECT_LIMIT = 10", "REDIRECT_LIMIT = 11"),
    Planted("http", _HTTP, "if 300 <= status < 400:", "if 301 <= status < 400:"),
    Planted("http", _HTTP, '"Content-Length", "Transfer-Encoding", "Trailer"', '"Content-Length", "Transfer-Encoding"'),
    Planted("http", _HTTP, "following.url.hostname != request.url.hostname", "following.url.host != request.url.host"),
    Planted("http", _REPLY, 'codings[0].lower() != "chunked"', 'codings[0].lower() not in ("chunked", "identity")'),
    Planted("http", _REPLY, "if any(value != given[0] for value in given):", "if False:"),
    Planted("http", _REPLY, "if len(code) != 3 or not", "if not"),
    Planted("http", _REPLY, "status in (204, 304)", "status == 204"),
    Planted("http", _URL, 'base[: base.rfind("/") + 1] + ref', 'base[: base.rfind("/")] + ref'),
    Planted("http", "probe/targets.py", 'elif not headers["Accept"][0]:', 'elif headers["Accept"] == ("",):'),
)
