"""The store of sessions, decisions, outcomes, certificates and profiles.

`sql` is the store, in a relational database with the tables of `schema` and the JSON values of
`records`; its class says what holds of it, and `errors` what it raises. `artefacts` keeps files:
batteries, recordings and draws, and `belonging` looks whether they are those of the database.
`owners` says to whom things belong. `chain` makes changes to what is kept visible, `audit` is the
log of who did what, and `damage` knows a damaged database. `listing` describes lists and their
pages. `migrate` brings an older database up to date through the steps in `migrations`. `rows` reads
rows as they are, for looks at all of a store.
"""
