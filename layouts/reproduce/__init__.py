"""What papers on measurement layouts print, and the same worked out here.

`printed` are the papers' numbers. `olympics` and `permanence` are Burden et al. (2023),
`cooperation` is Tesic et al. (2025). `ceiling` says how well anyone could predict, `chance` what
noise does.
"""
