"""Reports on sessions and batteries, as pages that load nothing from elsewhere.

All pages extend the template `base.html.j2` with the styles of `page.css`; `templates` loads them.

`session_page` makes the report on a session: `session_report` says what is in it in words and
numbers, and `session_figures` draws its figures. Of a long session, `parts` packs the episodes for
the script `parts.js` of the page. `telling` adds a single episode. `comparison_page`
makes the page on several agents from `comparison`.

A report on a battery says what is in it, whether it can be passed, what it could tell, how
reliably, and which impostors it would let through. `battery_report` puts it together as plain data,
and `page` makes an HTML page of it from the template `battery_report.html.j2`, with the maps of
`animalcat.maps`. `demands` describes a battery's demands, `precision` says what a layout could at
best know after the battery, and `reliability` how precisely sessions of some lengths know each
capability.

`manifest` says what is in a battery, and `instance_table` makes a table of its instances.
"""
