-- A journey that a customer archived: what it has queued is withdrawn, and what it has sent goes on no other way. A version that was
-- archived as it had no execution under way any more lets all of it go (C9.11.3). Until now the two could not be told apart where another
-- version had taken the place.
alter table journeys add column withdrawn boolean not null default false;
update journeys set withdrawn = true where status = 'arquivada' and not entradas_encerradas;
