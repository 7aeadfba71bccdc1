"""The chat-app bridge: the content of its messages, and its operations besides sending (C29.3)."""

from collections.abc import Mapping
from typing import Any

from recado.channels.chatapp import bridge_answers
from recado.channels.chatapp.account import details_of
from recado.channels.chatapp.template_listing import TemplateListing
from recado.channels.core.bridge.bridge_media import MediaBridge
from recado.channels.core.provider import (
    Account,
    FlowDefinition,
    NumberHealth,
    OutboundMessage,
    ProviderTemplate,
    Submission,
    TemplateSubmission,
)

_LONGEST_LIST = 4 * 1024 * 1024  # bytes of an answer that lists templates


class Bridge(MediaBridge):
    """As of any channel; its business account is named in each operation."""

    def content(self, message: OutboundMessage) -> dict[str, Any]:
        content: dict[str, Any] = {"type": message.type}
        if message.payload is not None:
            content["payload"] = message.payload
        if (template := message.template) is not None:
            content["template"] = {
                "name": template.name,
                "language": template.language,
                "components": template.components,
                "variables": template.variables,
            }
        return content

    async def number_health(self, account: Account) -> NumberHealth:
        return bridge_answers.number_health(await self.call("number_health", account))

    async def update_profile(self, account: Account, profile: Mapping[str, str]) -> None:
        await self.call("update_profile", account, profile=dict(profile))

    async def connect(self, account: Account) -> None:
        await self.call("connect", account)

    async def disconnect(self, account: Account) -> None:
        await self.call("disconnect", account)

    async def submit_template(self, account: Account, template: TemplateSubmission) -> Submission:
        answer = await self.call(
            "submit_template",
            account,
            id=template.id,
            name=template.name,
            language=template.language,
            category=template.category,
            components=list(template.components),
            headerExampleUrl=template.header_example_url,
            providerTemplateId=template.provider_template_id,
            callbackUrl=self._callback_url,
        )
        return bridge_answers.submission(answer)

    async def delete_template(self, account: Account, name: str, provider_template_id: str | None) -> None:
        await self.call("delete_template", account, name=name, providerTemplateId=provider_template_id)

    async def list_templates(self, account: Account) -> list[ProviderTemplate]:
        answer = await self.call("list_templates", account, longest=_LONGEST_LIST)
        listing = TemplateListing()
        for each in bridge_answers.templates(answer):
            listing.take(each)
            await self._clock.sleep(0)  # a template may be long: others have their turn between two
        return listing.ended(account)

    async def create_flow(self, account: Account, flow: FlowDefinition) -> str:
        answer = await self.call(
            "create_flow",
            account,
            name=flow.name,
            providerCategories=list(flow.categories),
            flowJson=flow.content,
            callbackUrl=self._callback_url,
        )
        return bridge_answers.flow_id(answer)

    async def publish_flow(self, account: Account, provider_flow_id: str) -> None:
        await self.call("publish_flow", account, providerFlowId=provider_flow_id)

    async def deprecate_flow(self, account: Account, provider_flow_id: str) -> None:
        await self.call("deprecate_flow", account, providerFlowId=provider_flow_id)

    def of_account(self, account: Account) -> Mapping[str, Any]:
        return {**super().of_account(account), "businessAccount": details_of(account).business_account_id}
