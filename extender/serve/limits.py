"""How much of everything a client may have. Pure: numbers, each with its reason."""

# Seconds. kube-scheduler keeps idle connections for 90 s and repeats no POST it has begun to write: we must not close
# first, so the limit of idle ones never goes below 95.
HEAD_LIMIT_S = 5.0
BODY_LIMIT_S = 10.0  # in all, from the end of the head; kube-scheduler itself waits for one second, or five
ANSWER_LIMIT_S = 10.0  # for a client that does not read
IDLE_LIMIT_S = 120.0
CLOSE_LIMIT_S = 1.0  # a client that closes when it has its answer does so within milliseconds

# One body above this size is read at a time, the others wait unread (see crowd.LargeBodies). While others wait, a turn
# lasts TURN_S at most, and ends as soon as fewer bytes than a step come within a pause: a client must send 1.3 MB/s.
# 2 MB take 16 ms at 1 Gbit/s. A client that is delayed for longer than a pause waits for its next turn.
LARGE_BODY_BYTES = 2**20
LARGE_BODY_TURN_S = 0.5
LARGE_BODY_PAUSE_S = 0.05
LARGE_BODY_STEP_BYTES = 2**16
LARGE_BODY_LOOK_S = 0.02  # how often the turn is checked while others wait

HEAD_LIMIT_BYTES = 2**16
HEADERS_MAX = 100
KNOWN_HEAD_BYTES = 512  # kube-scheduler's has 180
KNOWN_HEADS_MAX = 1024  # their lengths differ with the names of the nodes and with the kinds of pods
PIPELINED_MAX = 32  # requests in one packet; the last of them is answered with `Connection: close`
# A body that comes in many small pieces costs a call a piece.
PIECES_MAX = 256
PIECE_MIN_BYTES = 512  # on average, beyond PIECES_MAX
# The same of TLS, until something is answered: Go's begin with 1,200 bytes, and only the last of a request is smaller.
SMALL_RECORD_BYTES = 512
SMALL_RECORDS_MAX = 64
FRAMING_MAX_BYTES = 2**16  # what chunks may have around them, beside an eighth of the body
DISCARD_MAX_BYTES = 2**28  # how much of a refused body is read past so that its client sees the answer

CONNECTIONS_MAX = 128
NEWCOMERS_MIN = 32  # of them, that have had no verdict; more only while there is room
KEPT_MAX = 32  # of them, that have had the most verdicts, and do not give their places as long as others can
FILES_RESERVED = 64  # descriptors that are not for connections: watches, files, the log
NO_DESCRIPTORS_S = 0.05  # how long nobody is taken where there are none; who still waits then is refused
GIVES_EVERY_S = 30.0  # before another connection gives its descriptor, where that of the last one was of no use
# All bytes of all clients, in and out. One body of 8 MiB, its answer, and as much again.
HELD_MAX_BYTES = 32 * 2**20
SOCKET_BUFFER_BYTES = 2**18  # the kernel's, for each direction of each connection; it doubles the number

RECEIVE_BYTES = 2**16  # at most this much of a connection a turn, and of
RECEIVES_MAX = 4  # times as much of one that goes before a crowd: what the kernel holds of it
ACCEPTS_MAX = 16  # new connections a turn: each is read from before it can have lost its place
ONE_SEND_BYTES = 2**17  # head and body of an answer are copied into one piece up to here
EVENTS_MAX = 16  # connections that are looked at a turn; who is ready beyond them is looked at before they are again
FEW = 4  # who wait for an answer: up to then it makes no difference who has been here longest
SLICE_S = 0.005  # longest time of answering before new requests are looked for, but for one long answer


def connections_max(files_max: int) -> int:
    """How many connections there may be. files_max: RLIMIT_NOFILE."""
    return max(1, min(CONNECTIONS_MAX, files_max - FILES_RESERVED))
