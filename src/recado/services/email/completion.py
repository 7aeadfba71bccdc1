"""What is added to an e-mail after it was rendered, and before it is given to its provider (C10.2.7, C10.2.9)."""

from recado.domain.email.content import EmailContent


def completed(
    content: EmailContent, *, message_id: str, organization_id: str, env: str, tracking: bool, transactional: bool
) -> EmailContent:
    """The e-mail as it leaves: in this release as it was rendered, whatever `tracking` says."""
    return content
