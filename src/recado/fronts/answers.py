"""What a process that sends answers to the owner's questions (`asks.py`), in parts, as fast as the owner reads them."""

from collections.abc import AsyncGenerator
from typing import Any

import structlog

from recado.actors.ops import live_number
from recado.actors.ops.live_actor import said_of_actor
from recado.actors.ops.process_figures import ProcessFigures
from recado.actors.ops.provider_states import said_of_accounts
from recado.actors.system import ActorSystem
from recado.domain.senders.sender import SenderKey
from recado.engine.link import Link
from recado.engine.supervisor import Supervisor
from recado.engine.turns import in_pieces
from recado.fronts import asks, frames
from recado.storage.ops.scope import Scope

log = structlog.get_logger(__name__)


class AnswersToOwner:
    """Answers for the actors of this process; `tree` has those that run."""

    def __init__(self, system: ActorSystem, tree: Supervisor, link: Link) -> None:
        self._system = system
        self._tree = tree
        self._link = link

    async def answer(self, asked: int, what: str, about: Any) -> None:
        """Say all parts. What cannot be said is no answer: whoever asked waits no longer than it would for one."""
        try:
            last: Any = None
            async for part in self._parts(what, about):
                if last is not None and not self._link.give(frames.ANSWER, [asked, last, True]):
                    return
                last = part
                await self._link.room()
            self._link.give(frames.ANSWER, [asked, last, False])
        except Exception as error:  # noqa: BLE001 - it is no answer
            log.error("question_not_answered", about=what, error=type(error).__qualname__)

    async def _parts(self, what: str, about: Any) -> AsyncGenerator[Any]:
        system = self._system
        match what:
            case asks.NUMBERS:
                states = system.number_states
                async for keys in in_pieces(states.lives(), asks.OF_A_PART):
                    yield [[list(key), live_number.said_of(states.live(key))] for key in keys]
            case asks.LANES:
                organization_id, env, most = about
                lanes = await system.actor_tree.lanes_here(Scope(organization_id, env), most)
                async for some in in_pieces(lanes, asks.OF_A_PART):
                    yield [said_of_actor(each) for each in some]
            case asks.ACCOUNTS:
                organization_id, env, most = about
                for state in await system.provider_states.accounts(Scope(organization_id, env), most):
                    yield said_of_accounts(state)
            case asks.FIGURES:
                yield (await ProcessFigures.of(system.lane_context, self._tree)).said
            case _:
                yield await self._of_one(what, SenderKey(*about))

    async def _of_one(self, what: str, sender: SenderKey) -> Any:
        system = self._system
        match what:
            case asks.SITUATION:
                return live_number.said_of_situation(await system.lanes.ask_situation(sender))
            case asks.TROUBLE:
                return live_number.said_of_hold(system.lane_context.trouble(sender.sender_id))
            case asks.NUMBER:
                return live_number.said_of(system.number_states.live_with_hour(sender))
        lane = system.lanes.supervisor.find(sender)
        if lane is not None and what == asks.RESTART:
            await system.lanes.supervisor.restart_child(lane)
        return None if lane is None else lane.kind
