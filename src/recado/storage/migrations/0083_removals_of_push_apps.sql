-- Push apps that were deleted and have devices left, as far as these are looked through: they go in blocks.
create table push_app_removals (
    organization_id id not null,
    env text not null,
    app_id id not null,
    after_id text collate "C" not null,
    primary key (organization_id, env, app_id)
);
