"""Where sessions, decisions, outcomes, certificates and profiles are kept."""
