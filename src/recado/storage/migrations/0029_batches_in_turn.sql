-- Batches that are being made, by organization: organizations take turns, and the batches of each among themselves (C15.5).
create index batches_building on batches (organization_id, id) where status = 'building';
