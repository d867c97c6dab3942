"""Recordings of episodes: one mcap file per attempt, written during play, read and verified.

`writer` and `reader` share the form of the file (`channels`) and its check sums (`sums`). `live` is
the file while the episode plays, `encoding` what a step is in it, and `compact` what becomes of it
at the end. `verify` plays a recorded episode again, and `difference` compares what comes of it with
the recording. `film` draws one, and `video` writes what was drawn; `pixels` are what both draw
with. `about` has the words that both show.
"""
