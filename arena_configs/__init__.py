"""The arena model: loading, writing, placing, checking and measuring Animal-AI arenas."""
