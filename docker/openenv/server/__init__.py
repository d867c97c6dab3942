"""The server: `training` and `evaluation` are its environments, `app` serves one of them."""
