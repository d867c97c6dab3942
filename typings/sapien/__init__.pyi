from . import physx as physx
from . import pysapien as pysapien
