"""The messages of ML-Agents' communicator, generated from `protos` by `make proto`.

`communicator_pb2` has the messages, `communicator_pb2_grpc` the service.
"""
