"""What is added to animalcat: by its doors, by other packages and by extras.

`doorways` finds what the doors add, and `plugins` what other packages add by entry points. `files`
runs a file in which a class is named, and `installing` words how to install what is missing.
`registering` makes the environment known to Gymnasium.
"""
