"""A campaign: the set of messages with one tag, and when they are through (C15.6)."""

from datetime import timedelta
from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine

QUIET_FOR: Final = timedelta(minutes=15)
"""How long no message was accepted before a campaign counts as completed."""


class CampaignStatus(StrEnum):
    """The states."""

    RUNNING = "running"  # a message may still leave, or another may come soon
    COMPLETED = "completed"  # until another message is accepted


class CampaignEvent(StrEnum):
    """What happens to a campaign. The comments name who says so."""

    THROUGH = "through"  # the check of every minute: nothing is queued or sending, and nothing new came for a while
    ACCEPTED = "accepted"  # the commit that accepts a message


CAMPAIGN_MACHINE: Final = Machine(
    "campaign",
    {
        (CampaignStatus.RUNNING, CampaignEvent.THROUGH): CampaignStatus.COMPLETED,
        (CampaignStatus.RUNNING, CampaignEvent.ACCEPTED): CampaignStatus.RUNNING,
        (CampaignStatus.COMPLETED, CampaignEvent.ACCEPTED): CampaignStatus.RUNNING,
    },
    initial={"accepted": CampaignStatus.RUNNING},
)
