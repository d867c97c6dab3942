"""What a measurement layout is: its nodes, how they are linked, and the data that it describes.

Begin with `spec`: it has `Layout` with its features, latent and derived nodes, outcomes and
exclusions, and their form as plain data. `links` and `priors` define the nodes, `expressions` the
values, bounds and units of formulas, and `likelihood` how outcomes follow from nodes.
`instances` is the table of instances, with features and outcomes, that everything else takes, and
says what a layout describes of it; `tables` reads the text of a table, and `frames` one of pandas.
`calibration` is what
earlier agents taught of instances. `units` reads units and tells one in another.
`nodes`, `validation` and `codec` serve `spec`, and `growing` has arrays that grow by rows.
"""
