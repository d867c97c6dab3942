"""From outcomes to posteriors: a live one after every episode, and full fits by NUTS.

`live` updates particles after every outcome, within milliseconds. `fit` is the fit by NUTS on which
a profile rests, `fitter` runs it in a process of its own, and `certificate` compares the two.
`counting` counts equal outcomes once. `convergence` tells whether chains have mixed.
`evidence` names what a posterior knows by a digest. `evaluator` computes a layout's predictions for
many draws and instances at once, by means of `program` and `kernels`. `summary` gives mean, SD and
interval of draws. `backend` is the PyMC graph, which nothing on the path of an episode imports.
`randomness` makes keyed random generators. `arviz_data` gives a posterior the form that ArviZ and
netCDF have. `messages` is the format in which the fitting process is addressed and posteriors are
saved.
"""
