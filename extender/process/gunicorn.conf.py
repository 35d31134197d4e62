"""How gunicorn serves us. Read by extender.process.server, which adds the address and the log level.

One process, because it holds the caches: two would be two views of the cluster that may disagree.
"""
# ruff: noqa: N999 - the name gunicorn gives its configuration files

import os

from extender.process.arbiter import after_fork, before_fork
from extender.process.foreground import GunicornLog, log_address
from extender.process.server import start_services, stop_services
from extender.process.worker import Worker

worker_class = Worker
workers = 1
# The loop gives a sign of life each second. One that is stopped or hangs costs kube-scheduler a second a pod meanwhile.
timeout = 10
graceful_timeout = 3  # a worker that stops needs one; then it is killed
max_requests = 0  # a new worker starts with empty caches
control_socket_disable = True
# The worker's heartbeat file: on a disk, a stalled disk would have the worker killed.
worker_tmp_dir = next((folder for folder in ("/dev/shm", "/run") if os.access(folder, os.W_OK)), None)  # noqa: S108
accesslog = None
logger_class = GunicornLog

when_ready = log_address
pre_fork, post_fork = before_fork, after_fork
# Threads do not survive a fork: they start in the worker, and before it accepts.
post_worker_init = start_services
worker_exit = stop_services
