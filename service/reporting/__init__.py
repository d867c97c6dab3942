"""Reports on batteries: what they measure, which demands go together, what they could tell.

`battery_report` puts a report together as plain data and `page` makes an HTML page of it, from the
template `battery_report.html.j2`, with the maps of `maps` and the charts of `charts`.

Its parts: `demands` is the table of a battery's demands, `kinship` says which demands are nested by
definition, `spread` tells how far each demand is covered, `correlations` which go together,
`sheet` which arenas are shown, `precision` what a layout could at best know after the battery, and
`additions` which instances to add.
"""
