"""Generated protobuf and gRPC code of the wire contract; made by `make proto` from protos/."""
