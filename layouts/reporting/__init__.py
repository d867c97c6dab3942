"""What people are shown of a posterior or a layout.

`profile` is an agent's profile as data, `posterior_table` the table of many fits. `diagram` places
the nodes of a layout's graph, and `drawing` draws them as a picture.
"""
