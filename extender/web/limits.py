"""What clients of the status API may send. Pure: numbers, each with its reason."""

# A quarter of what kube-scheduler may send at its own port: enough for a try by hand, and this process is small.
BODY_LIMIT_BYTES = 2 * 2**20
# A larger body is read and answered alone, because the answer takes ten times its size. Others wait, then get 503.
LARGE_BODY_BYTES = 2**16
LARGE_BODY_WAIT_S = 1.0
# From the end of its head. A client that sends a byte now and then would else keep the turn for a minute.
LARGE_BODY_LIMIT_S = 5.0
