"""Measurement layouts: what an agent's outcomes say of its capabilities, and what to play next.

The packages, each of which imports only those before it: `model` (what a layout is) with `library`
(the shipped ones), `inference` (posteriors), `simulation` (agents whose abilities are known) and
`reporting` (profiles, tables, drawings), `adaptive` (choosing and stopping), `checking` (does the
layout hold, and who differs), `reproduce` (the published results).
"""
