"""A receiver of webhooks that can be killed: it writes each request down, and then replies.

`python -m tests.chaos.hook PORT FILE`; while FILE.fails exists it takes nothing, with 503.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def main(port: int, file: str) -> None:
    turn = threading.Lock()
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            failing = os.path.exists(f"{file}.fails")
            if not failing:
                headers = {name.lower(): value for name, value in self.headers.items()}
                line = json.dumps({"headers": headers, "body": body}) + "\n"
                with turn:  # whole lines, though it be killed
                    os.write(log, line.encode())
            self.send_response(503 if failing else 204)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_address = True
        request_queue_size = 128

    Server(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
