"""What `animalcat bench` measures: this machine, a server on it, and batteries.

Each part that it names is a module with `run(quick) -> rows`. `simulator` and `sensors` are the
simulator's speed with and without a camera, `recording` is what recording costs, and `layouts`,
with `inference`, how long fits and choices take. `start` is what starting costs. `service` has a
server play with one agent and with a `crowd`, beside the bare `echo`, and `scaling` has more and
more agents that think.

`saving` measures what adaptive choice saves on a battery and `recorded` what it would have saved
on recorded outcomes. Both play `rounds` of simulated `sessions` and judge their `curves`. `retest`
says whether two sessions of one agent agree.
"""
