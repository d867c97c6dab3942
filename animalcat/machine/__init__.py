"""This machine: its folders, files, processes and networks.

`files` writes results completely or not at all, `marks` marks the folders of these, `folders` says
where animalcat keeps files of its own, and `kept` keeps there what was worked out before.
`processes` ends processes, `codes` are the exit codes of commands, `compiling` tells whether code
has been compiled here, and `networks` tells which addresses are this machine or near it.
`hdf_trial` tries whether a file can be read.
"""
