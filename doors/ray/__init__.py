"""Hosts simulators and fits on many machines, as actors of Ray (the extra `ray`).

`connect` joins a cluster and looks whether it can be used, `hosts` are the actors that run on its
nodes, and `pools` lends them to the engines, behind the contracts of `Worker` and `Fits`.
"""
