#!/opt/animalcat/bin/python
"""Ask the server of this container for its health; ends with code 0 if it serves."""

import os
import ssl
import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

port = int(os.environ.get("ANIMALCAT_PORT", "50051"))
# Who else could listen at the loopback address here? So its own certificate is taken at its word.
certificate = ssl.get_server_certificate(("127.0.0.1", port), timeout=10.0).encode()
credentials = grpc.ssl_channel_credentials(certificate)
with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
    answer = health_pb2_grpc.HealthStub(channel).Check(
        health_pb2.HealthCheckRequest(), timeout=10.0
    )
sys.exit(answer.status != health_pb2.HealthCheckResponse.SERVING)
