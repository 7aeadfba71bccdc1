-- What happened is heard in shares of the organizations: one that makes very many signals keeps nobody else's waiting.
create index execution_signals_of_organization on execution_signals (organization_id, id);
