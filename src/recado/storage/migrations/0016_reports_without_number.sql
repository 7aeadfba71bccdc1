-- A report can come before its number is known, or after it is gone: it waits like one whose message is not known (C29.5).

alter table parked_reports alter column organization_id drop not null, alter column number_id drop not null;
