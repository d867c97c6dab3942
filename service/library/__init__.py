"""What sessions are made of, kept by digest and found again by name: `batteries` and `layouts`."""
