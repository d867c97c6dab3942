"""What people are shown of a posterior or a layout.

`profile` is an agent's profile as data, `posterior_table` the table of many fits, `diagram` and
`drawing` a layout's graph as text and as a picture.
"""
