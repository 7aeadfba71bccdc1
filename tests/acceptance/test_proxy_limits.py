"""What `deploy/proxies` lets through is what the service has bounds for (C31)."""

import re
from pathlib import Path

from tests.acceptance.served import Served

from recado.http.api.route import MIB

SHOWN = Path(__file__).parents[2] / "deploy" / "proxies"


def test_proxies_refuse_only_what_is_larger_than_any_body_that_the_service_takes(served: Served) -> None:
    largest = max(route.body_limit for route in served.routes) // MIB
    for file, limit in (("nginx.conf", r"client_max_body_size (\d+)m;"), ("Caddyfile", r"max_size (\d+)MiB")):
        text = (SHOWN / file).read_text("utf-8")
        found = re.search(limit, text)
        assert found is not None
        assert int(found[1]) == largest + 1
        assert f"{largest} MiB" in text  # which is what it says of it
