"""Measurement layouts: specification, inference, selection of instances, stopping, profiles."""
