-- Parts of the statements that ask what those consented to who have an e-mail address, of whom there may be many.

-- name: anyone
-- Whether a contact with the address {email} is of this status. One look-up, whatever the planner thinks of the table's size: `offset 0`,
-- and an order that only the index of addresses by status has, with bounds in place of equalities, by which any index would do.
exists (
    select from contacts
    where
        organization_id = {organization} and env = {env}
        and email_key is not null and (email_key, opt_in_status) >= ({email}, '{status}')
        and (email_key, opt_in_status) <= ({email}, '{status}')
    order by email_key, opt_in_status
    offset 0
)
