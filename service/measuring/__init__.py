"""What a session measures, without its agent.

`measurement` drives the learner of `layouts.adaptive` with arenas and episodes; `coverage` says
which instances a layout describes and why not the others; `generation` makes arenas on demand;
`certificates` are refits by NUTS at checkpoints; `gate` asks whether scores are predicted; `report`
is the profile at the end.
"""
