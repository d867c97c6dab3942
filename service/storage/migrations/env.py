"""What alembic runs: the steps, in the transaction of whoever called it (`storage/migrate.py`)."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
