-- create table commented (
CREATE TABLE IF NOT EXISTS app.users (
    id integer primary key, -- ; not here
    name text default ';'
);

create unique index users_name on app.users (name);

CREATE OR REPLACE FUNCTION touch() RETURNS trigger AS $$
BEGIN
    create table inner_one (x int);
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;

ALTER TABLE app.users ADD COLUMN age int;
