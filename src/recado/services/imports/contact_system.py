"""Everything that writes contacts and searches them, put together: one service of the installation."""

from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.domain.messages.changes import OnChange
from recado.engine.service import ServiceGroup
from recado.services.contacts.consents import Consents
from recado.services.contacts.contact_creation import ContactCreation
from recado.services.contacts.contact_erasure import ContactErasure
from recado.services.contacts.contacts import Contacts
from recado.services.imports.contact_imports import ContactImports
from recado.storage.contacts.contact_reads import ContactSearch
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Effects
from recado.storage.webhooks.webhooks import SubscriptionDirectory


class ContactSystem:
    """The parts; a service (`start`, `stop`). `effects`: of messages that are withdrawn; `changed` hears of events."""

    def __init__(
        self,
        db: Database,
        *,
        ids: IdSource,
        documents: DocumentCipher,
        subscriptions: SubscriptionDirectory,
        effects: Effects,
        changed: OnChange,
        clock: Clock,
    ) -> None:
        self.documents = documents
        self.consents = Consents(ids, effects, changed, documents.keys)
        self.creation = ContactCreation(db, subscriptions=subscriptions, consents=self.consents, clock=clock)
        self.erasure = ContactErasure(db, effects=effects, clock=clock)
        self.changes = Contacts(
            db,
            ids=ids,
            documents=documents,
            consents=self.consents,
            deleted=self.erasure.hint,
        )
        self.imports = ContactImports(db, ids=ids, documents=documents, consents=self.consents, clock=clock)
        self.search = ContactSearch(db)
        self._parts = ServiceGroup((self.search, self.creation, self.erasure, self.imports))

    async def start(self) -> None:
        await self._parts.start()

    async def stop(self) -> None:
        await self._parts.stop()
