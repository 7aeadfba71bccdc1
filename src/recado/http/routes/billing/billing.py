"""Everything about coins: wallet, top-ups, prices and the administrator's credits.

Left out as a whole where nothing is billed: then these addresses answer 404 (C25.2.4).
"""

from recado.domain.core.ids import IdSource
from recado.domain.messages.changes import OnChange
from recado.http.api.paging import Cursors
from recado.http.api.route import Route
from recado.http.routes.billing.wallet import wallet_routes
from recado.http.routes.billing.wallet_credits import wallet_credit_routes
from recado.http.routes.billing.wallet_prices import wallet_price_routes
from recado.storage.billing.prices import PriceDirectory
from recado.storage.core.postgres import Database


def billing_routes(
    *, database: Database, ids: IdSource, cursors: Cursors, prices: PriceDirectory, changed: OnChange
) -> tuple[Route, ...]:
    """All of them."""
    return (
        *wallet_routes(database=database, ids=ids, cursors=cursors, changed=changed),
        *wallet_price_routes(prices=prices),
        *wallet_credit_routes(database=database, ids=ids, changed=changed),
    )
