"""The policies of this program's channels: a new channel is entered here, and with its parts in `channel_table.py`."""

from typing import Final

from recado.domain.channels import chatapp, email, rcs, sms, social
from recado.domain.channels.policy import Policy

INSTALLED: Final[list[Policy]] = [chatapp.POLICY, sms.POLICY, rcs.POLICY, email.POLICY, social.POLICY]
