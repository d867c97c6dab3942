"""What papers on measurement layouts print, and the same worked out here."""
