"""How gunicorn serves us. Read by extender.process.server, which adds the address and the log level.

One process, because it holds the caches: two would be two views of the cluster that may disagree.
"""
# ruff: noqa: N999 - the name gunicorn gives its configuration files

import os

from extender.foreground import GunicornLog, log_address
from extender.process.server import start_services, stop_services
from extender.process.worker import Worker

worker_class = Worker  # gthread, see there
workers = 1
threads = 16  # a silent connection occupies one for five seconds
# kube-scheduler keeps idle connections for 90 s and repeats no POST it has begun to write: we must not close first.
keepalive = 120
timeout = 30
graceful_timeout = 10
max_requests = 0  # a new worker starts with empty caches
control_socket_disable = True
# The worker's heartbeat file: on a disk, a stalled disk would have the worker killed.
worker_tmp_dir = next((folder for folder in ("/dev/shm", "/run") if os.access(folder, os.W_OK)), None)  # noqa: S108
# No proxy stands before us: what a client says of its path, scheme or address is not believed.
forwarded_allow_ips = ""
forwarder_headers = ""
accesslog = None
logger_class = GunicornLog

when_ready = log_address
# Threads do not survive a fork: they start in the worker, and before it accepts.
post_worker_init = start_services
worker_exit = stop_services
