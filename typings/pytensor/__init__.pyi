"""The part of PyTensor that the project uses."""
