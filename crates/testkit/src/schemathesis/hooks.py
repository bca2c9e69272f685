"""What a schema can't say, and the Worker API wants: said here, so that what is generated is what may be sent."""

import schemathesis


def whole(value):
    """JSON Schema takes 3.0 for a whole number; the contract wants it written as one."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [whole(one) for one in value]
    if isinstance(value, dict):
        return {name: whole(one) for name, one in value.items()}
    return value


def lines_in_order(arguments):
    """A step's first line is not behind its last one."""
    first, last = arguments.get("start_line"), arguments.get("end_line")
    if isinstance(first, int) and isinstance(last, int) and first > last:
        arguments["start_line"], arguments["end_line"] = last, first


def same_job(body):
    """The ids in a job for the runner are those of the request."""
    sandbox = body.get("sandbox")
    spec = sandbox.get("job_spec") if isinstance(sandbox, dict) else None
    if not isinstance(spec, dict):
        return
    for name in ("job_id", "task_id"):
        if name in spec and name in body:
            spec[name] = body[name]
    steps = spec.get("steps")
    for step in steps if isinstance(steps, list) else []:
        if not isinstance(step, dict):
            continue
        for name in ("args", "arguments"):
            if isinstance(step.get(name), dict):
                lines_in_order(step[name])


@schemathesis.hook
def map_body(context, body):
    body = whole(body)
    if isinstance(body, dict):
        same_job(body)
    return body


@schemathesis.hook
def before_call(context, case, kwargs):
    """Logs are of a service or of a sandbox, and each is named by a parameter of its own."""
    if not case.path.endswith("/logs") or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    wanted, other = "source_name", "container_id"
    if case.query.get("source_kind") == "container":
        wanted, other = other, wanted
    case.query.setdefault(wanted, "worker_api")
    case.query.pop(other, None)
