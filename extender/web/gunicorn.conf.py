"""gunicorn's settings of the status API that never differ. Read by extender.web.server, which adds the address and the
log level."""
# ruff: noqa: N999 - the name gunicorn gives its configuration files

import os

from extender.process.foreground import log_address
from extender.web.server import StatusApiLog, start_mirror, stop_mirror
from extender.web.worker import Worker

worker_class = Worker
workers = 1  # it holds the replica
threads = 4  # each may hold a page of megabytes; /livez needs none
worker_connections = 64
backlog = 1024  # connections that the kernel holds until they are accepted; a flood must not fill it
keepalive = 5
timeout = 30
graceful_timeout = 1  # seconds; a stopping worker has ended by then, see Worker
control_socket_disable = True
# The worker's heartbeat file. On a disk, a stalled disk would get the worker killed.
worker_tmp_dir = next((folder for folder in ("/dev/shm", "/run") if os.access(folder, os.W_OK)), None)  # noqa: S108
# There is no proxy in front: what a client says of its path, scheme or address is not trusted.
forwarded_allow_ips = ""
forwarder_headers = ""
accesslog = None
logger_class = StatusApiLog

when_ready = log_address
# Threads do not survive a fork: the replica starts in the worker.
post_worker_init = start_mirror
worker_exit = stop_mirror
