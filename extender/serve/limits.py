"""The limits of each client, of all clients, and of one turn of the loop. Pure: numbers, each with its reason."""

# Seconds. kube-scheduler keeps idle connections for 90 s and never repeats a POST that it has begun to write. So the
# server must not close first, and the limit of idle connections never goes below 95.
HEAD_LIMIT_S = 5.0
BODY_LIMIT_S = 10.0  # in all, from the end of the head; kube-scheduler itself waits for one second, or five
ANSWER_LIMIT_S = 10.0  # for a client that does not read
IDLE_LIMIT_S = 120.0
CLOSE_LIMIT_S = 1.0  # a client that closes after its answer does so within milliseconds

# One body above this size is read at a time, and the others wait unread (see eviction.LargeBodies). While others wait,
# a turn lasts TURN_S at most. It ends as soon as fewer bytes than a step come within a pause, so a client must send 1.3
# MB/s. 2 MB take 16 ms at 1 Gbit/s. A client that is delayed for longer than a pause waits for its next turn.
LARGE_BODY_BYTES = 2**20
LARGE_BODY_TURN_S = 0.5
LARGE_BODY_PAUSE_S = 0.05
LARGE_BODY_STEP_BYTES = 2**16
LARGE_BODY_LOOK_S = 0.02  # how often the turn is checked while others wait

HEAD_LIMIT_BYTES = 2**16
HEADERS_MAX = 100
KNOWN_HEAD_BYTES = 512  # kube-scheduler's head has 180
KNOWN_HEADS_MAX = 1024  # their lengths differ with the names of the nodes and the kinds of pods
PIPELINED_MAX = 32  # requests in one packet; the last of them is answered with `Connection: close`
# A body in many small pieces costs one call a piece.
PIECES_MAX = 256
PIECE_MIN_BYTES = 512  # on average, beyond PIECES_MAX
# The same for TLS records, until the first answer. Go's begin with 1,200 bytes, and only the last of a request is
# smaller.
SMALL_RECORD_BYTES = 512
SMALL_RECORDS_MAX = 64
FRAMING_MAX_BYTES = 2**16  # for chunk headers, plus an eighth of the body
DISCARD_MAX_BYTES = 2**28  # how much of a refused body is read and dropped, so that its client receives the answer

CONNECTIONS_MAX = 128
NEWCOMERS_MIN = 32  # of connections without a verdict; more only while there is room
KEPT_MAX = 32  # of connections with the most verdicts, which are not evicted while others can be
FILES_RESERVED = 64  # descriptors for watches, files and the log
# how long nothing is accepted without free descriptors; connections that still wait then are refused
NO_DESCRIPTORS_S = 0.05
GIVES_EVERY_S = 30.0  # before another connection is closed for its descriptor, if the last one did not help
# All bytes of all clients, in and out: one body of 8 MiB, its answer, and as much again.
HELD_MAX_BYTES = 32 * 2**20
SOCKET_BUFFER_BYTES = 2**18  # of the kernel, for each direction of each connection; the kernel doubles the number

RECEIVE_BYTES = 2**16  # at most this much of a connection in one turn, and of
RECEIVES_MAX = 4  # times as much of a connection that goes before a crowd: what the kernel holds of it
ACCEPTS_MAX = 16  # new connections in one turn: each is read before it can be evicted
ONE_SEND_BYTES = 2**17  # head and body of an answer are copied into one piece up to this size
EVENTS_MAX = 16  # connections that are handled in one turn; ready ones beyond them come first in the next turn
FEW = 4  # waiting requests, up to which seniors make no difference
SLICE_S = 0.005  # longest time of answering before new requests are read, except for one long answer


def connections_max(files_max: int) -> int:
    """Returns how many connections there may be. files_max: RLIMIT_NOFILE."""
    return max(1, min(CONNECTIONS_MAX, files_max - FILES_RESERVED))
