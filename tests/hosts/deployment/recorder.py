"""Runs on a control plane host between kube-scheduler and the extender: passes all on, notes the filter requests.

`python3 recorder.py PORT EXTENDER_PORT FILE`; FILE gets one line per filter call: {"time", "request", "reply"} as they
went over the wire. Only what Debian's python3 has: the host has nothing else.
"""

import http.client
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # header and body in one write, so that nobody waits for a delayed acknowledgement
    extender_port = 0
    file = Path()

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        connection = http.client.HTTPConnection("127.0.0.1", self.extender_port, timeout=10)
        try:
            connection.request(self.command, self.path, body or None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            reply = answer.read()
        finally:
            connection.close()
        if self.command == "POST":
            with self.file.open("a") as file:
                note = {"time": time.time(), "request": json.loads(body), "reply": json.loads(reply)}
                file.write(json.dumps(note) + "\n")
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
        self.wfile.flush()

    do_GET = do_POST = pass_on  # noqa: N815


def main() -> None:
    Recorder.extender_port = int(sys.argv[2])
    Recorder.file = Path(sys.argv[3])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Recorder).serve_forever()


if __name__ == "__main__":
    main()
