"""Real Unity builds of Animal-AI as a backend, driven by an interpreter of their own."""
