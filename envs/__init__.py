"""The environment contract, the backends that play arenas, and the reference agents.

`types` is the contract: observations, steps and what a backend must do.
`answers` reads what agents answer: an action, or several as `Actions`.
`rays` reads what rays tell, `state` says what privileged agents are shown besides, and `places`
watches where an agent goes first. `backends` makes an environment by name: `sim` is the embedded
simulator, and `unity` drives a real Unity build.
`worker` holds an environment in a process of its own, which `worker_client` drives by `messages`.
`starting` starts that process, alone or by `forks`, a process that does its `warming` only once.
`patience` decides when such a process is given up, and `pulse` shows that it works. `bare` says
which environment variables it gets, and `surroundings` which of them change what it does.
`replay` and `snapshot` play episodes again, and `measure` measures what only playing an arena
tells, and `explaining` says why demands are as they are. `gym`, `vector`, `spaces` and
`register` offer the contract to Gymnasium, and `window` shows it to people. `mlagents` plays
Unity's side of ML-Agents' protocol over the simulator, and `agents` are the reference agents.
"""
