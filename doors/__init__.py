"""The doors: everything by which others come in, or look out.

Each is a folder with a `door.toml`, which says what it adds: `animalcat.extending.doorways`
reads it, and nothing outside this folder imports a door. Any of them may be taken away.

- `clinic`: items of anybody's test are examined by what anybody did on them;
- `inspect`: tasks of inspect_ai are tested adaptively, and logs are read and written;
- `ray`: simulators, fits and agents run on many machines;
- `sb3`: what is being trained by Stable-Baselines3 is measured meanwhile;
- `speech`: what speaks, such as the agents `llm:MODEL`, perceives and answers in words;
- `minari` and `rerun`: recorded episodes as datasets, and for a viewer;
- `study`: people take part in studies, and play arenas for themselves;
- `mcp`: clients of the Model Context Protocol play, or read profiles.
"""
