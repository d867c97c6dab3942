"""The steps that bring an older database up to date, for alembic."""
