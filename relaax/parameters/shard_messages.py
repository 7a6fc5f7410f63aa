"""Messages between workers and the shards of a parameter server that carry a slice."""

from relaax.parameters import shards_pb2
from relaax.parameters.vectors import VectorCodec

SERVICE_NAME = shards_pb2.DESCRIPTOR.services_by_name["ParameterShard"].full_name
STAGED_SLICES = VectorCodec(shards_pb2.StagedSlice)
SLICES = VectorCodec(shards_pb2.Slice)
