"""The words for the wire's enums, as people, JSON and Python values have them: the one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from animalcat.v1 import operations_pb2, results_pb2, sessions_pb2, types_pb2

POLICIES: Final[Mapping[str, sessions_pb2.PolicyName.ValueType]] = {
    "variance": sessions_pb2.POLICY_NAME_VARIANCE,
    "information": sessions_pb2.POLICY_NAME_INFORMATION,
    "threshold": sessions_pb2.POLICY_NAME_THRESHOLD,
    "stratified": sessions_pb2.POLICY_NAME_STRATIFIED,
    "random": sessions_pb2.POLICY_NAME_RANDOM,
    "listed": sessions_pb2.POLICY_NAME_LISTED,
    "plugin": sessions_pb2.POLICY_NAME_PLUGIN,
}
"""Ways to choose."""
FORMATS: Final[Mapping[str, results_pb2.ProfileFormat.ValueType]] = {
    "json": results_pb2.PROFILE_FORMAT_JSON,
    "html": results_pb2.PROFILE_FORMAT_HTML,
    "csv": results_pb2.PROFILE_FORMAT_OUTCOMES_CSV,
    "reanalysis": results_pb2.PROFILE_FORMAT_REANALYSIS_JSON,
    "parquet": results_pb2.PROFILE_FORMAT_OUTCOMES_PARQUET,
    "netcdf": results_pb2.PROFILE_FORMAT_NETCDF,
}
"""Forms of an exported profile; plugins have others."""
COMBINES: Final[Mapping[str, sessions_pb2.Combine.ValueType]] = {
    "any": sessions_pb2.COMBINE_ANY,
    "all": sessions_pb2.COMBINE_ALL,
}
"""How the parts of a stopping rule go together."""
STATES: Final[Mapping[str, sessions_pb2.SessionState.ValueType]] = {
    "waiting": sessions_pb2.SESSION_STATE_WAITING,
    "running": sessions_pb2.SESSION_STATE_RUNNING,
    "finished": sessions_pb2.SESSION_STATE_FINISHED,
    "cancelled": sessions_pb2.SESSION_STATE_CANCELLED,
    "failed": sessions_pb2.SESSION_STATE_FAILED,
    "unreadable": sessions_pb2.SESSION_STATE_UNREADABLE,
}
"""Where sessions stand."""
STATUSES: Final[Mapping[str, sessions_pb2.MeasuringStatus.ValueType]] = {
    "measuring": sessions_pb2.MEASURING_STATUS_MEASURING,
    "precise, if the layout holds": sessions_pb2.MEASURING_STATUS_MEASURED,
    "budget": sessions_pb2.MEASURING_STATUS_BUDGET,
    "used up": sessions_pb2.MEASURING_STATUS_USED_UP,
    "limited by the battery": sessions_pb2.MEASURING_STATUS_LIMITED_BY_BATTERY,
    "limited by noise": sessions_pb2.MEASURING_STATUS_LIMITED_BY_NOISE,
    "ended": sessions_pb2.MEASURING_STATUS_ENDED,
    "cancelled": sessions_pb2.MEASURING_STATUS_CANCELLED,
    "layout contradicted": sessions_pb2.MEASURING_STATUS_LAYOUT_CONTRADICTED,
    "not to be read": sessions_pb2.MEASURING_STATUS_NOT_READ,
}
"""Where measuring a capability stands."""
CONTRADICTED: Final = "contradicted"
NOT_CERTIFIED: Final = "not certified"
"""Beginnings of two of the labels that a profile may have."""
REASONS: Final[Mapping[str, sessions_pb2.Reason.ValueType]] = {
    "informative": sessions_pb2.REASON_INFORMATIVE,
    "random": sessions_pb2.REASON_RANDOM,
    "listed": sessions_pb2.REASON_LISTED,
    "generated": sessions_pb2.REASON_GENERATED,
    "probe": sessions_pb2.REASON_PROBE,
    "person": sessions_pb2.REASON_PERSON,
    "practice": sessions_pb2.REASON_PRACTICE,
    "plugin": sessions_pb2.REASON_PLUGIN,
}
"""Why an instance was chosen."""
MADE_AS: Final[Mapping[str, sessions_pb2.MadeAs.ValueType]] = {
    "offer": sessions_pb2.MADE_AS_OFFER,
    "twin": sessions_pb2.MADE_AS_TWIN,
    "variation": sessions_pb2.MADE_AS_VARIATION,
}
"""What instances that are not in the battery were made as."""
OUTCOMES: Final[Mapping[str, types_pb2.Outcome.ValueType]] = {
    "success": types_pb2.OUTCOME_SUCCESS,
    "failure": types_pb2.OUTCOME_FAILURE,
    "void": types_pb2.OUTCOME_VOID,
    "fault": types_pb2.OUTCOME_FAULT,
}
"""What became of episodes."""
ENDED_BY: Final[Mapping[str, types_pb2.EndedBy.ValueType]] = {
    "goal": types_pb2.ENDED_BY_GOAL,
    "death": types_pb2.ENDED_BY_DEATH,
    "time_limit": types_pb2.ENDED_BY_TIME_LIMIT,
    "fault": types_pb2.ENDED_BY_FAULT,
}
"""Why the last steps of episodes were their last."""
CAUSES: Final[Mapping[str, types_pb2.Cause.ValueType]] = {
    "backend": types_pb2.CAUSE_BACKEND,
    "agent_left": types_pb2.CAUSE_AGENT_LEFT,
    "withdrew": types_pb2.CAUSE_WITHDREW,
    "looked": types_pb2.CAUSE_LOOKED,
    "action_timeout": types_pb2.CAUSE_ACTION_TIMEOUT,
    "bad_frames": types_pb2.CAUSE_BAD_FRAMES,
    "cancelled": types_pb2.CAUSE_CANCELLED,
    "server_stopped": types_pb2.CAUSE_SERVER_STOPPED,
    "session_stopped": types_pb2.CAUSE_SESSION_STOPPED,
    "server_failed": types_pb2.CAUSE_SERVER_FAILED,
    "out_of_time": types_pb2.CAUSE_OUT_OF_TIME,
    "out_of_tokens": types_pb2.CAUSE_OUT_OF_TOKENS,
    "token_ended": types_pb2.CAUSE_TOKEN_ENDED,
    "dismissed": types_pb2.CAUSE_DISMISSED,
    "agent_failed": types_pb2.CAUSE_AGENT_FAILED,
}
"""Why attempts did not come to their end."""
RULINGS: Final[Mapping[str, types_pb2.Ruling.ValueType]] = {
    "repeat": types_pb2.RULING_REPEAT,
    "failure": types_pb2.RULING_FAILURE,
    "fault": types_pb2.RULING_FAULT,
    "awaited": types_pb2.RULING_AWAITED,
}
"""What people say of attempts at which the agent's code failed."""
MEASURED_BY: Final[Mapping[str, sessions_pb2.MeasuredBy.ValueType]] = {
    "placement": sessions_pb2.MEASURED_BY_PLACEMENT,
    "playing": sessions_pb2.MEASURED_BY_PLAYING,
    "caller": sessions_pb2.MEASURED_BY_CALLER,
}
"""How meta-features are measured."""
KINDS: Final[Mapping[str, operations_pb2.OperationKind.ValueType]] = {
    "import_battery": operations_pb2.OPERATION_KIND_IMPORT_BATTERY,
    "build_battery": operations_pb2.OPERATION_KIND_BUILD_BATTERY,
    "end_campaign": operations_pb2.OPERATION_KIND_END_CAMPAIGN,
}
"""What operations do."""
OPERATIONS: Final[Mapping[str, operations_pb2.OperationState.ValueType]] = {
    "running": operations_pb2.OPERATION_STATE_RUNNING,
    "done": operations_pb2.OPERATION_STATE_DONE,
    "failed": operations_pb2.OPERATION_STATE_FAILED,
    "cancelled": operations_pb2.OPERATION_STATE_CANCELLED,
    "aborted": operations_pb2.OPERATION_STATE_ABORTED,
}
"""Where operations stand."""


def word(number: int, words: Mapping[str, int]) -> str:
    """The word for a number of an enum; empty for one that is not set, or is a newer server's."""
    return next((text for text, known in words.items() if known == number), "")
