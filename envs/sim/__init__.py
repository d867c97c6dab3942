"""The embedded simulator: Animal-AI's physics and rules on PhysX, without Unity."""
