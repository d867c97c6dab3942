"""What people are shown of a posterior or a layout.

`profile` is an agent's profile as data.
"""
