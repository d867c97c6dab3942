"""What a measurement layout is: its nodes, how they are linked, and the data it is about.

`spec` is where to begin: `Layout`, its features, latent and derived nodes, outcomes and exclusions,
and their form as plain data. `links` and `priors` are what nodes are made of, `expressions` the
formulas that a layout file may hold, `likelihood` what an outcome says of the node that it is drawn
from. `instances` is the table of instances with features and outcomes that everything else takes.
`nodes`, `validation` and `codec` serve `spec`.
"""
