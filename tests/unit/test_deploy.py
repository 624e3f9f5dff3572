"""`deploy/` and its pages, as far as they can be checked without Docker, Kubernetes and AWS."""

import ast
import importlib.util
import json
import re
import shlex
import subprocess
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from shardaudit.model.config.settings import load_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DEPLOYING = (ROOT / "docs" / "deploying.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILES = sorted(DEPLOY.glob("*/Dockerfile"))


def pins() -> dict[str, str]:
    """What pyproject.toml pins in requirements.lock: package -> version."""
    extras = PROJECT["optional-dependencies"]
    wanted = [one for extra in extras.keys() - {"dev", "docs"} for one in extras[extra]]
    found = (re.match(r"([\w-]+)(?:\[\w+\])?==([\w.]+)$", one) for one in wanted)
    return {match[1]: match[2] for match in found if match}


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language, without what a list indents them by."""
    found = re.findall(rf"(?ms)^( *)```{language}\n(.*?)^ *```$", text)
    return [re.sub(rf"(?m)^{indent}", "", block) for indent, block in found]


def installed(package: str, *path: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0], *path)


def instructions(file: Path) -> Iterator[tuple[str, str]]:
    """The instructions of a Dockerfile: their names, and the rest with the arguments filled in."""
    text = re.sub(r"(?m)^ *#.*\n", "", file.read_text()).replace("\\\n", " ")
    values: dict[str, str] = {}
    for line in filter(None, text.splitlines()):
        name, _, rest = line.partition(" ")
        rest = re.sub(r"\$\{(\w+)\}", lambda found: values.get(found[1], found[0]), rest)
        if name in ("ARG", "ENV"):
            key, _, value = rest.partition("=")
            values[key] = value
        yield name, rest


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.parent.name)
def test_a_dockerfile_copies_what_there_is(file: Path) -> None:
    wheel = f"dist/shardaudit-{PROJECT['version']}-py3-none-any.whl"
    found = [rest.split() for name, rest in instructions(file) if name == "COPY"]
    sources = [
        source
        for words in found
        if not words[0].startswith("--from")
        for source in words[:-1]
        if not source.startswith("--")
    ]
    assert wheel in sources
    assert [one for one in sources if one != wheel and not (ROOT / one).is_file()] == []
    assert {name for name, _ in instructions(file)} <= {
        *("ARG", "COPY", "ENTRYPOINT", "ENV", "FROM", "RUN", "USER", "WORKDIR"),
    }


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.parent.name)
def test_versions_are_those_that_are_tested(file: Path) -> None:
    known = pins()
    text = "\n".join(f"{name} {rest}" for name, rest in instructions(file))
    named = dict(re.findall(r"([\w-]+)==([\w.]+)", text))
    images = dict(re.findall(r"FROM (\S+):([^\s-]+)", text))
    names = {"apache/airflow": "apache-airflow", "apache/spark": "pyspark"}
    named |= {names[image]: tag for image, tag in images.items() if image in names}
    assert named
    assert named == {name: known[name] for name in named}
    assert set(re.findall(r"python:?(3\.\d+)", text)) == {"3.11"}
    shardaudit = f"shardaudit-{file.parent.name}:{PROJECT['version']}"
    for place in (DEPLOYING, file.read_text(), (DEPLOY / "compose.yaml").read_text()):
        assert shardaudit in place


def test_image_of_airflow_holds_what_the_page_for_installing_holds() -> None:
    text = (DEPLOY / "airflow" / "Dockerfile").read_text()
    page = (ROOT / "docs" / "installing.md").read_text()
    [filtered] = re.findall(r"grep -viE \S+", text)
    assert filtered in page
    assert "--constraint /tmp/held.txt" in text


def test_what_runs_has_nothing_of_the_stand_ins() -> None:
    stage, stages = "arguments", {"arguments": ""}
    file = DEPLOY / "spark" / "Dockerfile"
    for name, rest in instructions(file):
        if name == "FROM":
            base, _, stage = rest.partition(" AS ")
            stages[stage] = stages.get(base, "")
        stages[stage] += f"{name} {rest}\n"
    assert stages[""] == f"{stages['run-time']}FROM run-time\n"  # what is built untold
    assert not re.search("s3proxy|socat", stages[""])
    assert "fetch_jars('s3proxy')" in stages["stand-ins"]
    built = {name: one["build"].get("target") for name, one in SERVICES.items() if "build" in one}
    standing_in = {name for name, target in built.items() if target == "stand-ins"}
    assert standing_in == {"kinesis", "kinesis-door", "simulated", "s3", "s3-door"}


def test_constraints_of_the_image_are_the_versions_of_the_lock() -> None:
    text = (DEPLOY / "spark" / "Dockerfile").read_text()
    [command] = re.findall(r"sed -n '[^']+' /tmp/requirements.lock", text)
    words = [*shlex.split(command)[:-1], str(ROOT / "requirements.lock")]
    made = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    image = {"python_version": "3.11", "python_full_version": "3.11.9", "sys_platform": "linux"}
    wanted = map(Requirement, made)
    found = [one for one in wanted if one.marker is None or one.marker.evaluate(image)]
    versions = {one.name: str(one.specifier) for one in found}
    assert len(versions) == len(found) > 150
    pinned = {name: f"=={version}" for name, version in pins().items()}
    assert pinned == {name: versions[name] for name in pinned}


def test_what_services_refer_to_is_there() -> None:
    files = [one["build"] for one in SERVICES.values() if "build" in one]
    assert all((ROOT / build["dockerfile"]).is_file() for build in files)
    waited = {name for one in SERVICES.values() for name in one.get("depends_on", ())}
    joined = {one["network_mode"] for one in SERVICES.values() if "network_mode" in one}
    assert waited | {one.removeprefix("service:") for one in joined} <= SERVICES.keys()
    volumes = [one.split(":")[0] for s in SERVICES.values() for one in s.get("volumes", ())]
    mounted = {one for one in volumes if one.startswith(".")}
    assert set(volumes) - mounted == COMPOSE["volumes"].keys()
    assert all((DEPLOY / one).is_file() for one in mounted)


def test_nothing_is_open_to_others_and_no_secret_is_written_down() -> None:
    ports = [port for one in SERVICES.values() for port in one.get("ports", ())]
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []
    text = (DEPLOY / "compose.yaml").read_text()
    asked = set(re.findall(r"\$\{(\w+):\?in \.env\}", text))
    assert set(re.findall(r"\$\{(\w+)", text)) == asked
    [block] = [one for one in blocks(DEPLOYING, "sh") if "> .env" in one]
    made = set(re.findall(r"[A-Z0-9_]+(?:KEY|PASSWORD|SECRET)", block))
    assert made == asked


def test_addresses_of_the_configuration_are_doors_of_services() -> None:
    settings = load_settings(DEPLOY / "shardaudit.toml")
    doors = {}
    for one in SERVICES.values():
        if one["command"][0] == "socat" if "command" in one else False:
            name = one["network_mode"].removeprefix("service:")
            port = re.search(r"TCP-LISTEN:(\d+)", one["command"][1])
            assert port
            doors[name] = f"http://{name}:{port[1]}"
            behind = one["command"][2].rpartition(":")[2]
            assert behind in SERVICES[name]["command"]
    assert {name: settings.aws.endpoint(name) for name in ("kinesis", "s3")} == doors


def test_airflow_knows_each_setting() -> None:
    options = yaml.safe_load(installed("airflow", "config_templates", "config.yml").read_text())
    keys = [key for key in SERVICES["airflow-scheduler"]["environment"] if "__" in key]
    known = {
        f"AIRFLOW__{section}__{name}".upper()
        for section, found in options.items()
        for name in found["options"]
    }
    assert keys
    assert set(keys) - known == set()
    connection = json.loads(
        SERVICES["airflow-scheduler"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"]
    )
    master = SERVICES["spark-master"]["command"]
    assert (connection["host"], connection["port"]) == (f"spark://{master[3]}", int(master[5]))
    assert SERVICES["spark-worker"]["command"][2] == f"spark://{master[3]}:{master[5]}"


def test_the_provider_knows_what_a_connection_says_besides() -> None:
    [written] = blocks(DEPLOYING, "json")
    hook = installed(
        "airflow", "providers", "apache", "spark", "hooks", "spark_submit.py"
    ).read_text()
    assert [key for key in json.loads(written)["extra"] if f'extra.get("{key}")' not in hook] == []


def test_the_dag_file_calls_what_there_is() -> None:
    tree = ast.parse((DEPLOY / "airflow" / "shardaudit_dags.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.keywords]
    source = ROOT / "spark" / "shardaudit" / "airflow" / "all_dags.py"
    [made] = [
        node
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "dags"
    ]
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in calls[0].keywords}
    assert given.keys() <= {argument.arg for argument in made.args.kwonlyargs}
    service = SERVICES["airflow-scheduler"]
    assert given["config"] == service["environment"]["SHARDAUDIT_CONFIG"]
    assert any(given["config"] in volume for volume in service["volumes"])


@cache
def _spark_classes(jar: str) -> bytes:
    [file] = installed("pyspark", "jars").glob(f"{jar}_2.13-*.jar")
    with zipfile.ZipFile(file) as classes:
        wanted = [n for n in classes.namelist() if "onfig" in n or "Constants" in n]
        return b"".join(map(classes.read, wanted))


def is_spark_setting(key: str) -> bool:
    """Whether a class of Spark has the key as a text; that of an account is put together there."""
    classes = _spark_classes("spark-core") + _spark_classes("spark-kubernetes")
    prefix, _, name = key.rpartition(".")
    if name == "serviceAccountName":
        return name.encode() in classes and _as_constant(prefix) in classes
    return _as_constant(key) in classes


def _as_constant(text: str) -> bytes:
    """A text as a class file has it: a tag, its length, its bytes (JVM specification, 4.4.7)."""
    return b"\x01" + len(text).to_bytes(2) + text.encode()


def test_spark_knows_each_setting(tmp_path: Path) -> None:
    written = [*blocks(DEPLOYING, "toml"), (DEPLOY / "shardaudit.toml").read_text()]
    assert len(written) == 2
    for text in written:
        file = tmp_path / "shardaudit.toml"
        file.write_text(text)
        assert [key for key in load_settings(file).spark if not is_spark_setting(key)] == []
    named = re.findall(r"--conf (spark[\w.]+)=", DEPLOYING)
    assert [key for key in named if not is_spark_setting(key)] == []
    assert not is_spark_setting("spark.executor.instance")
    assert not is_spark_setting("spark.kubernetes.container.images")


def test_spark_has_the_classes_that_are_started() -> None:
    named = {word for one in SERVICES.values() for word in one.get("command", ())}
    named |= set(re.findall(r"org\.apache\.spark[\w.]+", DEPLOYING))
    [file] = installed("pyspark", "jars").glob("spark-core_2.13-*.jar")
    with zipfile.ZipFile(file) as classes:
        known = set(classes.namelist())
    wanted = [one for one in named if one.startswith("org.apache.spark.")]
    assert len(wanted) == 2
    assert [one for one in wanted if f"{one.replace('.', '/')}.class" not in known] == []
