#!/usr/bin/python3
"""Every answer that the REST tests get is checked against the schemas of api/openapi.yaml.

usage: contract_test.py REST_TEST OPENAPI.yaml

Runs the test program with MUSTER_RECORD set, then validates each recorded answer: its status and
content type must be described, and its body must fit; of event streams, the data of each event.
Every operation must have been answered at least once with something other than a problem.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml

EVENTS = {  # Of which schema the data of a stream's events is, by operation.
    "list_jobs": {"snapshot": "Job", "put": "Job"},
    "list_nodes": {"snapshot": "Node", "put": "Node"},
    "job_logs": {"log": "LogPiece"},
}
# Upgrades and errors have no body of their own to check.
NO_BODY = {"101", "204", "304"}


def main():
    program, document = sys.argv[1:3]
    with open(document, encoding="utf-8") as file:
        api = yaml.safe_load(file)
    routes = []
    for path, item in api["paths"].items():
        pattern = re.compile("^" + re.sub(r"\\?\{[^}]*\\?\}", "[^/]+", path) + "$")
        for method, operation in item.items():
            if method != "parameters":
                routes.append((pattern, method.upper(), operation))
    schema = {"components": api["components"]}
    problems, answered, checked = [], collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([program, "--gtest_brief=1"], env={**os.environ, "MUSTER_RECORD": folder})
        if run.returncode != 0:
            sys.exit("the REST tests fail")
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for line in file:
                    record = json.loads(line)
                    where = f"{name}: {record['method']} {record['target']} {record['status']}"
                    path = record["target"].split("?")[0]
                    operation = next((o for p, m, o in routes if m == record["method"] and p.match(path)), None)
                    try:
                        check(api, schema, operation, record, answered)
                        checked += 1
                    except (jsonschema.ValidationError, ValueError) as error:
                        problems.append(f"{where}: {str(error)[:600]}")
    # What an upgrade answers is frames.
    for _, _, operation in routes:
        if answered[operation["operationId"]] == 0 and "101" not in operation["responses"]:
            problems.append(f"no test gets an answer of {operation['operationId']}")
    for problem in problems[:40]:
        print(problem)
    print(f"{checked} answers fit, {len(problems)} problems")
    sys.exit(1 if problems or checked < 100 else 0)


def resolve(api, node):
    while "$ref" in node:
        target = api
        for part in node["$ref"].split("/")[1:]:
            target = target[part]
        node = target
    return node


def check(api, schema, operation, record, answered):
    if operation is None:  # Unknown routes and wrong methods answer problems.
        return validate(schema, "Problem", json.loads(record["body"]))
    status = str(record["status"])
    if status in NO_BODY:
        if status not in operation["responses"]:
            raise ValueError(f"status {status} is not described")
        answered[operation["operationId"]] += 1
        return None
    described = operation["responses"].get(status)
    if described is None:
        described = operation["responses"]["default"]
        if record["status"] < 400:
            raise ValueError(f"status {status} is not described")
    else:
        answered[operation["operationId"]] += 1
    kinds = resolve(api, described)["content"]
    kind = record["type"].split(";")[0]
    if kind not in kinds:
        raise ValueError(f"content type {kind} is not described")
    if kind == "text/event-stream":
        return check_events(schema, operation["operationId"], record["body"])
    if kind.endswith("json"):
        jsonschema.Draft202012Validator({**kinds[kind]["schema"], **schema}).validate(json.loads(record["body"]))
    return None


def check_events(schema, operation, text):
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" not in fields:
            continue
        data = json.loads(fields["data"])
        name = EVENTS.get(operation, {}).get(fields.get("event"))
        if operation == "list_events":
            name = "Event"
        if name is not None:
            validate(schema, name, data)


def validate(schema, name, value):
    jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{name}", **schema}).validate(value)


if __name__ == "__main__":
    main()
