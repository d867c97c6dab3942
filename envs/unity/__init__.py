"""Real Unity builds of Animal-AI as a backend, driven by a separate interpreter.

`environment` is the environment. `player` runs in the separate interpreter and drives builds
through the `animalai` client, and `process` starts it and talks to it. `settings` says where
interpreter, build and logs are, and `setup` installs the interpreter and finds a build. `witness`
checks that a build plays the arena that was meant. `late` is the simulator, one physics step late,
for comparison with a build that is kept.
"""
