"""Campaigns: several sessions on one budget of episodes, handed out by `conductor`."""
