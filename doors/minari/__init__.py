"""Recorded episodes as a dataset of Minari: `minari_data` writes it, for `command`."""
