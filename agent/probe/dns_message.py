"""DNS messages: RFC 1035, 4.1, one question, and what of a response shows whether it was answered. Pure."""

import struct

ANSWERED = "answered"
_RCODES = {1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED by the server"}
_TYPES = {"A": 1, "AAAA": 28}


def query_of(name: str, kind: str, number: int) -> bytes:
    labels = name.removesuffix(".").encode("ascii").split(b".")
    question = b"".join(bytes([len(label)]) + label for label in labels) + struct.pack(">BHH", 0, _TYPES[kind], 1)
    return struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + question


def said_in(message: bytes, query: bytes) -> str | None:
    """ANSWERED, or the rcode by name, or that there is no such record; None for what is no response to the query. A
    truncated response is one: the server has found the name."""
    if len(message) < 12:
        return None
    number, flags, questions, answers, _, _ = struct.unpack_from(">HHHHHH", message)
    rcode = flags & 0x000F
    if number != int.from_bytes(query[:2]) or not flags & 0x8000:
        return None
    asked = message[12 : len(query)].lower() == query[12:].lower() if questions else rcode != 0
    if not asked:
        return None
    if rcode:
        return _RCODES.get(rcode, f"rcode {rcode}")
    return ANSWERED if answers or flags & 0x0200 else "no such record"
