"""A million contacts made in the database at once: the same ones in every run, and as different as customers are."""

from datetime import UTC, datetime

from bench.rows import LIMIT, Connection
from recado.domain.contacts.contact_search import search_mark
from recado.domain.core.ids import CONTACT, lowest_id

BLOCK = 100_000
RARE_NAMES = 1_150  # surnames; of a million contacts about 870 share each
# Everything that varies is drawn by a hash of the contact's number, each with a seed of its own.
_CONTACTS = """
with drawn as (
    select
        g,
        abs(hashint4extended(g, 1)) as a, abs(hashint4extended(g, 2)) as b, abs(hashint4extended(g, 3)) as c,
        abs(hashint4extended(g, 4)) as d, abs(hashint4extended(g, 5)) as e
    from generate_series($5::int, $6::int) g
),
people as (
    select
        *,
        '+55' || (11 + a % 80) || '9' || lpad(g::text, 8, '0') as phone,
        (array['Ana', 'Rui', 'Eva', 'Luís', 'Inês', 'João', 'Marta', 'Tomás'])[1 + b % 8] as first_name,
        (array['Souza', 'Lima', 'Costa', 'Alves', 'Rocha', 'Dias', 'Nunes', 'Reis', 'Melo'])[1 + c % 9] as last_name,
        'Sobrenome' || a % $8::int as rare_name,
        case when d % 10 < 6 then 'customer' || g || '@example.com' end as email,
        case
            when e % 4 = 0 then '{}'::text[]
            else array['tag' || (a % 50), 'Tier' || (b % 5)] || case when e % 3 = 0 then array['VIP'] else '{}' end
        end as tags
    from drawn
)
insert into contacts (
    organization_id, env, id, phone, phone_hash, name, email, email_key, attributes, tags, tag_keys, source,
    external_id, opt_in_status, opt_in_at, unreachable, last_interaction_at, search, updated_at
)
select
    $1::text, $2::text, $3::text || lpad(g::text, 13, '0'), phone,
    sha256(convert_to($1::text || ':' || phone, 'UTF8')), first_name || ' ' || last_name || ' ' || rare_name,
    email, email,
    jsonb_build_object(
        'city', 'City ' || a % 500, 'plan', (array['free', 'basic', 'plus', 'pro'])[1 + b % 4], 'age', 18 + c % 70,
        'active', d % 2 = 0, 'since', (date '2020-01-01' + (e % 2000)::int)::text,
        'interests', jsonb_build_array('topic ' || a % 30, 'topic ' || b % 30)
    ),
    tags, (select coalesce(array_agg(lower(t)), '{}') from unnest(tags) t), 'import', 'customer-' || g,
    case when c % 10 < 6 then 'granted' when c % 10 < 7 then 'denied' else 'unknown' end, $7::timestamptz,
    case when d % 33 = 0 then array['chatapp', 'sms', 'rcs'] else '{}' end,
    case when e % 10 < 7 then $7::timestamptz - (e % 400) * interval '1 day' end,
    array_to_tsvector(array[
        $4::text || translate(lower(first_name), 'áãêíô', 'aaeio'), $4 || lower(last_name), $4 || lower(rare_name),
        $4 || '+' || substr(phone, 2), $4 || '-' || reverse(substr(phone, 2))
    ] || case when email is null then '{}' else array[$4 || 'customer' || g, $4 || 'example', $4 || 'com'] end),
    $7::timestamptz
from people
order by g
"""


async def make_contacts(database: Connection, organization_id: str, count: int, *, env: str = "test") -> list[str]:
    """So many contacts; their ids."""
    now = datetime.now(UTC)
    prefix = lowest_id(CONTACT, now)[:-13]
    shared = (organization_id, env, prefix, search_mark(organization_id, env))
    for first in range(1, count + 1, BLOCK):
        last = min(first + BLOCK - 1, count)
        await database.execute(_CONTACTS, *shared, first, last, now, RARE_NAMES, timeout=LIMIT)
    await database.execute("vacuum (analyze) contacts", timeout=LIMIT)
    return [f"{prefix}{number:013}" for number in range(1, count + 1)]
