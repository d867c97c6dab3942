"""Generated from protos/animalcat/envs/mlagents/v1 by `make proto`."""
