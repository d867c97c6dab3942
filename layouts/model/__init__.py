"""What a measurement layout is: its nodes, how they are linked, and the data that it describes.

Begin with `spec`: it has `Layout` with its features, latent and derived nodes, outcomes and
exclusions, and their form as plain data. `links` and `priors` define the nodes, `expressions` the
values, bounds and units of formulas, and `likelihood` how outcomes follow from nodes.
`instances` is the table of instances, with features and outcomes, that everything else takes.
`calibration` is what earlier agents taught of instances. `units` reads units that are multiples.
`nodes`, `validation` and `codec` serve `spec`.
"""
