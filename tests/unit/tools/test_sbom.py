"""The SBOM: valid, and of all that a user runs and nothing else."""

import json
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from shardaudit.adapters.engine.jars import LOCK, locked_jars
from tools.sbom import ROOT, brought, write_sbom

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The document of this tree."""
    sbom = tmp_path_factory.mktemp("sbom") / "dist" / "sbom.cdx.json"
    write_sbom(ROOT, sbom)
    return sbom.read_text()


@pytest.fixture
def components(written: str) -> dict[str, dict[str, Any]]:
    """Its components by name."""
    return {component["name"]: component for component in json.loads(written)["components"]}


def test_it_is_valid(written: str) -> None:
    version = SchemaVersion.from_version(json.loads(written)["specVersion"])
    assert JsonStrictValidator(version).validate_str(written) is None


def test_it_lists_the_packages_that_the_package_brings_and_nothing_of_its_makers(
    written: str, components: dict[str, dict[str, Any]]
) -> None:
    assert json.loads(written)["metadata"]["component"]["name"] == "shardaudit"
    wanted = {"apache-airflow", "pyspark", "pysail", "deltalake", "boto3", "grpcio"}
    assert wanted <= components.keys()
    makers = {"pytest", "mypy", "moto", "hatchling", "cyclonedx-bom", "s3proxy"}
    assert components.keys().isdisjoint(makers)
    assert all(component["version"] for component in components.values())


def test_it_lists_each_jar_of_the_run_time_with_its_hash(
    components: dict[str, dict[str, Any]],
) -> None:
    jars = {
        f"{one['group']}_{name}-{one['version']}.jar": one["hashes"][0]["content"]
        for name, one in components.items()
        if one["purl"].startswith("pkg:maven/")
    }
    assert jars == locked_jars("spark", LOCK)


def test_an_extra_brings_its_own_alone() -> None:
    assert "boto3" in brought("shardaudit", {"producer"})
    assert "pyspark" not in brought("shardaudit", {"producer"})
    assert brought("shardaudit", set()) == set()
