"""`recado` with the example channels entered, which is all that a channel needs."""

from tests.channels.example.policy import PAGES, URGENT_PAGES

from recado.domain.channels.installed import INSTALLED

INSTALLED.extend((PAGES, URGENT_PAGES))

# What follows from the policies is worked out when their modules are imported.
from tests.channels.example.pager import PARTS  # noqa: E402

from recado.channel_table import CHANNELS  # noqa: E402
from recado.cli.main import run  # noqa: E402

CHANNELS.extend(PARTS)

if __name__ == "__main__":
    run()
