"""Writes one line of JSON for every call that LiteLLM bills, or that failed: what its own books would say, and the row of
its spend logs as its own code makes it before a database gets it."""

import json
import os

from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy.spend_tracking.spend_tracking_utils import get_logging_payload


class Witness(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        note("success", kwargs, get_logging_payload(kwargs, response_obj, start_time, end_time))

    async def async_log_failure_event(self, kwargs, response_obj, start_time, end_time):
        note("failure", kwargs, None)


def note(status, kwargs, row):
    logged = kwargs.get("standard_logging_object") or {}
    metadata = logged.get("metadata") or {}
    line = {
        "status": status,
        "call_id": kwargs.get("litellm_call_id"),
        "call_type": logged.get("call_type"),
        "model": logged.get("model_group"),
        "end_user": logged.get("end_user"),
        "spend_logs_metadata": metadata.get("spend_logs_metadata"),
        "tags": logged.get("request_tags"),
        "cost": logged.get("response_cost"),
        "is_stream": bool(kwargs.get("stream")),
        "input_tokens": logged.get("prompt_tokens"),
        "output_tokens": logged.get("completion_tokens"),
        "row": row,
    }
    with open(os.environ["BELLJAR_TEST_WITNESS"], "ab", buffering=0) as file:
        file.write(json.dumps(line, default=written).encode() + b"\n")


def written(value):
    """Times, as a database would give them back; and whatever else JSON has no word for."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


witness = Witness()
