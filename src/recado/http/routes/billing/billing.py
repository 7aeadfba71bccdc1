"""Everything about coins: wallet, top-ups, prices and the administrator's credits.

Left out as a whole where nothing is billed: then these addresses answer 404 (C25.2.4).
"""

from recado.http.api.route import Route
from recado.http.routes.billing.wallet import wallet_routes
from recado.http.routes.billing.wallet_credits import wallet_credit_routes
from recado.http.routes.billing.wallet_prices import wallet_price_routes
from recado.http.routes.core.dependencies import Dependencies


def billing_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """All of them."""
    return (
        *wallet_routes(dependencies),
        *wallet_price_routes(dependencies.directories.prices),
        *wallet_credit_routes(dependencies),
    )
