"""The session service: gRPC servicers, session engine, storage, recordings and exports."""
