"""Performance measurements: one module per part, each with `run(quick) -> rows`."""
