"""gunicorn's settings that never differ. Read by extender.process.server, which adds the address and the log level.

There is one worker because it holds the caches: two caches could disagree.
"""
# ruff: noqa: N999 - the name gunicorn gives its configuration files

import os

from extender.process.arbiter import after_fork, before_fork
from extender.process.foreground import GunicornLog, log_address
from extender.process.server import start_services, stop_services
from extender.process.worker import Worker

worker_class = Worker
workers = 1
# The loop sends a heartbeat each second. While a worker hangs, each pod costs kube-scheduler a second.
timeout = 10
graceful_timeout = 3  # seconds; a stopping worker needs one, then it is killed
max_requests = 0  # a new worker starts with empty caches
control_socket_disable = True
# The worker's heartbeat file. On a disk, a stalled disk would get the worker killed.
worker_tmp_dir = next((folder for folder in ("/dev/shm", "/run") if os.access(folder, os.W_OK)), None)  # noqa: S108
accesslog = None
logger_class = GunicornLog

when_ready = log_address
pre_fork, post_fork = before_fork, after_fork
# Threads do not survive a fork: they start in the worker, before it accepts connections.
post_worker_init = start_services
worker_exit = stop_services
