-- Whoever was erased with a contact (C12.6) has no hash: 0 is one that a person may have.
alter table messages alter column recipient_hash drop not null;
update messages set recipient_hash = null where recipient_hash = 0;
delete from tier_recipients where recipient_hash = 0;
