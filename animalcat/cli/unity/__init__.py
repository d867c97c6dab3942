"""`animalcat unity` (`commands`), and the stand-in `animalcat-unity` (`player`)."""
