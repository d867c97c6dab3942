"""What is on the wire: messages of protobuf from values, and back.

`codec` puts values on the wire by the descriptors of their messages, and `steps` does so for
observations and recorded steps. `words` has the words of its numbers, and `protocol` says which
version this one speaks.
"""
