"""Several sessions on one budget: `conductor` hands out their episodes."""
