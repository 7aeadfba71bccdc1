"""Groups of rows, such as the organizations that have some, found by skipping along an index (decision 0005).

The text of a table expression, for `with recursive {…}` of a statement: a row for each group, read one after the other
and only as far as the statement asks. So thousands of rows of one group keep nobody from the next one.
"""

from collections.abc import Sequence


def groups(
    name: str, table: str, keys: Sequence[str], *, where: str = "", after: str = "", also: Sequence[str] = ()
) -> str:
    """The groups of the rows `where`, by the first columns of an index. `after`: which groups only, a condition.

    `also`: further columns of the index, of the first row of each group.
    """
    order = ", ".join((*keys, *also))
    first = " and ".join(filter(None, (where, after)))
    before, behind = (", ".join(f"{prefix}{key}" for key in keys) for prefix in ("", "g."))
    following = f"{before} > {behind}" if len(keys) == 1 else f"({before}) > ({behind})"
    return f"""{name} as (
    (
        select {order} from {table}
        {f"where {first}" if first else ""}
        order by {order}
        limit 1
    )
    union all
    select next.*
    from {name} g
    cross join lateral (
        select {order} from {table}
        where {" and ".join(filter(None, (where, following)))}
        order by {order}
        limit 1
    ) next
)"""  # noqa: S608 - names that stand in the program
