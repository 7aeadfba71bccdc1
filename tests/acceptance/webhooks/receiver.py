"""A webhook receiver as its user writes one; run as a program of its own: `receiver.py HOW SECRET_FILE`.

HOW is `library`, the public package, or `page`, the function that docs/webhooks.md shows. It listens on a free port of
127.0.0.1 and prints it, then a line of JSON for each request. tests/node/receiver.mjs is the same for Node.js.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import standardwebhooks

PAGE = Path(__file__).parents[3] / "docs" / "webhooks.md"


def accepted_by_library(secret: str, headers: dict[str, str], body: bytes) -> bool:
    try:
        standardwebhooks.Webhook(secret).verify(body, headers)
    except standardwebhooks.WebhookVerificationError:
        return False
    return True


def accepted_by_page(secret: str, headers: dict[str, str], body: bytes) -> bool:
    shown = re.search(r"```python\n(import base64.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert shown is not None
    names: dict[str, Any] = {}
    exec(shown[1], names)
    return bool(names["is_from_recado"](secret, headers.get("x-svc-signature", ""), body))


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 to what is genuine and 400 to everything else."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        accept = accepted_by_library if sys.argv[1] == "library" else accepted_by_page
        accepted = accept(Path(sys.argv[2]).read_text("utf-8"), headers, body)
        print(json.dumps({"accepted": accepted, "headers": headers, "body": body.decode()}), flush=True)
        self.send_response(204 if accepted else 400)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Nothing beside the lines of JSON."""


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    print(server.server_port, flush=True)
    server.serve_forever()
