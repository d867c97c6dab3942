"""From outcomes to posteriors, live and by NUTS.

`live` refits particles after every outcome, within milliseconds. `fit` is the fit by NUTS that a
profile rests on, `fitter` the same in a process of its own, `certificate` the comparison of the
two. `evaluator` works a layout out for many draws and instances at once; `program` and `kernels`
are how. `summary` says mean, SD and intervals of draws. `backend` is the PyMC graph, which
nothing on the path of an episode imports. `randomness` makes streams of numbers, `messages` speaks
to the fitting process.
"""
