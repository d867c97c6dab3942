"""Measurement layouts: what an agent's outcomes say about its capabilities, and what to play next.

The packages, each of which imports only those before it: `model` (what a layout is) with `library`
(the shipped layouts), `inference` (posteriors), `simulation` (agents of known ability), `reporting`
(profiles, tables, drawings), `watching` (whether a layout describes an agent while it plays),
`adaptive` (choosing and stopping), `explaining` (what it all means in words), `checking` (whether
the layout holds, and how agents differ), and `calibrating` (what earlier agents teach a layout).
"""
