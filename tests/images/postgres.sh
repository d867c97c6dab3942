#!/bin/sh
# Make the database when there is none, then run the server.
set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --encoding UTF8 --locale C.UTF-8 --username "$POSTGRES_USER" --pwfile /tmp/password --auth-local trust --auth-host scram-sha-256 > /dev/null
  rm /tmp/password
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  pg_ctl --wait --options "-c listen_addresses=" start > /dev/null
  createdb --username "$POSTGRES_USER" "$POSTGRES_USER"
  pg_ctl --wait stop > /dev/null
fi
exec "$@"
