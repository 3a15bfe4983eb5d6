"""Whatever is sent, no answer is outside of the OpenAPI document, and none is a failure of the service."""

from typing import Any

import pytest

from tests.serve.running import Running

schemathesis = pytest.importorskip("schemathesis")
hypothesis = pytest.importorskip("hypothesis")


def go_through(service: Running, examples: int) -> None:
    """Requests of all kinds to every path, right ones and wrong ones, each answer checked against the document."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    schema = schemathesis.openapi.from_url(service.url + "/openapi.json")
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    for operation in schema.get_all_operations():
        made = operation.ok()
        for mode in modes:

            @hypothesis.given(case=made.as_strategy(generation_mode=mode))
            @hypothesis.settings(
                max_examples=examples,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            def check(case: Any) -> None:
                case.call_and_validate(checks=checks, timeout=60)

            try:
                check()
            except hypothesis.errors.Unsatisfiable:  # nothing can be wrong about a path without parameters
                continue


def test_requests_of_every_kind(service: Running) -> None:
    go_through(service, 2)
    assert service.http.get("/healthz").status_code == 200


@pytest.mark.slow
def test_many_requests_of_every_kind(service: Running) -> None:
    go_through(service, 300)
    assert service.http.get("/healthz").status_code == 200


def test_every_path_has_an_example(service: Running) -> None:
    document = service.http.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["description"], path
            answer = operation["responses"]["200"]["content"]
            assert any(_has_example(one, schemas) for one in answer.values()), path
            for one in operation.get("requestBody", {}).get("content", {}).values():
                assert _has_example(one, schemas), path
            assert {"4XX", "5XX"} <= set(operation["responses"]), path


def _has_example(content: dict[str, Any], schemas: dict[str, Any]) -> bool:
    schema = content.get("schema", {})
    schema = schema.get("items", schema)
    named = schemas.get(schema.get("$ref", "").rsplit("/", 1)[-1], schema)
    return "example" in content or "example" in named
