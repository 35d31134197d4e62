"""What clients of the status API may send. Pure: numbers, each with its reason."""

# kube-scheduler's bodies, at its own port, may have 8 MiB. For a try by hand a quarter is enough: the memory is small.
BODY_LIMIT_BYTES = 2 * 2**20
# A larger body is read and answered alone: answering it takes ten times its size. Others wait so long, then get 503.
LARGE_BODY_BYTES = 2**16
LARGE_BODY_WAIT_S = 1.0
# From the end of its head. A client that sends a byte now and then would else keep the turn for a minute.
LARGE_BODY_LIMIT_S = 5.0
