"""Keeps what sessions are made of, by digest and by name: `batteries` and `layouts`."""
